"""Spark's filters as bounds on the records to read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from ...domain.reading.record_filter import RecordFilter, Span

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_SPANS: Final[Mapping[type[Filter], Callable[[int], Span]]] = {
    EqualTo: lambda value: Span(value, value + 1),
    GreaterThan: lambda value: Span(value + 1, None),
    GreaterThanOrEqual: lambda value: Span(value, None),
    LessThan: lambda value: Span(None, value),
    LessThanOrEqual: lambda value: Span(None, value + 1),
}


def parse_filter(pushed: Filter) -> RecordFilter | None:
    """Return the bounds of a filter, or ``None`` if it is not on partition, offset or timestamp."""
    if isinstance(pushed, In):
        return _bounds_of_values(
            pushed.attribute, [value for value in pushed.value if value is not None]
        )
    if type(pushed) not in _SPANS:
        return None
    attribute: tuple[str, ...] = pushed.attribute  # type: ignore[attr-defined]
    number = _number(pushed.value)  # type: ignore[attr-defined]
    return None if number is None else _bounds(attribute, _SPANS[type(pushed)](number))


def is_exact(pushed: Filter) -> bool:
    """Return whether a filter's bounds are equivalent to it: Spark need not evaluate it."""
    bounds = parse_filter(pushed)
    if bounds is None or bounds.min_timestamp is not None:
        return False
    return not isinstance(pushed, In) or bounds.partition_numbers is not None


def _bounds_of_values(attribute: tuple[str, ...], values: list[Any]) -> RecordFilter | None:
    numbers = [number for number in map(_number, values) if number is not None]
    if not numbers or len(numbers) != len(values):
        return None
    if attribute == ("partition",):
        return RecordFilter(partition_numbers=frozenset(numbers))
    return _bounds(attribute, Span(min(numbers), max(numbers) + 1))


def _bounds(attribute: tuple[str, ...], span: Span) -> RecordFilter | None:
    match attribute:
        case ("partition",):
            return RecordFilter(partitions=span)
        case ("offset",):
            return RecordFilter(offsets=span)
        case ("timestamp",) if span.start is not None:
            return RecordFilter(min_timestamp=span.start)
        case _:
            return None


def _number(value: object) -> int | None:
    """Return an integer as it is, and a time in milliseconds as in Kafka."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.astimezone()
        return (aware - _EPOCH) // dt.timedelta(milliseconds=1)
    return value if isinstance(value, int) else None
