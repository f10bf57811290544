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
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from ...application.use_cases import UseCases
    from ...domain.options.source import SourceOptions
    from .tasks import Columns

_RANGES: Final = "ranges"


@final
class RangeFrames:
    """Returns data frames of ranges, in the columns of the options.

    Data frames are lazy: Spark reads the ranges each time that it runs one. They are read by a data
    source that is registered with the session for these options; ``mapInArrow`` would need no data
    source, but pandas.
    """

    def __init__(
        self,
        spark: SparkSession,
        use_cases: UseCases,
        options: SourceOptions,
        variables: Mapping[str, str],
        columns: Columns | None = None,
    ) -> None:
        """Register the data source; ``variables`` are for its Python workers.

        ``columns`` are those of typed values, with the options that have their schemas.
        """
        self._spark = spark
        if columns is None:
            columns = options.projection
        self._schema = schema_of(columns)
        self._format = f"pyspark_kafka_ranges_{uuid.uuid4().hex}"
        register_source(spark, _source(self._format, use_cases, options, columns), variables)

    def __call__(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        if not ranges:
            return self._spark.createDataFrame([], self._schema)
        return self._spark.read.format(self._format).option(_RANGES, _to_json(ranges)).load()


@final
class _RangeReader(DataSourceReader):
    """Reads given ranges; its state is pickled to executors."""

    def __init__(
        self,
        use_cases: UseCases,
        options: SourceOptions,
        columns: Columns,
        ranges: Sequence[OffsetRange],
    ) -> None:
        self._use_cases = use_cases
        self._options = options
        self._columns = columns
        self._ranges = ranges

    def partitions(self) -> Sequence[InputPartition]:
        return input_partitions(join_ranges(self._ranges, self._options.max_partitions))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._use_cases, self._options, partition, self._columns)


def _source(
    format_name: str, use_cases: UseCases, options: SourceOptions, columns: Columns
) -> type[DataSource]:
    """Return a data source for parsed options, since Spark passes strings only."""

    class RangeSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> StructType:
            return schema_of(columns)

        def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
            return _RangeReader(use_cases, options, columns, _from_json(self.options[_RANGES]))

    return RangeSource


def _to_json(ranges: Sequence[OffsetRange]) -> str:
    return json.dumps(
        [
            (one.partition.topic, one.partition.partition, one.from_offset, one.until_offset)
            for one in ranges
        ]
    )


def _from_json(text: str) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition(topic, number), start, end)
        for topic, number, start, end in json.loads(text)
    ]
