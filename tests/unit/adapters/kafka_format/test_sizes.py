"""Batches and records of all sizes, and the memory that they take."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_format import column_buffers, record_blocks
from pyspark_kafka.adapters.kafka_format.column_buffers import (
    DEFAULT_BYTES,
    DEFAULT_HEADERS,
    MAX_ROWS,
)
from pyspark_kafka.adapters.kafka_format.record_blocks import SCRATCH_BYTES
from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import CorruptBatchError
from pyspark_kafka.domain.reading.record_limits import OversizedRecords, RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection

from .batches import (
    CODECS,
    FORMATS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    Batch,
    Record,
    encoded,
    log,
    raw_batch,
    raw_record,
    sized,
    varint,
    wrapped,
)
from .reading import END, T, decoded, rows

MIB = 1024 * 1024


def unlike(number: int, size: int) -> bytes:
    """Return compressible bytes that are unique for a number."""
    return (b"%d," % number * size)[:size]


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Fail if Python and numpy have more memory at once than they had, by more than a size."""
    tracemalloc.start()
    try:
        yield
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < size


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_more_rows_than_an_arrow_batch_has_becomes_several(codec):
    fetched = bytes(Batch.of([Record(offset, b"%d" % offset) for offset in range(20_000)], codec))
    batches = decoded(fetched)
    assert [batch.num_rows for batch in batches] == [MAX_ROWS, 20_000 - MAX_ROWS]
    table = pa.Table.from_batches(batches)
    assert table["offset"].to_pylist() == list(range(20_000))
    assert table["value"].to_pylist() == [b"%d" % offset for offset in range(20_000)]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_more_than_is_decompressed_at_once(magic, codec):
    written = [Record(offset, unlike(offset, 9_000 + offset)) for offset in range(500)]
    fetched = log(encoded(written[:499], magic, codec), encoded(written[499:], magic, codec))
    assert sum(len(record.value or b"") for record in written) > 4 * SCRATCH_BYTES
    assert [row.value for row in rows(fetched)] == [record.value for record in written]
    assert [row.offset for row in rows(fetched, 300, 303)] == [300, 301, 302]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("field", ["key", "value"])
def test_large_records(field, codec):
    """A record that is larger than all memory there is at first is read, and its neighbours."""
    much = unlike(7, 5 * MIB)
    large = Record(0, key=much) if field == "key" else Record(0, value=much)
    written = [(large if offset % 2 else Record(0))._replace(offset=offset) for offset in range(5)]
    found = rows(bytes(Batch.of(written, codec)))
    assert [(row.key, row.value) for row in found] == [
        (record.key, record.value) for record in written
    ]


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_a_record_may_have_more_headers_than_there_is_room_for_at_first(codec):
    headers = tuple(("k", b"%d" % number) for number in range(DEFAULT_HEADERS + 10))
    few = (("a", None),)
    written = [
        Record(0, headers=few),
        Record(1, headers=headers),
        Record(2),
        Record(3, headers=few),
    ]
    allowed = OversizedRecords(RecordLimits(max_headers=len(headers)))
    found = rows(bytes(Batch.of(written, codec)), oversized=allowed)
    assert [row.headers for row in found] == [few, headers, None, few]


def test_many_records_with_headers():
    headers = tuple(("k", b"%d" % number) for number in range(DEFAULT_HEADERS // 100))
    fetched = bytes(Batch.of([Record(offset, headers=headers) for offset in range(250)]))
    batches = decoded(fetched, projection=Projection(("headers",)))
    assert [batch.num_rows for batch in batches] == [100, 100, 50]
    expected = [{"key": key, "value": value} for key, value in headers]
    assert all(found == expected for batch in batches for found in batch.column(0).to_pylist())


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_large_headers(codec):
    """The keys and the values of headers may be larger than the memory there is at first."""
    headers = (("k" * (DEFAULT_BYTES + 9), None), ("a", b"v" * (DEFAULT_BYTES + 9)))
    written = [Record(0, headers=(("b", b"1"),)), Record(1, headers=headers), Record(2)]
    found = rows(bytes(Batch.of(written, codec)))
    assert [row.headers for row in found] == [(("b", b"1"),), headers, None]


def test_headers_that_cannot_be():
    body = b"\0\0\0" + sized(b"k") + sized(b"v") + varint(2**30) + bytes(1_000)
    with pytest.raises(CorruptBatchError, match="a length does not fit its record"):
        rows(bytes(raw_batch(sized(body))))


def test_many_records_of_few_bytes():
    body = b"".join(raw_record(offset, key=None, value=bytes(10_000)) for offset in range(20_000))
    batch = raw_batch(body, count=20_000, last_delta=19_999, codec=ZSTD)
    fetched = bytes(batch)
    size = len(body)
    del body, batch
    assert len(fetched) < size / 1_000
    total = 0
    with at_most(48 * MIB):
        for found in RecordDecoder(T, ALL_COLUMNS).decode(FetchedRecords.of(fetched), 0, END):
            total += found.num_rows
            del found
    assert total == 20_000


def test_one_record_of_few_bytes():
    size = 200 * 1_000_000
    fetched = bytes(raw_batch(raw_record(value=bytes(size)), codec=ZSTD))
    allowed = OversizedRecords(RecordLimits(max_bytes=size + 100))
    with at_most(5 * size):
        (found,) = decoded(fetched, projection=Projection(("value",)), oversized=allowed)
    assert len(found.column(0)[0].as_buffer()) == size


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_what_no_record_holds(codec):
    fetched = bytes(raw_batch(raw_record(), bytes(64 * MIB), codec=codec, count=1))
    refused = pytest.raises(CorruptBatchError, match="there are bytes after its last record")
    with at_most(48 * MIB), refused:
        rows(fetched)


@pytest.mark.parametrize("codec", CODECS)
def test_batches_that_fill_the_memory_together(codec):
    written = [
        [Record(10 * number + at, unlike(10 * number + at, 60_000)) for at in range(10)]
        for number in range(6)
    ]
    fetched = log(*(Batch.of(part, codec) for part in written))
    assert [row.value for row in rows(fetched)] == [
        record.value for part in written for record in part
    ]


@pytest.mark.parametrize("field", ["key", "value", "header's key", "header's value"])
def test_fields_that_arrow_cannot_hold(monkeypatch, field):
    monkeypatch.setattr(column_buffers, "MAX_BYTES", 3 * MIB)
    much = unlike(7, 3 * MIB + 1)
    large = {
        "key": Record(1, key=much),
        "value": Record(1, value=much),
        "header's key": Record(1, headers=((much.decode(), b""),)),
        "header's value": Record(1, headers=(("", much),)),
    }[field]
    fetched = bytes(Batch.of([Record(0), large]))
    decoder = RecordDecoder(T, ALL_COLUMNS).decode(FetchedRecords.of(fetched), 0, END)
    assert next(decoder).num_rows == 1
    with pytest.raises(CorruptBatchError, match="a field is larger than an Arrow column can be"):
        next(decoder)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_records_that_arrow_cannot_hold(monkeypatch, codec):
    monkeypatch.setattr(record_blocks, "MAX_BYTES", 3 * MIB)
    large = Record(1, unlike(7, 3 * MIB))
    fetched = bytes(Batch.of([Record(0), large], codec))
    decoder = RecordDecoder(T, ALL_COLUMNS).decode(FetchedRecords.of(fetched), 0, END)
    assert next(decoder).num_rows == 1
    with pytest.raises(CorruptBatchError, match="a record is larger than an Arrow column can be"):
        next(decoder)


@pytest.mark.parametrize("magic", [0, 1])
def test_large_message_sets_of_few_bytes(magic):
    fetched = wrapped(magic, LZ4, [Record(offset, bytes(MIB)) for offset in range(64)])
    with at_most(32 * MIB):
        decoder = RecordDecoder(T, ALL_COLUMNS)
        found = sum(part.num_rows for part in decoder.decode(FetchedRecords.of(fetched), 0, END))
    assert found == 64
