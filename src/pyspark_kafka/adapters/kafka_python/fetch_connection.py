"""A connection to one broker that only fetch requests go over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from .fetch_wire import FetchResponse, FetchSettings, fetch_version
from .raw_connection import RawConnection

if TYPE_CHECKING:
    from ...domain.topic_partition import TopicPartition

_DEFAULT_FRAME_BYTES: Final = 4 * 1024 * 1024


@final
class ReceiveBuffer:
    """Memory for one response; a larger one gets its own."""

    def __init__(self) -> None:
        self._memory = np.empty(_DEFAULT_FRAME_BYTES, np.uint8)

    def view(self, size: int) -> memoryview:
        """Return memory for a frame; what it held before is overwritten."""
        if size > len(self._memory):
            return np.empty(size, np.uint8).data
        return self._memory.data[:size]


@final
class FetchConnection:
    """Sends fetch requests, one at a time."""

    def __init__(self, connected: Any, settings: FetchSettings, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nobody else uses; a response may take ``timeout_ms``."""
        self._version = fetch_version(connected.broker_version_data)
        self._settings = settings
        self._socket = RawConnection(connected, timeout_ms)
        self._correlation_id = 0
        self._in_flight: tuple[TopicPartition, int] | None = None

    @property
    def in_flight(self) -> tuple[TopicPartition, int] | None:
        """The partition and the offset of the request in flight."""
        return self._in_flight

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask for authentication again."""
        return self._socket.is_expired

    def send(self, partition: TopicPartition, offset: int) -> None:
        """Request the records from an offset on.

        :raises OSError: if the connection is lost.
        """
        self._correlation_id = self._socket.next_correlation_id()
        request = self._settings.request(
            partition, offset, version=self._version, correlation_id=self._correlation_id
        )
        self._socket.send(request)
        self._in_flight = partition, offset

    def receive(self, buffer: ReceiveBuffer) -> FetchResponse:
        """Wait for the response to the request; its records are in the buffer.

        :raises OSError: if the connection is lost, or nothing comes in time.
        :raises KafkaProtocolError: if what comes is no response to it.
        """
        frame = self._socket.receive(buffer.view)
        self._in_flight = None
        return FetchResponse.of(frame, self._version, self._correlation_id)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._socket.close()
