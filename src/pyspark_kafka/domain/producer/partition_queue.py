"""The batches of one partition."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, final

from .batch import ProducerBatch, R

if TYPE_CHECKING:
    from .producer_id import ProducerIdAndEpoch


@final
@dataclass(slots=True)
class PartitionQueue(Generic[R]):
    """Batches that wait, and batches that came back.

    While one has come back, none is sent until all in flight are answered or lost: the broker
    accepts them in the order of their sequence numbers only. Times are monotonic, in seconds.
    """

    producer: ProducerIdAndEpoch | None = None
    next_sequence: int = 0
    has_lost_sequence: bool = False
    waiting: deque[ProducerBatch[R]] = field(default_factory=deque)
    returned: list[ProducerBatch[R]] = field(default_factory=list)
    in_flight: int = 0
    node: int = -1
    """The broker to which batches are in flight."""

    is_leader_stale: bool = False
    retry_at: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    max_batch_bytes: int | None = None
    """The limit found by splits, where the topic allows less than the settings."""

    def is_ready(self, now: float) -> bool:
        """Return whether the first waiting batch may be sent."""
        return not self.returned and now >= self.retry_at

    def append(self, batch: ProducerBatch[R]) -> None:
        """Add a batch behind the others, with the next sequence numbers."""
        batch.sequence = self.next_sequence
        self.next_sequence = batch.next_sequence
        self.waiting.append(batch)

    def pop(self, node: int) -> ProducerBatch[R]:
        """Return the first waiting batch, which is in flight to a broker from now on."""
        self.in_flight += 1
        self.node = node
        return self.waiting.popleft()

    def land(self, *returned: ProducerBatch[R]) -> None:
        """Count one batch less in flight; what comes of it is to be sent again."""
        self.in_flight -= 1
        self.returned += returned
        if not self.in_flight:
            # Responses come in the order of requests, and connections are lost all at once.
            self.waiting.extendleft(reversed(self.returned))
            self.returned.clear()

    def reset_sequences(self) -> None:
        """Number what waits from 0 on, for another producer id."""
        self.producer, self.has_lost_sequence, self.next_sequence = None, False, 0
        waiting, self.waiting = self.waiting, deque()
        for batch in waiting:
            self.append(batch)

    def succeed(self) -> None:
        """Forget earlier failures."""
        self.failing_since, self.failures = None, 0

    def fail(self, now: float, backoff_s: float) -> float:
        """Count a failure, and return for how long there were only failures."""
        if self.failing_since is None:
            self.failing_since = now
        self.failures += 1
        self.retry_at = now + backoff_s
        return now - self.failing_since
