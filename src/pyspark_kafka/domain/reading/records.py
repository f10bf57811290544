"""The columns of records to read, and the filters on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from .ranges import OffsetRange

COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
"""All columns, in the order of the JVM connector's schema."""


@final
@dataclass(frozen=True, slots=True)
class Projection:
    """The columns to read, in order."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("a projection needs at least one column")
        unknown = [column for column in self.columns if column not in COLUMNS]
        if unknown:
            raise ValueError(f"not a column of a Kafka record: {', '.join(unknown)}")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("duplicate column")

    def __contains__(self, column: str) -> bool:
        return column in self.columns


ALL_COLUMNS: Final = Projection(COLUMNS)
WITHOUT_HEADERS: Final = Projection(COLUMNS[:-1])


@final
@dataclass(frozen=True, slots=True)
class Span:
    """The numbers ``[start, end)``; ``None`` where there is no bound."""

    start: int | None = None
    end: int | None = None

    def __contains__(self, number: int) -> bool:
        return (self.start is None or self.start <= number) and (
            self.end is None or number < self.end
        )

    def intersect(self, other: Span) -> Span:
        """Return the numbers that are in both."""
        starts = [one for one in (self.start, other.start) if one is not None]
        ends = [one for one in (self.end, other.end) if one is not None]
        return Span(max(starts, default=None), min(ends, default=None))


UNBOUNDED = Span()


@final
@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Bounds of all records that the filters can accept.

    ``partition_numbers`` are the only accepted ones, unless it is ``None``. ``min_timestamp`` is in
    milliseconds since the epoch. There is no maximum timestamp: producers set timestamps, so that a
    record that is old enough may follow one that is not.
    """

    partitions: Span = UNBOUNDED
    partition_numbers: frozenset[int] | None = None
    offsets: Span = UNBOUNDED
    min_timestamp: int | None = None

    def admits_partition(self, number: int) -> bool:
        """Return whether a partition can have an accepted record."""
        chosen = self.partition_numbers
        return number in self.partitions and (chosen is None or number in chosen)

    @property
    def narrows_offsets(self) -> bool:
        """Whether it bounds offsets or timestamps."""
        return self.offsets != UNBOUNDED or self.min_timestamp is not None

    def narrow(self, offset_range: OffsetRange) -> OffsetRange:
        """Return the part of a bound range that can have accepted records; it may be empty."""
        given = Span(offset_range.from_offset, offset_range.until_offset)
        span = self.offsets.intersect(given)
        start = min(span.start or 0, offset_range.until_offset)
        return OffsetRange(offset_range.partition, start, max(start, span.end or 0))

    def intersect(self, other: RecordFilter) -> RecordFilter:
        """Return the filter that accepts what both accept."""
        times = Span(self.min_timestamp).intersect(Span(other.min_timestamp))
        return RecordFilter(
            self.partitions.intersect(other.partitions),
            _common(self.partition_numbers, other.partition_numbers),
            self.offsets.intersect(other.offsets),
            times.start,
        )


def _common(one: frozenset[int] | None, other: frozenset[int] | None) -> frozenset[int] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
