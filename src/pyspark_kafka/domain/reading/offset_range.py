"""The offset range of one partition that one task reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..partition_offsets import EARLIEST, LATEST
from ..topic_partition import TopicPartition


@final
@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets ``[from_offset, until_offset)`` of a partition.

    The ends of a batch query may be open: ``EARLIEST`` (-2) as start, ``LATEST`` (-1) as end. The
    task binds them when it runs, as in Spark's ``KafkaSourceRDD``.
    """

    partition: TopicPartition
    from_offset: int
    until_offset: int

    def __post_init__(self) -> None:
        if self.from_offset < 0 and self.from_offset != EARLIEST:
            raise ValueError(f"not a valid starting offset: {self.from_offset}")
        if self.until_offset < 0 and self.until_offset != LATEST:
            raise ValueError(f"not a valid ending offset: {self.until_offset}")
        if self.is_bound and self.from_offset > self.until_offset:
            raise ValueError(f"{self} ends before it starts")

    @property
    def is_bound(self) -> bool:
        """Whether both ends are offsets of the log."""
        return self.from_offset >= 0 and self.until_offset >= 0

    @property
    def size(self) -> int:
        """The number of offsets, an upper bound of its visible records.

        :raises ValueError: if an end is open.
        """
        if not self.is_bound:
            raise ValueError(f"{self} has no size before its ends are bound")
        return self.until_offset - self.from_offset

    def starting_at(self, offset: int) -> OffsetRange:
        """Return the rest of the range from ``offset`` on."""
        return OffsetRange(self.partition, offset, self.until_offset)

    def __str__(self) -> str:
        return f"{self.partition}[{self.from_offset}, {self.until_offset})"
