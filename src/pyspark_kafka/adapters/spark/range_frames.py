"""Data frames of offset ranges, for the batches of the legacy source."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Final, final

from pyspark.sql.datasource import DataSource, DataSourceReader

from ...domain.reading.ranges import OffsetRange, join_ranges
from ...domain.topic_partition import TopicPartition
from .schema import schema_of
from .session import register_source
from .tasks import input_partitions, read_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from ...application.use_cases import UseCases
    from ...domain.options.source import SourceOptions
    from .tasks import Columns

_RANGES: Final = "ranges"


def range_loader(
    spark: SparkSession,
    use_cases: UseCases,
    options: SourceOptions,
    columns: Columns,
    variables: Mapping[str, str],
) -> Callable[[Sequence[OffsetRange]], DataFrame]:
    """Return a function that returns data frames of ranges; ``variables`` are for Python workers.

    Data frames are lazy: Spark reads the ranges each time that it runs one. A data source that is
    registered with the session for these options reads the ranges, since Spark passes strings only;
    ``mapInArrow`` would need no data source, but pandas.
    """
    columns_schema, format_name = schema_of(columns), f"pyspark_kafka_ranges_{uuid.uuid4().hex}"

    class RangeSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> StructType:
            return columns_schema

        def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
            return _RangeReader(use_cases, options, columns, self.options[_RANGES])

    register_source(spark, RangeSource, variables)

    def load(ranges: Sequence[OffsetRange]) -> DataFrame:
        if not ranges:
            return spark.createDataFrame([], columns_schema)
        bounds = [
            (one.partition.topic, one.partition.partition, one.from_offset, one.until_offset)
            for one in ranges
        ]
        return spark.read.format(format_name).option(_RANGES, json.dumps(bounds)).load()

    return load


@final
class _RangeReader(DataSourceReader):
    """Reads given ranges, as JSON."""

    def __init__(
        self, use_cases: UseCases, options: SourceOptions, columns: Columns, ranges: str
    ) -> None:
        self._use_cases = use_cases
        self._options = options
        self._columns = columns
        self._ranges = [
            OffsetRange(TopicPartition(topic, number), start, end)
            for topic, number, start, end in json.loads(ranges)
        ]

    def partitions(self) -> Sequence[InputPartition]:
        return input_partitions(join_ranges(self._ranges, self._options.max_partitions))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._use_cases, self._options, self._columns, lambda _: partition.value)
