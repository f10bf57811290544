"""The errors of logins, rights and TLS; none contains a password, a token or a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import MAX_NAMED, Fault, PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rights import Right
    from .tls_failures import TlsFailure

REFUSED_LOGIN_S: Final = 300.0
"""How long a process does not try a refused login again: some clusters lock accounts after a few.

An idle client is kept as long.
"""


class AuthenticationError(PysparkKafkaError, PermissionError):
    """A broker or a token's issuer refused the login.

    This process does not try it again for ``REFUSED_LOGIN_S``. ``user`` is empty if the mechanism
    has none, and ``reason`` is what the other side said.
    """

    condition = "KAFKA_AUTHENTICATION_FAILED"
    fault = Fault.USER

    def __init__(self, bootstrap_servers: str, mechanism: str, user: str, reason: str) -> None:
        self.mechanism = mechanism
        self.user = user
        who = f" of the user '{user}'" if user else ""
        super().__init__(
            f"The login{who} by {mechanism} at {bootstrap_servers} was refused: "
            f"{reason.strip().rstrip('.')}. It is not tried again for five minutes, so that no "
            "account is locked. Correct the login in the options 'kafka.sasl.*', or the "
            "credentials of the environment if it uses them."
        )


class TokenUnavailableError(PysparkKafkaError, ConnectionError):
    """An issuer of tokens could not be asked; ``issuer`` is its name or URL.

    The login was not refused, and may be tried again.
    """

    condition = "KAFKA_TOKEN_UNAVAILABLE"
    fault = Fault.ENVIRONMENT

    def __init__(self, issuer: str, reason: str) -> None:
        super().__init__(
            f"There is no token from {issuer} for the login: {reason.strip().rstrip('.')}. Check "
            "that the driver and the executors can reach the issuer."
        )


class TlsError(PysparkKafkaError, ConnectionError):
    """The TLS handshake with a broker failed; ``reason`` is OpenSSL's."""

    condition = "KAFKA_TLS_FAILED"
    fault = Fault.CLUSTER

    def __init__(self, bootstrap_servers: str, failure: TlsFailure, reason: str) -> None:
        self.failure = failure
        super().__init__(
            f"No TLS connection to {bootstrap_servers}: {reason.strip().rstrip('.')}. "
            f"{failure.value}",
            failure.name,
        )


class AuthorizationError(PysparkKafkaError, PermissionError):
    """The query's user lacks rights; ``principal`` is Kafka's name of the user, where it is known.

    ``request`` is a noun with its article, such as ``a request for offsets``.
    """

    condition = "KAFKA_AUTHORIZATION_FAILED"
    fault = Fault.USER

    def __init__(
        self,
        request: str,
        rights: Iterable[Right],
        bootstrap_servers: str,
        principal: str | None = None,
    ) -> None:
        self.rights = tuple(rights)
        if not self.rights:
            raise ValueError("an AuthorizationError names at least one right")
        self.principal = principal
        named = self.rights[:MAX_NAMED]
        more = len(self.rights) - len(named)
        missing = ", ".join(map(str, named)) + (f" and {more} more" if more else "")
        commands = "".join(
            f"\n  {right.acl_command(bootstrap_servers, principal)}" for right in named
        )
        super().__init__(
            f"{principal or 'The user of the query'} lacks a right for {request}: {missing}. "
            f"An administrator of the cluster can grant it:{commands}"
        )
