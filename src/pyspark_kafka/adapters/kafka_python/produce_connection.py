"""A connection to one broker that only produce requests go over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from .produce_wire import responses_of
from .raw_connection import RawConnection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.producer.errors import Failure
    from ...domain.topic_partition import TopicPartition
    from .produce_wire import ProduceSettings


@final
class ProduceConnection:
    """Sends produce requests, several before the first response."""

    def __init__(self, connected: Any, settings: ProduceSettings, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nobody else uses; a response may take ``timeout_ms``."""
        self._version = settings.version(connected.broker_version_data)
        self._settings = settings
        self._socket = RawConnection(connected, timeout_ms)
        self._received = 0

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask for authentication again."""
        return self._socket.is_expired

    def send(self, batches: Mapping[TopicPartition, bytes], transactional_id: str | None) -> None:
        """Send one batch for each of some partitions.

        :raises OSError: if the connection is lost.
        """
        correlation_id = self._socket.next_correlation_id()
        request = self._settings.request(
            batches, transactional_id, version=self._version, correlation_id=correlation_id
        )
        self._socket.send(request)

    def receive(self) -> Mapping[TopicPartition, Failure | None]:
        """Wait for the response to the oldest request, and return what failed for each partition.

        :raises OSError: if the connection is lost, or nothing comes in time.
        :raises KafkaProtocolError: if what comes is no response to it.
        """
        frame = self._socket.receive(lambda size: memoryview(bytearray(size)))
        # Brokers answer in the order of the requests, which are numbered from 1 on.
        self._received += 1
        return responses_of(frame, self._version, self._received)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._socket.close()
