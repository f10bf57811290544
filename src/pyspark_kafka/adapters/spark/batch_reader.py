"""Spark's batch reader over the use cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from pyspark.sql.datasource import DataSourceReader

from ...domain.reading.projection import Projection
from ...domain.reading.record_filter import RecordFilter
from .tasks import input_partitions, read_ranges, strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition

    from ...application.use_cases import UseCases
    from ...domain.options import SourceOptions
    from .tasks import Columns


class KafkaBatchReader(DataSourceReader):
    """Plans on the driver and reads in tasks; its state is pickled to executors."""

    _filter = RecordFilter()

    def __init__(self, use_cases: UseCases, options: SourceOptions, columns: Columns) -> None:
        self._use_cases = use_cases
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with strip_tracebacks(), self._use_cases.batch(self._options) as batch:
            return input_partitions(batch.plan_tasks(self._filter))

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
        from .filters import is_exact, parse_filter

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
