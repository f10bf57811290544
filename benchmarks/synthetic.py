"""A Python source that has its records at once: the rate that Spark allows any of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from pyspark_kafka.domain.reading.records import ALL_COLUMNS, WITHOUT_HEADERS
from pyspark_kafka.ports.record_schema import record_schema

from .topics import HEADERS, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql.types import StructType

    from .topics import Topic

FORMAT: Final = "synthetic"

BATCH_ROWS: Final = 16_384
BATCH_BYTES: Final = 2 << 20
"""The most bytes that this library's batches hold."""

_PATH: Final = "path"
_RECORDS: Final = "records"
_PARTITIONS: Final = "partitions"


def options_for(topic: Topic, directory: Path) -> Mapping[str, str]:
    """Return the options to read as many records as a topic has, from a batch that is written."""
    path = directory / f"{topic.name}.arrow"
    batch = _batch(topic)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return {
        _PATH: str(path),
        _RECORDS: str(topic.records),
        _PARTITIONS: str(topic.partitions),
    }


@final
class SyntheticSource(DataSource):
    """A source that repeats one batch; its options set how often."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the schema of the batch."""
        return from_arrow_schema(_read(self.options[_PATH]).schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """Return a batch reader."""
        count = int(self.options[_PARTITIONS])
        return _Reader(self.options[_PATH], int(self.options[_RECORDS]) // count, count)


@final
class _Reader(DataSourceReader):
    def __init__(self, path: str, records: int, partitions: int) -> None:
        self._path = path
        self._records = records
        self._partitions = partitions

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        batch = _read(self._path)
        for start in range(0, self._records, batch.num_rows):
            yield batch.slice(0, min(batch.num_rows, self._records - start))


def _read(path: str) -> pa.RecordBatch:
    with pa.memory_map(path) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0)


def _batch(topic: Topic) -> pa.RecordBatch:
    shape = topic.shape
    rows = min(BATCH_ROWS, BATCH_BYTES // shape.value_bytes)
    columns = {
        "key": itertools.repeat(None, rows),
        "value": itertools.islice(itertools.cycle(values_of(shape)), rows),
        "topic": itertools.repeat(topic.name, rows),
        "partition": itertools.repeat(0, rows),
        "offset": range(rows),
        "timestamp": itertools.repeat(1_700_000_000_000_000, rows),
        "timestampType": itertools.repeat(0, rows),
        "headers": itertools.repeat([{"key": k, "value": v} for k, v in HEADERS], rows),
    }
    schema = record_schema(ALL_COLUMNS if shape.has_headers else WITHOUT_HEADERS)
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
