"""Making kafka-python's clients so that a failure leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kafka.net.compat import KafkaNetClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


def connect(client: Callable[..., T], config: Mapping[str, Any]) -> T:
    """Make a ``KafkaAdminClient`` or a ``KafkaConsumer``, which connect when they are made.

    Where that fails, 3.0.12 leaves the thread of the network client running, and it goes on trying
    to connect for as long as the process lives.
    """
    made: list[Any] = []

    def keep(**network_config: Any) -> Any:
        made.append(KafkaNetClient(**network_config))
        return made[-1]

    try:
        return client(**config, kafka_client=keep)
    except BaseException:
        for network in made:
            network.close()
            network._net.stop()  # noqa: SLF001  # as KafkaAdminClient.close does
        raise
