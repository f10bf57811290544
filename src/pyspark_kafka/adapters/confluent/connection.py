"""Making librdkafka's clients, and its errors as this library's."""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from confluent_kafka import KafkaError, KafkaException

from ...domain.errors import BrokerUnreachableError, KafkaRequestError, OptionsError
from ...domain.kafka_settings import PREFIX, api_timeout_ms
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.options import SourceOptions

T = TypeVar("T")

log = logging.getLogger("pyspark_kafka.librdkafka")
# Without a handler of its own, librdkafka's lines would all reach standard error.
log.addHandler(logging.NullHandler())

UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001  # librdkafka's own codes begin with an underscore
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
    }
)


@final
class Connection:
    """What one client needs to be made, and what an error has to name."""

    def __init__(self, options: SourceOptions) -> None:
        settings = dict(options.kafka)
        self.bootstrap_servers = options.bootstrap_servers
        self.timeout_s = api_timeout_ms(settings) / 1_000
        self._config = client_config(settings)
        self._last_error = ""

    def make(
        self,
        client: Callable[..., T],
        forced: Mapping[str, object],
        tuned: Mapping[str, object] = MappingProxyType({}),
    ) -> T:
        """Make a client; ``forced`` settings stand above the user's, ``tuned`` ones below.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        config = {**tuned, **self._config, **forced, "error_cb": self._remember}
        try:
            return client(config, logger=log)
        except KafkaException as error:
            raise OptionsError([f"The client 'confluent': {_described(error)}"]) from error

    def error(self, request: str, error: KafkaError) -> Exception:
        """Give this library's error for one of librdkafka's."""
        if error.code() in UNREACHABLE:
            return BrokerUnreachableError(
                self.bootstrap_servers, self.timeout_s, self._last_error or error.str()
            )
        return KafkaRequestError(request, error.str())

    def _remember(self, error: Any) -> None:
        self._last_error = error.str()


def _described(error: KafkaException) -> str:
    # 'No such configuration property: "foo"' names the setting without the option's prefix.
    text: str = error.args[0].str()
    return text.replace('property: "', f'property: "{PREFIX}')
