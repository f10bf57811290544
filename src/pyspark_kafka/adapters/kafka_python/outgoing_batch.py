"""Record batches on their way to a partition, in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final

if TYPE_CHECKING:
    import numpy as np

    from ...domain.topic_partition import TopicPartition
    from ..kafka_format.producer_columns import ProducerColumns

    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class OutgoingBatch:
    """A batch as it is sent, and the rows that it is made of, for it may have to be made anew."""

    partition: TopicPartition
    columns: ProducerColumns
    rows: Longs
    sequence: int
    encoded: bytes
    payload_bytes: int

    @property
    def memory(self) -> int:
        """The bytes that it holds, its share of the rows' own included."""
        return len(self.encoded) + self.payload_bytes


@final
@dataclass(slots=True)
class Line:
    """The batches of one partition: those that wait, and those that came back.

    While one has come back, none is sent before all that are in flight have: the broker takes
    them by their sequence numbers, in order. Times are monotonic, in seconds.
    """

    next_sequence: int = 0
    in_flight: int = 0
    node: int = -1
    """The broker to which it is in flight."""

    waiting: deque[OutgoingBatch] = field(default_factory=deque)
    returned: list[OutgoingBatch] = field(default_factory=list)
    not_before: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    most_bytes: int | None = None
    """What a batch of this topic may have, where that is found to be less than what is usual."""

    @property
    def is_ready(self) -> bool:
        """Whether its first batch may be sent."""
        return bool(self.waiting) and not self.returned

    def succeed(self) -> None:
        """Forget failures: the next one begins to be counted anew."""
        self.failing_since, self.failures = None, 0

    def fail(self, now: float, pause: float) -> float:
        """Count a failure, and give for how long there was nothing else."""
        self.failing_since = self.failing_since or now
        self.failures += 1
        self.not_before = now + pause
        return now - self.failing_since

    def settle(self) -> None:
        """Put what came back before what waits, once nothing is in flight any more."""
        if self.returned and not self.in_flight:
            # Answers come in the order of requests, and connections are lost all at once.
            self.waiting.extendleft(reversed(self.returned))
            self.returned.clear()
