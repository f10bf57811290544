"""Rows as tests compare them: what the decoder gives, and what kafka-python's reader gives."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from kafka.record.memory_records import MemoryRecords

from pyspark_kafka.adapters.kafka_format.batch_headers import AbortedTransaction
from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.record_limits import OversizedRecords
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.topic_partition import TopicPartition

from .batches import Record

T: Final = TopicPartition("t", 3)
END: Final = 2**63 - 1


class Row(NamedTuple):
    """A record that was read; its timestamp in milliseconds."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...] | None


def row_of(record: Record, magic: int = 2) -> Row:
    """Return what is to be read of a record in a format: format 0 has no timestamps."""
    timestamp, kind = (record.timestamp, 0) if magic else (-1, -1)
    headers = record.headers if magic == 2 else ()
    return Row(record.offset, record.key, record.value, timestamp, kind, headers or None)


def decoded(
    fetched: Any,
    from_offset: int = 0,
    until_offset: int = END,
    aborted: Iterable[AbortedTransaction] = (),
    *,
    projection: Projection = ALL_COLUMNS,
    check_crcs: bool = True,
    oversized: OversizedRecords | None = None,
) -> list[pa.RecordBatch]:
    """Decode a stretch, by a decoder of its own."""
    decoder = RecordDecoder(T, projection, check_crcs=check_crcs, oversized=oversized)
    return list(decoder.decode(FetchedRecords.of(fetched, aborted), from_offset, until_offset))


def rows(
    fetched: Any,
    from_offset: int = 0,
    until_offset: int = END,
    aborted: Iterable[AbortedTransaction] = (),
    *,
    check_crcs: bool = True,
    oversized: OversizedRecords | None = None,
) -> list[Row]:
    """Decode a stretch with all columns, and give its rows."""
    batches = decoded(
        fetched, from_offset, until_offset, aborted, check_crcs=check_crcs, oversized=oversized
    )
    return rows_of(batches)


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Return the rows of batches with all columns, validated by Arrow."""
    found: list[Row] = []
    for batch in batches:
        batch.validate(full=True)
        columns = {name: batch.column(name) for name in batch.schema.names}
        assert columns["topic"].to_pylist() == [T.topic] * batch.num_rows
        assert columns["partition"].to_pylist() == [T.partition] * batch.num_rows
        found += map(
            Row,
            columns["offset"].to_pylist(),
            columns["key"].to_pylist(),
            columns["value"].to_pylist(),
            pc.divide(columns["timestamp"].cast(pa.int64()), 1_000).to_pylist(),
            columns["timestampType"].to_pylist(),
            [
                None if pairs is None else tuple((pair["key"], pair["value"]) for pair in pairs)
                for pairs in columns["headers"].to_pylist()
            ],
        )
    return found


def rows_of_peer(fetched: bytes) -> list[Row]:
    """Read a stretch by kafka-python, which checks sums, and leaves nothing out."""
    found: list[Row] = []
    for batch in MemoryRecords(fetched):
        assert batch.validate_crc()
        for record in batch:
            assert record.validate_crc()
            has_time = record.timestamp_type is not None
            found.append(
                Row(
                    record.offset,
                    record.key,
                    record.value,
                    record.timestamp if has_time else -1,
                    record.timestamp_type if has_time else -1,
                    tuple(record.headers) or None,
                )
            )
    return found
