"""The clients of a cluster, which log in before the first of them is made."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, TypeVar, final

from confluent_kafka import KafkaException

from ...domain.options.option import server_list
from ...domain.security.errors import TokenUnavailableError
from ...ports.clock import Deadline
from .cluster_errors import ClusterErrors
from .cluster_settings import ClusterSettings
from .handle import Handle, log, principal_of
from .librdkafka import EVENT_ERROR, PRODUCER, load
from .settings import client_config

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Mapping

    from ...domain.options.client_settings import ClientOptions, JavaSettings


T = TypeVar("T")

_MAX_CHECK_S: Final = 2.0
"""The longest delay of the first client by brokers that do not answer."""

_MAX_SHARE: Final = 4
"""The divisor of the requests' time-out, which limits the check as well."""

_QUIET_S: Final = 0.1
"""How long to wait after an error: a broker may have further addresses."""

_PASSED: Final = (
    *("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https."),
    *("socket.", "broker.address.", "client."),
)

_FORCED: Final = {
    # The handle is closed long before librdkafka would connect again.
    "reconnect.backoff.ms": "60000",
    "reconnect.backoff.max.ms": "60000",
    "metadata.recovery.strategy": "none",
}

_NO_TOKEN: Final = "OAuth token not set"  # noqa: S105
"""In confluent-kafka's error of a client whose first token was late or had expired."""

_SERVERS: Final = "bootstrap.servers"

_IS_UP: Final = "-> UP"
"""The end of librdkafka's line, with ``debug=broker``, when a login has succeeded."""


@final
class Cluster:
    """A cluster's settings and its brokers' errors; makes clients and handles."""

    def __init__(
        self,
        options: ClientOptions,
        translate: Callable[[JavaSettings], dict[str, str]] = client_config,
    ) -> None:
        """Translate the settings to librdkafka's; nothing is connected yet.

        :raises OptionsError: naming every setting that librdkafka does not know or accept.
        :raises UnsupportedFeatureError: if librdkafka's C API cannot be called.
        """
        self.library = load()
        self.settings = ClusterSettings(options, translate)
        self.errors = ClusterErrors(self.settings)

    def require_login(self) -> None:
        """Log in before the first client does, so that a refused login is not repeated.

        Unreachable brokers are not waited for: the client waits.

        :raises AuthenticationError: if a broker refuses the login, or did a short time ago.
        :raises TlsError: if the TLS handshake fails.
        """
        self.errors.raise_refusal()
        if not self.errors.is_checked:
            self.errors.is_checked = check_login(self.library, self.settings, self.errors)

    def new_handle(self, kind: int, config: Mapping[str, str], events: int = 0) -> Handle:
        """Return a new handle, whose main queue gets log lines, errors and ``events``.

        No request is sent yet, but a first login.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        :raises AuthenticationError: if a broker, or the issuer of a token, refuses the login.
        :raises TlsError: if the TLS handshake fails.
        :raises TokenUnavailableError: if the issuer cannot be asked.
        """
        self.require_login()
        return Handle(self.library, kind, self.settings, self.errors, config, events)

    def make(self, client: Callable[..., T], forced: Mapping[str, str]) -> T:
        """Return a new client of confluent-kafka's; ``forced`` settings override the user's.

        :raises OptionsError: as ``new_handle`` does, and the others.
        """
        self.require_login()
        config = {
            **self.settings.config(forced, {}),
            **self._token_callback(),
            "error_cb": self.errors.remember_error,
        }
        try:
            return client(config, logger=log)
        except KafkaException as error:
            reason = error.args[0].str()
            if _NO_TOKEN in reason:
                raise TokenUnavailableError("the issuer of tokens", reason) from None
            raise self.settings.options_error(reason) from None

    def _token_callback(self) -> dict[str, Callable[[str], tuple[object, ...]]]:
        """Return the callback for the tokens of confluent-kafka's clients, if the login has some.

        :raises AuthenticationError: if the first token is refused.
        :raises TokenUnavailableError: if its issuer cannot be asked.
        """
        tokens = self.settings.tokens
        if tokens is None:
            return {}
        tokens.token()

        def current(_config: str) -> tuple[object, ...]:
            token = tokens.token()
            expires_s = token.expires_ms / 1_000
            return str(token.value), expires_s, principal_of(token), dict(token.extensions)

        return {"oauth_cb": current}


def check_login(library: ctypes.CDLL, settings: ClusterSettings, errors: ClusterErrors) -> bool:
    """Log in at one broker; return whether it succeeded, ``False`` if none answered in time.

    librdkafka logs in again and again: after 50 ms, on each address of a broker, on each broker,
    and while a call waits, nothing stops this. A client for one broker logs in once: it is closed
    as soon as the broker refuses the login.

    :raises AuthenticationError: if the broker refuses the login.
    :raises TlsError: if the TLS handshake fails.
    """
    config = settings.current()
    passed = {name: value for name, value in config.items() if name.startswith(_PASSED)}
    debug = ",".join(filter(None, (config.get("debug"), "broker")))
    servers = server_list(config.get(_SERVERS, ""))
    random.shuffle(servers)
    deadline = Deadline.after(min(_MAX_CHECK_S, settings.timeout_s / _MAX_SHARE))
    for server in servers:
        if deadline.has_passed:
            break
        given = {**passed, **_FORCED, "debug": debug, _SERVERS: server}
        handle = Handle(library, PRODUCER, settings, errors, given)
        try:
            if _logs_in(handle, errors, deadline):
                return True
        finally:
            handle.close()
    return False


def _logs_in(handle: Handle, errors: ClusterErrors, deadline: Deadline) -> bool:
    lines: list[str] = []
    quiet = Deadline.after(None)
    while not (deadline.has_passed or quiet.has_passed):
        wait_s = min(deadline.remaining, quiet.remaining)
        lines.clear()
        kind = handle.poll(round(wait_s * 1_000), lines.append)
        if not kind:
            continue
        errors.raise_refusal()
        if any(line.endswith(_IS_UP) for line in lines):
            return True
        if kind == EVENT_ERROR:
            quiet = Deadline.after(_QUIET_S)
    return False
