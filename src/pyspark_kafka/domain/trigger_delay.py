"""Whether a micro-batch waits until there is enough to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .topic_partition import TopicPartition

WAITED_LONG_ENOUGH: Final = "Maximum wait time is passed, triggering batch"
NOT_ENOUGH: Final = (
    "Delaying batch as number of records available is less than minOffsetsPerTrigger"
)


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the batch is delayed, what to remember of it, and what to log, if anything."""

    is_delayed: bool
    next: TriggerDelay
    message: str | None = None


@final
@dataclass(frozen=True, slots=True)
class TriggerDelay:
    """When the last batch ran, in milliseconds of a clock whose origin means nothing.

    ``None`` before the first one. ``KafkaMicroBatchStream`` starts at 0 against the wall clock,
    which comes to the same: the first batch has always been awaited long enough.
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
        """Delay the batch if fewer than ``min_rows`` offsets are new and there is still time.

        ``delayBatch`` of Spark's ``KafkaMicroBatchStream``: all offsets of a partition that
        ``current`` does not have are new, and partitions that ``latest`` lacks do not count.
        """
        if self.last_trigger_ms is None or now_ms - self.last_trigger_ms >= max_delay_ms:
            return Decision(is_delayed=False, next=TriggerDelay(now_ms), message=WAITED_LONG_ENOUGH)
        new_rows = sum(offset - current.get(partition, 0) for partition, offset in latest.items())
        if new_rows < min_rows:
            return Decision(is_delayed=True, next=self, message=NOT_ENOUGH)
        return Decision(is_delayed=False, next=TriggerDelay(now_ms))
