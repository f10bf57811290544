"""How far a stream is behind Kafka, as a query's progress shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, final

from .topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@final
@dataclass(frozen=True, slots=True)
class Lag:
    """How many offsets, or records, of each partition were not consumed yet."""

    behind: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "behind", MappingProxyType(dict(sorted(self.behind.items()))))

    @classmethod
    def between(
        cls, latest: Mapping[TopicPartition, int], consumed: Mapping[TopicPartition, int]
    ) -> Self:
        """Count the offsets between two; of a partition that is not in ``consumed`` all from 0.

        ``metrics`` of Spark's ``KafkaMicroBatchStream``.
        """
        return cls(
            {partition: offset - consumed.get(partition, 0) for partition, offset in latest.items()}
        )

    @property
    def total(self) -> int:
        """The sum over all partitions."""
        return sum(self.behind.values())

    @property
    def least(self) -> int:
        """That of the partition which is nearest to its end; 0 without partitions."""
        return min(self.behind.values(), default=0)

    @property
    def most(self) -> int:
        """That of the partition which is farthest from its end; 0 without partitions."""
        return max(self.behind.values(), default=0)

    @property
    def mean(self) -> float:
        """The mean over all partitions; 0 without any."""
        return float(self.total) / len(self.behind) if self.behind else 0.0

    def metrics(self) -> dict[str, str]:
        """Give min-, max- and avgOffsetsBehindLatest as text; nothing without partitions.

        The mean is written as Java writes a double.
        """
        if not self.behind:
            return {}
        return {
            "minOffsetsBehindLatest": str(self.least),
            "maxOffsetsBehindLatest": str(self.most),
            "avgOffsetsBehindLatest": _java_double(self.mean),
        }


@final
@dataclass(frozen=True, slots=True, order=True)
class PartitionLag:
    """How far a query is behind in one partition.

    ``consumed`` is the next offset that it reads; in a partition that it does not know yet, the
    first one that Kafka holds. ``behind`` counts the records of ``[consumed, latest)`` if
    ``is_exact``. Otherwise it counts offsets, transaction markers and aborted records among them,
    and no more records than that are left. ``expired`` counts the offsets from ``consumed`` on
    that Kafka does not hold any more.
    """

    partition: TopicPartition
    consumed: int
    latest: int
    behind: int
    is_exact: bool = False
    expired: int = 0

    @classmethod
    def in_offsets(
        cls, partition: TopicPartition, consumed: int, latest: int, earliest: int = 0
    ) -> Self:
        """Count offsets; where nothing lies between the two ends, that is exact."""
        behind = max(0, latest - max(consumed, earliest))
        expired = max(0, min(earliest, latest) - consumed)
        return cls(partition, consumed, latest, behind, is_exact=behind == 0, expired=expired)

    @property
    def is_cut_short(self) -> bool:
        """Whether the log ends before what was consumed: it is another log than it was."""
        return self.latest < self.consumed

    def counted(self, records: int) -> PartitionLag:
        """Give the same with the number of records that are left."""
        return replace(self, behind=records, is_exact=True)


@final
@dataclass(frozen=True, slots=True)
class SourceLag:
    """How far one source of a query is behind, by partition, in order."""

    partitions: tuple[PartitionLag, ...]

    @classmethod
    def of(cls, partitions: Iterable[PartitionLag]) -> Self:
        """Put partitions in order."""
        return cls(tuple(sorted(partitions)))

    @classmethod
    def in_offsets(
        cls, consumed: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> Self:
        """Count offsets between two; of a partition that is not in ``consumed`` all from 0."""
        return cls.of(
            PartitionLag.in_offsets(partition, consumed.get(partition, 0), offset)
            for partition, offset in latest.items()
        )

    @property
    def lag(self) -> Lag:
        """The numbers by partition, with their sum, least, most and mean."""
        return Lag({each.partition: each.behind for each in self.partitions})

    @property
    def is_exact(self) -> bool:
        """Whether records are counted in every partition, and no offsets."""
        return all(each.is_exact for each in self.partitions)


@final
@dataclass(frozen=True, slots=True)
class QueryLag:
    """How far a query is behind after a batch.

    ``sources`` holds its Kafka sources by their position among all its sources;
    ``timestamp_ms`` is when the batch began, in milliseconds since the epoch.
    """

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    timestamp_ms: int
    sources: Mapping[str, SourceLag]

    @property
    def lag(self) -> Lag:
        """The numbers by partition, those of several sources of one partition added up."""
        behind: dict[TopicPartition, int] = {}
        for source in self.sources.values():
            for each in source.partitions:
                behind[each.partition] = behind.get(each.partition, 0) + each.behind
        return Lag(behind)

    @property
    def is_exact(self) -> bool:
        """Whether records are counted in every partition, and no offsets."""
        return all(source.is_exact for source in self.sources.values())


def _java_double(value: float) -> str:
    """Write a number as Java's ``Double.toString``: from 10^7 on and below 10^-3 as ``1.0E7``."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    scale = int(exponent) + len(rest)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{scale}"
