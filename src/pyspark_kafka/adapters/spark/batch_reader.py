"""Spark's batch reader over the use cases, and the filters that Spark pushes to it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql.datasource import DataSourceReader

from ...domain.reading.records import Projection, RecordFilter, Span
from .tasks import input_partitions, read_ranges, strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition

    from ...application.use_cases import UseCases
    from ...domain.options.source import SourceOptions
    from .tasks import Columns


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_SPANS: Final[Mapping[str, Callable[[int], Span]]] = {
    "EqualTo": lambda value: Span(value, value + 1),
    "GreaterThan": lambda value: Span(value + 1, None),
    "GreaterThanOrEqual": lambda value: Span(value, None),
    "LessThan": lambda value: Span(None, value),
    "LessThanOrEqual": lambda value: Span(None, value + 1),
}
"""By the names of Spark's classes, which Spark 4.0 does not have."""


class KafkaBatchReader(DataSourceReader):
    """Plans on the driver and reads in tasks; its state is pickled to executors."""

    _filter = RecordFilter()

    def __init__(self, use_cases: UseCases, options: SourceOptions, columns: Columns) -> None:
        self._use_cases = use_cases
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with strip_tracebacks(), self._use_cases.driver(self._options) as driver:
            return input_partitions(driver.batch().plan_tasks(self._filter))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._use_cases, self._options, partition, self._columns)


@final
class FilteringBatchReader(KafkaBatchReader):
    """A batch reader with filter push-down.

    A separate class, since Spark rejects every reader with ``pushFilters`` while
    ``spark.sql.python.filterPushdown.enabled`` is false, the default.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Apply bounds on partition, offset and time; yield filters that Spark has to evaluate."""
        for pushed in filters:
            bounds = parse_filter(pushed) if self._is_of_record(pushed) else None
            if bounds is not None:
                self._filter = self._filter.intersect(bounds)
            if bounds is None or not is_exact(pushed):
                yield pushed

    def _is_of_record(self, pushed: Filter) -> bool:
        """Return whether a filter is on the records' own columns: a field may have such a name."""
        if isinstance(self._columns, Projection):
            return True
        attribute: tuple[str, ...] = getattr(pushed, "attribute", ())
        return bool(attribute) and attribute[0] in self._columns.record_columns


def parse_filter(pushed: Filter) -> RecordFilter | None:
    """Return the bounds of a filter, or ``None`` if it is not on partition, offset or timestamp."""
    name, attribute = _name(pushed), getattr(pushed, "attribute", ())
    if name == "In":
        return _bounds_of_values(attribute, [one for one in pushed.value if one is not None])  # type: ignore[attr-defined]
    if name not in _SPANS:
        return None
    number = _number(pushed.value)  # type: ignore[attr-defined]
    return None if number is None else _bounds(attribute, _SPANS[name](number))


def is_exact(pushed: Filter) -> bool:
    """Return whether a filter's bounds are equivalent to it: Spark need not evaluate it."""
    bounds = parse_filter(pushed)
    if bounds is None or bounds.min_timestamp is not None:
        return False
    return _name(pushed) != "In" or bounds.partition_numbers is not None


def _name(pushed: Filter) -> str:
    return type(pushed).__name__


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
