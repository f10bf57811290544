"""How far a stream is behind Kafka, as a query's progress shows it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, final

from .topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def _java_double(value: float) -> str:
    """Write a number as Java's ``Double.toString``: from 10^7 on and below 10^-3 as ``1.0E7``."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    scale = int(exponent) + len(rest)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{scale}"
