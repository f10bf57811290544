"""Spark's batch reader over the use cases."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from .tasks import input_partitions, read_ranges, strip_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from ...application.use_cases import TaskUseCases, UseCases
    from ...domain.options.source import SourceOptions
    from ...domain.reading.ranges import TaskRanges
    from .tasks import Columns


class KafkaBatchReader(DataSourceReader):
    """Plans on the driver and reads in tasks; its state is pickled to executors."""

    def __init__(self, use_cases: UseCases, options: SourceOptions, columns: Columns) -> None:
        self._use_cases = use_cases
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with strip_tracebacks(), self._use_cases.driver(self._options) as driver:
            return input_partitions(driver.batch().plan_tasks())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(
            self._use_cases, self._options, self._columns, partial(_bound, partition)
        )


def _bound(partition: InputPartition, task: TaskUseCases) -> TaskRanges:
    return task.batch_binding().bind(partition.value)
