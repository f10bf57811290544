"""A Python source, stream and sink without Kafka: the least that Spark needs for any."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, TypeAlias, final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

FORMAT: Final = "trivial"
RECORDS: Final = "records"
PARTITIONS: Final = "partitions"
VALUE: Final = b"a small event"

_Offset: TypeAlias = dict[str, int]


@final
class TrivialSource(DataSource):
    """A source whose options set the number of records, and a sink that keeps none."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> str:
        """Return the schema of a column."""
        return "value binary"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """Return a batch reader."""
        return _Reader(self._partitions())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """Return a micro-batch reader."""
        return _StreamReader(self._partitions())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        """Return a writer."""
        return _Writer()

    def _partitions(self) -> Sequence[InputPartition]:
        count = int(self.options[PARTITIONS])
        return [InputPartition(int(self.options[RECORDS]) // count) for _ in range(count)]


@final
class _Reader(DataSourceReader):
    def __init__(self, partitions: Sequence[InputPartition]) -> None:
        self._partitions = partitions

    def partitions(self) -> Sequence[InputPartition]:
        return self._partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield _batch(partition.value)


@final
class _StreamReader(DataSourceStreamReader):
    """Has all records in its first micro-batch."""

    def __init__(self, partitions: Sequence[InputPartition]) -> None:
        self._partitions = partitions

    def initialOffset(self) -> _Offset:  # noqa: N802
        return {"batch": 0}

    def latestOffset(self) -> _Offset:  # type: ignore[override]  # noqa: N802
        return {"batch": 1}

    def partitions(self, start: _Offset, end: _Offset) -> Sequence[InputPartition]:  # noqa: ARG002
        return self._partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield _batch(partition.value)


@final
class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark's own
        for _ in iterator:
            pass
        return WriterCommitMessage()


def _batch(records: int) -> pa.RecordBatch:
    values = pa.array(itertools.repeat(VALUE, records), pa.binary())
    return pa.RecordBatch.from_arrays([values], ["value"])
