"""The errors of logins, rights and TLS; none contains a password, a token or a key."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

from ..errors import MAX_NAMED, Fault, PysparkKafkaError, Recovery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rights import Right


class TlsFailure(enum.Enum):
    """A reason, by the name of the error's sub-condition; the value is what to do next."""

    CERTIFICATE_NOT_TRUSTED = (
        "Set 'kafka.ssl.truststore.location' or 'kafka.ssl.truststore.certificates' to the "
        "authority that issued the brokers' certificates."
    )
    CERTIFICATE_EXPIRED = (
        "Renew the brokers' certificate, or correct the clock of this machine if the certificate "
        "is valid."
    )
    HOST_NAME_MISMATCH = (
        "Connect to a name that the brokers' certificate has, in 'kafka.bootstrap.servers' and in "
        "the brokers' advertised listeners; the empty option "
        "'kafka.ssl.endpoint.identification.algorithm' turns this check off."
    )
    VERSION_NOT_SHARED = (
        "Client and broker allow no common version of TLS: compare "
        "'kafka.ssl.enabled.protocols' with the brokers' 'ssl.enabled.protocols'."
    )
    CIPHER_NOT_SHARED = (
        "Client and broker allow no common cipher suite: compare 'kafka.ssl.cipher.suites' with "
        "the brokers' 'ssl.cipher.suites'."
    )
    CLIENT_CERTIFICATE_REFUSED = (
        "The broker requires a client certificate that it trusts and that is not expired: check "
        "'kafka.ssl.keystore.location' or 'kafka.ssl.keystore.certificate.chain'."
    )
    NOT_TLS = (
        "The port does not speak TLS: check the port in 'kafka.bootstrap.servers' and "
        "'kafka.security.protocol'."
    )
    TLS_EXPECTED = (
        "The listener expects TLS: set 'kafka.security.protocol' to SSL or SASL_SSL, or check the "
        "port in 'kafka.bootstrap.servers'."
    )
    HANDSHAKE_FAILED = "See the brokers' logs for the reason."


_WORDS: Final = (
    # The client's own checks of the broker's certificate.
    (TlsFailure.CERTIFICATE_EXPIRED, r"certificate has expired|certificate is not yet valid"),
    (TlsFailure.HOST_NAME_MISMATCH, r"hostname mismatch|ip address mismatch|not valid for"),
    # Alerts of the broker, about the client's certificate.
    (
        TlsFailure.CLIENT_CERTIFICATE_REFUSED,
        (
            r"alert (?:bad certificate|certificate|unknown ca|unsupported certificate)"
            r"|certificate.required|peer did not return a certificate"
        ),
    ),
    (
        TlsFailure.CERTIFICATE_NOT_TRUSTED,
        r"certificate verify failed|self.signed certificate|unable to get (?:local )?issuer",
    ),
    (TlsFailure.VERSION_NOT_SHARED, r"protocol.version|unsupported.protocol"),
    (TlsFailure.CIPHER_NOT_SHARED, r"handshake.failure|no.shared.cipher|no.ciphers.available"),
    (TlsFailure.NOT_TLS, r"wrong.version.number|http request|packet length too long"),
    (TlsFailure.HANDSHAKE_FAILED, r"ssl handshake|ssl routines|\[ssl[:\]]"),
)


def tls_failure(text: str) -> TlsFailure | None:
    """Return the TLS failure in a client's text about a connection; ``None`` if it has none.

    The texts are OpenSSL's (``X509_verify_cert_error_string``, ``SSL_alert_desc_string_long``, and
    the reasons of its errors), around which Python and librdkafka put their own.
    """
    lower = text.lower().replace("_", " ")
    return next((failure for failure, words in _WORDS if re.search(words, lower)), None)


REFUSED_LOGIN_S: Final = 300.0
"""How long a process does not retry a refused login: some clusters lock accounts after a few.

An idle client is kept as long.
"""


class AuthenticationError(PysparkKafkaError, PermissionError):
    """A broker or a token's issuer refused the login.

    This process does not repeat the login for ``REFUSED_LOGIN_S``. ``user`` is empty if the
    mechanism has none, and ``reason`` is the other side's.
    """

    condition = "KAFKA_AUTHENTICATION_FAILED"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

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

    The login was not refused, and may be retried.
    """

    condition = "KAFKA_TOKEN_UNAVAILABLE"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE

    def __init__(self, issuer: str, reason: str) -> None:
        super().__init__(
            f"There is no token from {issuer} for the login: {reason.strip().rstrip('.')}. Check "
            "that the driver and the executors can reach the issuer."
        )


class TlsError(PysparkKafkaError, ConnectionError):
    """The TLS handshake with a broker failed; ``reason`` is OpenSSL's."""

    condition = "KAFKA_TLS_FAILED"
    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE

    def __init__(self, bootstrap_servers: str, failure: TlsFailure, reason: str) -> None:
        self.failure = failure
        if failure in (TlsFailure.NOT_TLS, TlsFailure.TLS_EXPECTED):
            self.fault = Fault.USER
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
    recovery = Recovery.PERMANENT

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
