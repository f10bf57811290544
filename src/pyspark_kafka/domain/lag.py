"""How far a stream is behind Kafka, as a query's progress shows it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .partition_offsets import PartitionOffsets


def offsets_behind_latest(
    latest: PartitionOffsets | None, consumed: PartitionOffsets | None
) -> dict[str, str]:
    """Give the least, the greatest and the mean number of offsets between consumed and latest.

    ``metrics`` of Spark's ``KafkaMicroBatchStream``: a partition of which nothing was consumed is
    taken from offset 0, the mean is written as Java writes a double, and there are no metrics
    while one of the two is not known or no partition exists.
    """
    if not latest or consumed is None:
        return {}
    lags = [offset - consumed.get(partition, 0) for partition, offset in latest.items()]
    return {
        "minOffsetsBehindLatest": str(min(lags)),
        "maxOffsetsBehindLatest": str(max(lags)),
        "avgOffsetsBehindLatest": _java_double(float(sum(lags)) / len(lags)),
    }


def _java_double(value: float) -> str:
    """Write a number as Java's ``Double.toString``: from 10^7 on and below 10^-3 as ``1.0E7``."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    scale = int(exponent) + len(rest)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{scale}"
