"""Creating librdkafka's clients, and translating their errors."""

from __future__ import annotations

import logging
import math
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar, final

from confluent_kafka import KafkaError, KafkaException

from ...domain.errors import (
    BrokerUnreachableError,
    CorruptBatchError,
    KafkaRequestError,
    OptionsError,
)
from ...domain.kafka_settings import PREFIX, api_timeout_ms
from ..tokens.providers import token_provider
from .error_codes import ALL_BROKERS_DOWN, CORRUPT_ERRORS, UNREACHABLE_ERRORS
from .settings import client_config, token_source
from .tokens import TokenRefresh, principal_of

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Mapping

    from ...domain.topic_partition import TopicPartition

T = TypeVar("T")

log = logging.getLogger("pyspark_kafka.librdkafka")
# Without a handler, librdkafka's lines would all go to standard error.
log.addHandler(logging.NullHandler())


class ConnectionOptions(Protocol):
    """What the options of a source and of a sink say of a cluster."""

    @property
    def kafka(self) -> tuple[tuple[str, str], ...]:
        """The client's settings, without their prefix."""

    @property
    def bootstrap_servers(self) -> str:
        """The brokers to connect to first."""


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
        self._config = translate(settings)
        source = token_source(settings)
        self.tokens = None if source is None else token_provider(source)
        self._refreshes: list[TokenRefresh] = []
        self._last_error = ""
        self._down_since = math.inf

    @property
    def down_s(self) -> float:
        """How long ago no broker could be reached any more; negative if one could."""
        return time.monotonic() - self._down_since

    @property
    def last_error(self) -> str:
        """The last reason why a connection failed; empty if none did."""
        return self._last_error

    def make(
        self,
        client: Callable[..., T],
        forced: Mapping[str, str],
        tuned: Mapping[str, str] = MappingProxyType({}),
    ) -> T:
        """Return a new client; ``forced`` settings override the user's, and these ``tuned`` ones.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        config = {
            **self.config(forced, tuned),
            **self._token_callback(),
            "error_cb": self.remember_error,
        }
        try:
            return client(config, logger=log)
        except KafkaException as error:
            raise self.options_error(error.args[0].str()) from error

    def config(self, forced: Mapping[str, str], tuned: Mapping[str, str]) -> dict[str, str]:
        """Return a client's settings: forced ones override the user's, and these the tuned ones."""
        return {**tuned, **self._config, **forced}

    def token_refresh(self, library: ctypes.CDLL) -> TokenRefresh:
        """Return the callback for the tokens of a handle; the connection refers to it as well."""
        if self.tokens is None:
            raise ValueError("the login has no tokens")
        self._refreshes.append(TokenRefresh(library, self.tokens))
        return self._refreshes[-1]

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

    def error(self, request: str, error: KafkaError) -> Exception:
        """Return this library's error for one of librdkafka's."""
        if error.code() in UNREACHABLE_ERRORS:
            return BrokerUnreachableError(
                self.bootstrap_servers, self.timeout_s, self._last_error or error.str()
            )
        return KafkaRequestError(request, error.str())

    def fetch_error(self, partition: TopicPartition, error: KafkaError, offset: int) -> Exception:
        """Return this library's error for a failed fetch, which failed at ``offset``."""
        if error.code() in CORRUPT_ERRORS:
            return CorruptBatchError(partition, offset, error.str())
        return self.error(f"a fetch from {partition}", error)

    def remember_error(self, error: KafkaError) -> None:
        """Keep why a connection failed; that all of them did explains nothing."""
        if error.code() != ALL_BROKERS_DOWN or not self._last_error:
            self._last_error = error.str()
        if error.code() == ALL_BROKERS_DOWN:
            self._down_since = min(self._down_since, time.monotonic())

    def remember_success(self) -> None:
        """Note that a broker was reached: librdkafka does not report that."""
        self._down_since = math.inf
