"""A connection to one broker that only produce requests go over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from .produce_wire import ProduceAnswer
from .taken_socket import TakenSocket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .outgoing_batch import OutgoingBatch
    from .produce_wire import ProduceSettings


@final
@dataclass(frozen=True, slots=True)
class InFlight:
    """A request that waits for its answer."""

    correlation_id: int
    batches: tuple[OutgoingBatch, ...]


@final
class ProduceConnection:
    """Sends produce requests over a socket that was kafka-python's, several before an answer."""

    def __init__(self, connected: Any, settings: ProduceSettings, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nobody else uses; an answer has so long to come."""
        self._version = settings.version(connected.broker_version_data)
        self._settings = settings
        self._socket = TakenSocket(connected, timeout_ms)
        self.in_flight: deque[InFlight] = deque()

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask who this is again."""
        return self._socket.is_expired

    def send(self, batches: Sequence[OutgoingBatch], transactional_id: str | None) -> None:
        """Send one batch for each of some partitions.

        :raises OSError: if the connection is gone.
        """
        correlation_id = self._socket.next_correlation_id()
        # In flight before it is sent: nobody knows how much of it arrives if the connection breaks.
        self.in_flight.append(InFlight(correlation_id, tuple(batches)))
        request = self._settings.request(
            {batch.partition: batch.encoded for batch in batches},
            transactional_id,
            version=self._version,
            correlation_id=correlation_id,
        )
        self._socket.send(request)

    def receive(self) -> ProduceAnswer:
        """Wait for the answer to the oldest request, which stays in flight until it is taken.

        :raises OSError: if the connection is gone, or nothing comes in time.
        :raises KafkaProtocolError: if what comes is no answer.
        """
        frame = self._socket.receive(lambda size: memoryview(bytearray(size)))
        return ProduceAnswer.of(frame, self._version, self.in_flight[0].correlation_id)

    def close(self) -> None:
        """Hang up; a second call does nothing."""
        self._socket.close()
