"""The lag of a query: what is in Kafka and not consumed yet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self, final

from ..text import html_table
from ..topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..values.errors import BadRecordStats

MAX_HTML_ROWS: Final = 20
"""The partitions that a notebook shows; the largest lag comes first."""

_HEADINGS: Final = ("topic", "partition", "consumed", "latest", "lag")


@final
@dataclass(frozen=True, slots=True)
class Lag:
    """Offsets, or records, of each partition that are not consumed yet, in order."""

    by_partition: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        in_order = MappingProxyType(dict(sorted(self.by_partition.items())))
        object.__setattr__(self, "by_partition", in_order)

    @classmethod
    def between(
        cls, latest: Mapping[TopicPartition, int], consumed: Mapping[TopicPartition, int]
    ) -> Self:
        """Return ``latest - consumed`` by partition; a missing ``consumed`` counts as 0.

        As ``metrics`` of Spark's ``KafkaMicroBatchStream``.
        """
        return cls(
            {partition: offset - consumed.get(partition, 0) for partition, offset in latest.items()}
        )

    @property
    def total(self) -> int:
        """The sum over all partitions."""
        return sum(self.by_partition.values())

    @property
    def min(self) -> int:
        """The smallest lag of a partition; 0 without partitions."""
        return min(self.by_partition.values(), default=0)

    @property
    def max(self) -> int:
        """The largest lag of a partition; 0 without partitions."""
        return max(self.by_partition.values(), default=0)

    @property
    def avg(self) -> float:
        """The average over all partitions; 0 without partitions."""
        return float(self.total) / len(self.by_partition) if self.by_partition else 0.0

    def metrics(self) -> dict[str, str]:
        """Return min-, max- and avgOffsetsBehindLatest as text; nothing without partitions.

        The average is formatted as Java formats a double.
        """
        if not self.by_partition:
            return {}
        return {
            "minOffsetsBehindLatest": str(self.min),
            "maxOffsetsBehindLatest": str(self.max),
            "avgOffsetsBehindLatest": _java_double(self.avg),
        }


@final
@dataclass(frozen=True, slots=True, order=True)
class PartitionLag:
    """The lag of a query in one partition.

    ``consumed`` is the next offset to read; in a partition that the query has not read yet, the
    earliest offset. ``lag`` is the number of records in ``[consumed, latest)`` if ``is_exact``.
    Otherwise it is the number of offsets, an upper bound: it includes transaction markers and
    aborted records. ``expired`` counts the offsets from ``consumed`` on that retention deleted.
    """

    partition: TopicPartition
    consumed: int
    latest: int
    lag: int
    is_exact: bool = False
    expired: int = 0

    @classmethod
    def in_offsets(
        cls, partition: TopicPartition, consumed: int, latest: int, earliest: int = 0
    ) -> Self:
        """Return the lag in offsets, which is exact where no offset is left."""
        lag = max(0, latest - max(consumed, earliest))
        expired = max(0, min(earliest, latest) - consumed)
        return cls(partition, consumed, latest, lag, is_exact=lag == 0, expired=expired)

    @property
    def is_truncated(self) -> bool:
        """Whether the log ends before ``consumed``: the topic was deleted and created again."""
        return self.latest < self.consumed

    def counted(self, records: int) -> PartitionLag:
        """Return a copy whose lag is an exact number of records."""
        return replace(self, lag=records, is_exact=True)


@final
@dataclass(frozen=True, slots=True)
class SourceLag:
    """The lag of one source of a query, by partition, in order."""

    partitions: tuple[PartitionLag, ...]

    @classmethod
    def of(cls, partitions: Iterable[PartitionLag]) -> Self:
        """Return the lag of a source, its partitions in order."""
        return cls(tuple(sorted(partitions)))

    @classmethod
    def in_offsets(
        cls, consumed: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> Self:
        """Return the lag in offsets; a partition that is not in ``consumed`` counts from 0."""
        return cls.of(
            PartitionLag.in_offsets(partition, consumed.get(partition, 0), offset)
            for partition, offset in latest.items()
        )

    @property
    def lag(self) -> Lag:
        """The lag by partition, with total, min, max and avg."""
        return Lag({each.partition: each.lag for each in self.partitions})

    @property
    def is_exact(self) -> bool:
        """Whether the lag counts records, not offsets, in every partition."""
        return all(each.is_exact for each in self.partitions)

    def _repr_html_(self) -> str:
        """Return a table of the partitions, which notebooks show."""
        caption = f"lag {_amount(self.lag.total, is_exact=self.is_exact)}"
        return _partition_table(caption, [("", each) for each in self.partitions])


@final
@dataclass(frozen=True, slots=True)
class QueryLag:
    """The lag of a query after a batch.

    ``sources`` are its Kafka sources, by position among all sources of the query; ``timestamp_ms``
    is the batch's start in milliseconds since the epoch, 0 if it is not known. ``bad_records`` are
    those that could not be decoded, ``None`` if they are not counted. A continuous query counts
    those of this run, another query those that have dead letters.
    """

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    timestamp_ms: int
    sources: Mapping[str, SourceLag]
    bad_records: BadRecordStats | None = None

    @property
    def lag(self) -> Lag:
        """The lag by partition, summed over the sources that read the same partition."""
        totals: Counter[TopicPartition] = Counter()
        for source in self.sources.values():
            totals.update(source.lag.by_partition)
        return Lag(totals)

    @property
    def is_exact(self) -> bool:
        """Whether the lag counts records, not offsets, in every partition."""
        return all(source.is_exact for source in self.sources.values())

    def _repr_html_(self) -> str:
        """Return a table of the partitions, which notebooks show."""
        amount = _amount(self.lag.total, is_exact=self.is_exact)
        return _partition_table(
            f"{self.name or self.query_id}: lag {amount} after batch {self.batch_id}",
            [(name, each) for name, source in self.sources.items() for each in source.partitions],
        )


def _amount(lag: int, *, is_exact: bool) -> str:
    return f"{lag:,}" if is_exact else f"≤ {lag:,}"


def _partition_table(caption: str, lags: Sequence[tuple[str, PartitionLag]]) -> str:
    """Return the partitions with the largest lag, and their sources if there are several."""
    has_sources = len({source for source, _ in lags}) > 1
    shown = sorted(lags, key=lambda each: -each[1].lag)[:MAX_HTML_ROWS]
    hidden = len(lags) - len(shown)
    return html_table(
        f"{caption} ({hidden:,} more partitions)" if hidden else caption,
        [[source, *_cells(lag)] if has_sources else _cells(lag) for source, lag in shown],
        ("source", *_HEADINGS) if has_sources else _HEADINGS,
    )


def _cells(lag: PartitionLag) -> list[str | int]:
    partition = lag.partition
    amount = _amount(lag.lag, is_exact=lag.is_exact)
    return [partition.topic, str(partition.partition), lag.consumed, lag.latest, amount]


def _java_double(value: float) -> str:
    """Format as Java's ``Double.toString`` does: ``1.0E7`` from 10^7 on and below 10^-3."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    scale = int(exponent) + len(rest)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{scale}"
