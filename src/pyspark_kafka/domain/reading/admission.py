"""How much a micro-batch reads, and when: Spark's ``ReadLimit`` and its subclasses."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, final

from ..partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..topic_partition import TopicPartition


@final
@dataclass(frozen=True, slots=True)
class ReadAllAvailable:
    """No limit; it takes precedence over other limits, as ``Trigger.Once`` needs."""


@final
@dataclass(frozen=True, slots=True)
class ReadMaxRows:
    """At most about ``max_rows`` offsets (option ``maxOffsetsPerTrigger``)."""

    max_rows: int

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {self.max_rows}")


@final
@dataclass(frozen=True, slots=True)
class ReadMinRows:
    """At least ``min_rows`` offsets, unless ``max_trigger_delay_ms`` milliseconds have passed.

    Options ``minOffsetsPerTrigger`` and ``maxTriggerDelay``.
    """

    min_rows: int
    max_trigger_delay_ms: int

    def __post_init__(self) -> None:
        if self.min_rows < 0:
            raise ValueError(f"min_rows must not be negative, got {self.min_rows}")
        if self.max_trigger_delay_ms < 0:
            raise ValueError(
                f"max_trigger_delay_ms must not be negative, got {self.max_trigger_delay_ms}"
            )


@final
@dataclass(frozen=True, slots=True)
class ReadMaxBytes:
    """At most about ``max_bytes`` of keys, values and headers, estimated from sampled records."""

    max_bytes: int

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, got {self.max_bytes}")


SingleReadLimit = ReadAllAvailable | ReadMaxRows | ReadMinRows | ReadMaxBytes


@final
@dataclass(frozen=True, slots=True)
class CompositeReadLimit:
    """Several limits at once; they cannot be nested."""

    limits: tuple[SingleReadLimit, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise ValueError("a composite limit needs at least one limit")
        # Limits come from Spark, which the type checker does not see.
        if any(isinstance(limit, CompositeReadLimit) for limit in self.limits):
            raise ValueError("a composite limit cannot contain another one")


ReadLimit = SingleReadLimit | CompositeReadLimit


def limits_of(limit: ReadLimit) -> tuple[SingleReadLimit, ...]:
    """Return the limits of a composite, or the single limit."""
    return limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)


def default_read_limit(
    min_offsets: int | None,
    max_offsets: int | None,
    max_trigger_delay_ms: int,
    max_bytes: int | None,
) -> ReadLimit:
    """Return the read limit of a query's options; ``None`` stands for an option not set.

    As ``getDefaultReadLimit`` of Spark's ``KafkaMicroBatchStream``, plus the limit of bytes. The
    delay has an effect only with ``min_offsets``.
    """
    limits: list[SingleReadLimit] = []
    if min_offsets is not None:
        limits.append(ReadMinRows(min_offsets, max_trigger_delay_ms))
    if max_offsets is not None:
        limits.append(ReadMaxRows(max_offsets))
    if max_bytes is not None:
        limits.append(ReadMaxBytes(max_bytes))
    match limits:
        case []:
            return ReadAllAvailable()
        case [limit]:
            return limit
        case _:
            return CompositeReadLimit(tuple(limits))


DEFAULT_BYTES_PER_RECORD: Final = 1024
"""The assumed size of a record before any was measured."""


def rate_limit(
    limit: int, begin: Mapping[TopicPartition, int], until: PartitionOffsets
) -> PartitionOffsets:
    """Return the end of a batch of about ``limit`` offsets, shared in proportion to the backlogs.

    ``rateLimit`` of Spark's ``KafkaMicroBatchStream``, with its doubles: a share below one offset
    is rounded up, so that small partitions do not starve, and any other down. The sum may therefore
    exceed the limit, and a limit that is just enough may leave an offset unread. A partition
    without ``begin``, or with one at or after its end, is read to its end. ``limit`` is at least 1.
    """
    sizes = _sizes(begin, until)
    total = float(sum(sizes.values()))
    if total < 1:
        return until
    return until.merge(
        {
            partition: min(
                until[partition], begin[partition] + _whole_offsets(limit * (size / total))
            )
            for partition, size in sizes.items()
        }
    )


def rate_limit_bytes(
    limit_bytes: int,
    begin: Mapping[TopicPartition, int],
    until: PartitionOffsets,
    bytes_per_record: Mapping[TopicPartition, float],
    served: Collection[TopicPartition] = (),
) -> PartitionOffsets:
    """Return the end of a batch of about ``limit_bytes``, shared in proportion to the backlogs.

    A partition's backlog is its offsets times its ``bytes_per_record``; a partition that was not
    measured gets the average of the others, or else ``DEFAULT_BYTES_PER_RECORD``. Shares are
    rounded down to records, so that the estimate stays within the limit, unless a single record is
    larger. If a share is below a record, up to half of the limit goes to one record each, so that
    no partition starves: first to partitions that are not in ``served``, the longest backlog first,
    then in the order of ``served``; the caller appends the partitions that a batch advances.
    ``limit_bytes`` is at least 1. The JVM connector has no such limit.
    """
    # Not loaded where options are parsed.
    from fractions import Fraction
    from statistics import fmean

    sizes = _sizes(begin, until)
    default = fmean(bytes_per_record.values()) if bytes_per_record else DEFAULT_BYTES_PER_RECORD
    measures = {each: bytes_per_record.get(each, default) for each in sizes}
    total = sum(size * measures[partition] for partition, size in sizes.items())
    if total <= limit_bytes:
        return until
    firsts: Sequence[TopicPartition] = ()
    if min(sizes.values()) * limit_bytes < total:
        turns = {partition: turn for turn, partition in enumerate(served)}
        waiting = sorted(sizes, key=lambda each: (turns.get(each, -1), -sizes[each]))
        used = accumulate(measures[partition] for partition in waiting)
        firsts = waiting[: max(1, bisect_right(list(used), limit_bytes / 2))]
    first_bytes = sum(measures[partition] for partition in firsts)
    left, rest = limit_bytes - first_bytes, total - first_bytes
    # A share of what is left in proportion to a partition's bytes, divided by its bytes per record,
    # is the same fraction of every partition's offsets.
    fraction = Fraction(left) / Fraction(rest) if left > 0 and rest > 0 else 0
    ends = {**{each: begin[each] for each in sizes}, **{each: begin[each] + 1 for each in firsts}}
    for partition, end in ends.items():
        unread = until[partition] - end
        ends[partition] = min(until[partition], end + math.floor(unread * fraction))
    return until.merge(ends)


def _sizes(
    begin: Mapping[TopicPartition, int], until: PartitionOffsets
) -> dict[TopicPartition, int]:
    return {
        partition: end - begin[partition]
        for partition, end in until.items()
        if partition in begin and end > begin[partition]
    }


def _whole_offsets(share: float) -> int:
    return math.ceil(share) if share < 1 else math.floor(share)


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
