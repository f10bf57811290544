"""Delaying a micro-batch until there are enough new offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..topic_partition import TopicPartition

WAITED_LONG_ENOUGH: Final = "Maximum wait time is passed, triggering batch"
NOT_ENOUGH: Final = (
    "Delaying batch as number of records available is less than minOffsetsPerTrigger"
)


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the batch is delayed, the next state, and a message to log, if any."""

    is_delayed: bool
    next: TriggerDelay
    message: str | None = None


@final
@dataclass(frozen=True, slots=True)
class TriggerDelay:
    """The time of the last batch, in milliseconds of a monotonic clock; ``None`` before the first.

    ``KafkaMicroBatchStream`` starts with 0 on the wall clock, which has the same effect: the first
    batch is never delayed.
    """

    last_trigger_ms: int | None = None

    def decide(
        self,
        now_ms: int,
        min_rows: int,
        max_delay_ms: int,
        latest: Mapping[TopicPartition, int],
        current: Mapping[TopicPartition, int],
    ) -> Decision:
        """Delay the batch if fewer than ``min_rows`` offsets are new and the delay is not over.

        As ``delayBatch`` of Spark's ``KafkaMicroBatchStream``: all offsets of a partition that is
        not in ``current`` are new, and partitions that are not in ``latest`` do not count.
        """
        if self.last_trigger_ms is None or now_ms - self.last_trigger_ms >= max_delay_ms:
            return Decision(is_delayed=False, next=TriggerDelay(now_ms), message=WAITED_LONG_ENOUGH)
        new_rows = sum(offset - current.get(partition, 0) for partition, offset in latest.items())
        if new_rows < min_rows:
            return Decision(is_delayed=True, next=self, message=NOT_ENOUGH)
        return Decision(is_delayed=False, next=TriggerDelay(now_ms))
