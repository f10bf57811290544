"""Creating librdkafka's clients, and translating their errors."""

from __future__ import annotations

import copy
import math
import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, final

from confluent_kafka import KafkaError, KafkaException

from ...domain.errors import (
    BrokerUnreachableError,
    InvalidResponseError,
    KafkaRequestError,
    LeaderUnavailableError,
    OptionsError,
)
from ...domain.options.client_settings import api_timeout_ms, read_java_settings
from ...domain.options.option import PREFIX
from ...domain.reading.errors import CorruptBatchError
from ...domain.security.errors import (
    REFUSED_LOGIN_S,
    AuthenticationError,
    AuthorizationError,
    TlsError,
)
from ...domain.security.rights import Operation, ResourceType, topic_right
from ...ports.clock import Deadline
from ..call_deadline import within
from ..security.tls_context import Rotating
from ..security.tokens import token_provider
from .client_handle import LOG_DEBUG, LOG_INFO, log
from .error_codes import (
    ALL_BROKERS_DOWN,
    BAD_COMPRESSION,
    CORRUPT_ERRORS,
    INVALID_RESPONSE_ERRORS,
    LEADER_ERRORS,
    REFUSED_RESOURCES,
    UNREACHABLE_ERRORS,
)
from .login_check import check_login
from .refusals import is_plaintext, is_tls_failure, login_refusal, tls_error
from .settings import client_config, token_source
from .tls import require_loadable, tls_files
from .tokens import TokenRefresh, principal_of

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition

T = TypeVar("T")


class ConnectionOptions(Protocol):
    """What the options of a source and of a sink say of a cluster."""

    @property
    def kafka(self) -> tuple[tuple[str, str], ...]:
        """The client's settings, without their prefix."""

    @property
    def bootstrap_servers(self) -> str:
        """The brokers to connect to first."""


_FETCH_MAX_BYTES: Final = 50 * 1024 * 1024
"""librdkafka's default of ``fetch.max.bytes``."""


def number_of(config: Mapping[str, str], name: str, default: int) -> int:
    """Return a setting's number; the default without one.

    Any other text has the default, too: librdkafka refuses it, and names the setting.
    """
    text = config.get(name, "")
    return int(text) if text.isdecimal() else default


def _fetch_max_bytes(config: Mapping[str, str]) -> int:
    """Return the largest fetch; librdkafka raises ``fetch.max.bytes`` to the largest message."""
    fetch = number_of(config, "fetch.max.bytes", _FETCH_MAX_BYTES)
    return max(fetch, number_of(config, "message.max.bytes", fetch))


def _max_log_level(config: Mapping[str, str]) -> int:
    """Return up to which of syslog's levels the user wants lines; ``debug`` means all of them."""
    return LOG_DEBUG if config.get("debug") else number_of(config, "log_level", LOG_INFO)


@final
class Connection:
    """The settings of a client, and the facts that its errors name."""

    def __init__(
        self,
        options: ConnectionOptions,
        translate: Callable[[Mapping[str, str]], dict[str, str]] = client_config,
    ) -> None:
        """Translate the settings to librdkafka's.

        :raises OptionsError: naming every setting that librdkafka does not know or accept.
        """
        settings = dict(options.kafka)
        self.bootstrap_servers = options.bootstrap_servers
        self.timeout_s = api_timeout_ms(settings) / 1_000
        self._translate = translate
        self._files = tls_files(settings)
        self._current = Rotating(self._files, partial(self._translated, settings))
        self._used: Mapping[str, str] | None = None
        config = self._current.current()
        source = token_source(settings)
        self.tokens = None if source is None else token_provider(source)
        self._refresh: TokenRefresh | None = None
        self._mechanism = config.get("sasl.mechanisms", "") or config.get("sasl.mechanism", "")
        self._user = config.get("sasl.username", "")
        self.fetch_max_bytes = _fetch_max_bytes(config)
        self.max_log_level = _max_log_level(config)
        known = f"User:{self._user}" if self._user else read_java_settings(settings).principal
        self.principal = known
        protocol = config["security.protocol"].upper()
        self.has_login = protocol.startswith("SASL")
        self._is_checked = protocol == "PLAINTEXT"
        self._refused: AuthenticationError | None = None
        self._refused_until = Deadline.after(0)
        self._tls_failure = ""
        self._last_error = ""
        self._down_since = math.inf

    @property
    def down_s(self) -> float:
        """How long ago no broker could be reached any more; negative if one could."""
        return time.monotonic() - self._down_since

    def one_deadline(self) -> AbstractContextManager[Deadline]:
        """Limit all waits of a block together to ``timeout_s``; blocks may be nested."""
        return within(self.timeout_s)

    @property
    def last_error(self) -> str:
        """The last reason why a connection failed; empty if none did."""
        return self._last_error

    def make(
        self,
        client: Callable[..., T],
        forced: Mapping[str, str],
        tuned: Mapping[str, str] = MappingProxyType({}),
        logger: object = log,
    ) -> T:
        """Return a new client; ``forced`` settings override the user's, and these ``tuned`` ones.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        :raises AuthenticationError: if a broker refuses the login.
        :raises TlsError: if the TLS handshake fails.
        """
        self.require_login()
        config = {
            **self.config(forced, tuned),
            **self._token_callback(),
            "error_cb": self.remember_error,
        }
        try:
            return client(config, logger=logger)
        except KafkaException as error:
            raise self.options_error(error.args[0].str()) from None

    def config(self, forced: Mapping[str, str], tuned: Mapping[str, str]) -> dict[str, str]:
        """Return a client's settings: forced ones override the user's, and these the tuned ones."""
        current = self._current.current()
        if current is not self._used:
            # Handshakes failed with other certificates.
            self._tls_failure = ""
        self._used = current
        return {**tuned, **current, **forced}

    @property
    def is_outdated(self) -> bool:
        """Whether certificates or keys were replaced since the settings were last returned.

        librdkafka loads them when a client is created: it needs a new one.
        """
        return self._used is not None and self._current.current() is not self._used

    def token_refresh(self, library: ctypes.CDLL) -> TokenRefresh:
        """Return the callback for the tokens of all handles, which the connection keeps."""
        if self.tokens is None:
            raise ValueError("the login has no tokens")
        self._refresh = self._refresh or TokenRefresh(library, self.tokens)
        return self._refresh

    def _token_callback(self) -> dict[str, Callable[[str], tuple[object, ...]]]:
        """Return the callback for the tokens of confluent-kafka's clients, if the login has some.

        :raises AuthenticationError: if the first token is refused.
        :raises TokenUnavailableError: if its issuer cannot be asked.
        """
        tokens = self.tokens
        if tokens is None:
            return {}
        tokens.token()

        def current(_config: str) -> tuple[object, ...]:
            token = tokens.token()
            expires_s = token.expires_ms / 1_000
            return str(token.value), expires_s, principal_of(token), dict(token.extensions)

        return {"oauth_cb": current}

    def options_error(self, reason: str) -> OptionsError:
        """Return the error for a setting that librdkafka does not know or accept."""
        # 'No such configuration property: "foo"' names the setting without the option's prefix.
        reason = reason.replace('property: "', f'property: "{PREFIX}')
        return OptionsError([f"The client 'confluent': {reason.rstrip()}"])

    def require_login(self) -> None:
        """Log in before the first client does, so that a refused login is not repeated.

        Unreachable brokers are not waited for: the client waits.

        :raises AuthenticationError: if a broker refuses the login, or did a short time ago.
        :raises TlsError: if the TLS handshake fails.
        """
        self.raise_refusal()
        self._is_checked = self._is_checked or check_login(self, self._current.current())

    def raise_refusal(self) -> None:
        """Raise what the handled events say of a refused login, or of a failed TLS handshake.

        :raises AuthenticationError: if a broker refused the login within the last five minutes.
        :raises TlsError: if a handshake failed since the last call.
        """
        refusal = self._refusal()
        if refusal is not None:
            raise refusal

    def error(self, request: str, error: KafkaError, *rights: Right) -> Exception:
        """Return this library's error for one of librdkafka's.

        ``rights`` are all that the request needs; an error names those on resources of the type
        that the broker refused.
        """
        refusal = self._refusal() or self.authorization_error(request, error.code(), rights)
        if refusal is not None:
            return refusal
        if error.code() in UNREACHABLE_ERRORS:
            return BrokerUnreachableError(
                self.bootstrap_servers, self.timeout_s, self._last_error or error.str()
            )
        if error.code() in INVALID_RESPONSE_ERRORS:
            return InvalidResponseError(request, error.str())
        if error.code() in LEADER_ERRORS:
            return LeaderUnavailableError(request, error.str())
        return KafkaRequestError(request, error.str())

    def authorization_error(
        self, request: str, code: int, rights: Iterable[Right]
    ) -> AuthorizationError | None:
        """Return the error of missing rights; ``None`` for the code of another error."""
        resource = REFUSED_RESOURCES.get(code)
        # Write on any topic replaces the right on the cluster.
        missing = [right for right in rights if resource in (right.resource, ResourceType.CLUSTER)]
        if not missing:
            return None
        return AuthorizationError(request, missing, self.bootstrap_servers, self.principal)

    def fetch_error(self, partition: TopicPartition, error: KafkaError, offset: int) -> Exception:
        """Return this library's error for a failed fetch, which failed at ``offset``."""
        if error.code() in CORRUPT_ERRORS:
            reason = error.str()
            if error.code() == BAD_COMPRESSION:
                # librdkafka says the same where zstd exceeds receive.message.max.bytes.
                reason += " It may decompress to more bytes than 'maxRecordBytes' allows"
            return CorruptBatchError(partition, offset, reason)
        right = topic_right(Operation.READ, partition.topic)
        return self.error(f"a fetch from {partition}", error, right)

    def remember_error(self, error: KafkaError) -> None:
        """Keep why a connection failed; that all of them did explains nothing."""
        if error.code() != ALL_BROKERS_DOWN or not self._last_error:
            self._last_error = error.str()
        if error.code() == ALL_BROKERS_DOWN:
            self._down_since = min(self._down_since, time.monotonic())
        reason = login_refusal(error, is_known=self._is_checked)
        if reason is not None:
            self._refused = AuthenticationError(
                self.bootstrap_servers, self._mechanism, self._user, reason
            )
            self._refused_until = Deadline.after(REFUSED_LOGIN_S)
        elif is_tls_failure(error) or (not self._is_checked and is_plaintext(error)):
            self._tls_failure = error.str()

    def remember_success(self) -> None:
        """Note that a broker was reached: librdkafka does not report that."""
        self._down_since = math.inf

    def _refusal(self) -> AuthenticationError | TlsError | None:
        if self._refused is not None and not self._refused_until.has_passed:
            # Several threads may raise it, and each adds its own traceback.
            return copy.copy(self._refused)
        failure, self._tls_failure = self._tls_failure, ""
        config = self._current.current()
        return tls_error(self.bootstrap_servers, failure, config) if failure else None

    def _translated(self, settings: Mapping[str, str]) -> dict[str, str]:
        config = self._translate(settings)
        if self._files:
            try:
                require_loadable(config)
            except KafkaException as error:
                raise self.options_error(error.args[0].str()) from None
        return config
