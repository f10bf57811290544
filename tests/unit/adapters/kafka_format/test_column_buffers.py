from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_format.column_buffers import (
    MAX_IDLE,
    MAX_POOLED_BYTES,
    BufferPool,
    valid_utf8,
)
from pyspark_kafka.adapters.kafka_format.record_decoder import (
    DecoderMemory,
    FetchedRecords,
    RecordDecoder,
)
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection

from .batches import CODECS, Batch, Record
from .reading import END, T, rows_of


def test_what_is_let_go_of_is_lent_again():
    numbers = count()
    pool = BufferPool(lambda: next(numbers))
    assert [pool.acquire(), pool.acquire()] == [0, 1]
    lease = pool.lease(0)
    assert pool.acquire() == 2
    del lease
    assert pool.acquire() == 0
    assert pool.acquire() == 3


def test_what_was_let_go_of_first_is_lent_first():
    pool = BufferPool(object)
    first, second = pool.acquire(), pool.acquire()
    pool.release(second)
    pool.release(first)
    assert pool.acquire() is second


def test_no_more_than_a_few_are_kept():
    numbers = count()
    pool = BufferPool(lambda: next(numbers))
    leases = [pool.lease(pool.acquire()) for _ in range(MAX_IDLE + 3)]
    while leases:
        leases.pop(0)
    assert sorted(pool.acquire() for _ in range(MAX_IDLE)) == list(range(MAX_IDLE))
    assert pool.acquire() == MAX_IDLE + 3


def test_a_lease_lasts_as_long_as_its_buffers():
    pool = BufferPool(lambda: np.arange(10, dtype=np.uint8))
    array = pool.acquire()
    lease = pool.lease(array)
    buffers = [lease.buffer(array), lease.buffer(array[:5])]
    del lease
    assert pool.acquire() is not array
    part = buffers.pop().slice(1, 2)
    buffers.clear()
    assert pool.acquire() is not array
    assert part.to_pybytes() == b"\x01\x02"
    del part
    assert pool.acquire() is array


def stretch(number: int, records: int = 40) -> FetchedRecords:
    """Return a batch that is unique for its number."""
    written = [
        Record(offset, f"{number}-{offset}".encode(), None, headers=(("h", str(number).encode()),))
        for offset in range(number, number + records)
    ]
    return FetchedRecords.of(bytes(Batch.of(written, CODECS[number % 5])))


@pytest.mark.parametrize("takes_turns", [False, True])
def test_batches_own_their_memory(takes_turns):
    """Decoders may have the same memory one after the other."""
    memory = DecoderMemory()
    decoder = RecordDecoder(T, ALL_COLUMNS, memory)
    batches, seen = [], []
    for number in range(50):
        if takes_turns:
            decoder = RecordDecoder(T, ALL_COLUMNS, memory)
        (batch,) = decoder.decode(stretch(number), 0, END)
        batches.append(batch)
        seen.append(rows_of([batch]))
    del decoder
    assert [rows_of([batch]) for batch in batches] == seen
    assert [found[0].value for found in seen] == [
        f"{number}-{number}".encode() for number in range(50)
    ]


def test_columns_own_their_memory():
    decoder = RecordDecoder(T, ALL_COLUMNS)
    columns = []
    for number in range(10):
        (batch,) = decoder.decode(stretch(number), 0, END)
        columns.append([batch.column(name).slice(3, 5) for name in batch.schema.names])
        del batch
    for number, kept in enumerate(columns):
        values = [f"{number}-{offset}".encode() for offset in range(number + 3, number + 8)]
        assert kept[1].to_pylist() == values
        assert kept[4].to_pylist() == list(range(number + 3, number + 8))
        assert kept[7].to_pylist() == [[{"key": "h", "value": str(number).encode()}]] * 5


@pytest.mark.parametrize("codec", CODECS)
def test_decoders_side_by_side(codec):
    memory = DecoderMemory()
    readings = []
    for value in (b"a" * 50, b"b" * 50):
        fetched = bytes(Batch.of([Record(offset, value) for offset in range(40_000)], codec))
        decoder = RecordDecoder(T, Projection(("value",)), memory)
        readings.append(decoder.decode(FetchedRecords.of(fetched), 0, END))
    for first, second in zip(*readings, strict=True):
        assert set(first.column(0).to_pylist()) == {b"a" * 50}
        assert set(second.column(0).to_pylist()) == {b"b" * 50}


def test_memory_that_a_large_record_needed_is_used_once():
    """The pool keeps no columns that have grown far: a process lives longer than their records."""
    memory = DecoderMemory()
    records = [Record(0, b"x" * MAX_POOLED_BYTES), Record(1, b"y")]
    fetched = FetchedRecords.of(bytes(Batch.of(records)))
    decoder = RecordDecoder(T, ALL_COLUMNS, memory)
    batches = list(decoder.decode(fetched, 0, END))
    assert [batch.num_rows for batch in batches] == [1, 1]
    values = batches[0].column("value")
    batches.clear()
    assert values.to_pylist() == [records[0].value]
    del values
    idle = [memory.columns.acquire().data_bytes for _ in range(MAX_IDLE)]
    assert max(idle) < MAX_POOLED_BYTES


def test_memory_is_used_again():
    decoder = RecordDecoder(T, ALL_COLUMNS)
    places = set()
    for number in range(50):
        for batch in decoder.decode(stretch(number), 0, END):
            values = batch.column("value").buffers()[2]
            assert values is not None
            places.add(values.address)
        del batch, values
    assert len(places) <= 2


LOST = "\ufffd"


def decoded_text(value: bytes) -> str:
    found = valid_utf8(pa.array([b"a", value], pa.binary())).to_pylist()[1]
    assert isinstance(found, str)
    return found


def test_texts_are_not_copied():
    binary = pa.array(["a", "ü", "主题", "😀", ""], pa.string()).cast(pa.binary())
    texts = valid_utf8(binary)
    assert texts.to_pylist() == ["a", "ü", "主题", "😀", ""]
    assert [buffer and buffer.address for buffer in texts.buffers()] == [
        buffer and buffer.address for buffer in binary.buffers()
    ]


# What `new String(bytes, UTF_8)` gives on Java 17.
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"a\xffb", "a" + LOST + "b"),
        (b"\x80", LOST),
        (b"\xc3", LOST),
        (b"\xc3(", LOST + "("),
        (b"\xc0\x80", 2 * LOST),
        (b"\xe2\x82", LOST),
        (b"\xe2\x82(", LOST + "("),
        (b"\xe0\x80\x80", 3 * LOST),
        (b"\xf0\x9f\x98", LOST),
        (b"\xf0\x9f(", LOST + "("),
        (b"\xf5\x80\x80\x80", 4 * LOST),
        (b"\xed\xa0\x80", LOST),
        (b"\xed\xbf\xbf\xed\xa0\x80", 2 * LOST),
        (b"\xed\xa0", LOST),
        (b"\xed\xa0(", LOST + "("),
        (b"\xed\x9f\xbf", "\ud7ff"),
        (b"\xed\xed\xa0\x80\x80", 3 * LOST),
    ],
)
def test_bytes_of_no_text_become_as_many_u_fffd_as_in_javas_strings(value, expected):
    assert decoded_text(value) == expected
