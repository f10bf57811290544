import struct
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from pyspark_kafka.adapters.kafka_format import producer_columns as outgoing_columns
from pyspark_kafka.adapters.kafka_format.column_buffers import Lease
from pyspark_kafka.adapters.kafka_format.compression import Codec, Compressor
from pyspark_kafka.adapters.kafka_format.encode_kernel import NO_ROOM, encode_records
from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.kafka_format.record_encoder import RecordEncoder
from pyspark_kafka.domain.writing.batch import ProducerIdAndEpoch
from pyspark_kafka.domain.writing.errors import InvalidRecordError
from pyspark_kafka.ports.record_schema import HEADERS

from .batches import ROOM, T0, Record
from .reading import Row, rows, rows_of_peer

MOST: Final = (2**63 - 1) // 1_000
BINARY: Final = pa.binary()
NOW: Final = 1_800_000_000_000
NOBODY: Final = ProducerIdAndEpoch()

values = st.none() | st.binary(max_size=40) | st.sampled_from([63, 64, 8191, 8192]).map(bytes)
header_keys = st.text(st.characters(codec="utf-8"), max_size=5)
timestamps = st.integers(-MOST // 2, MOST // 2) | st.integers(-1, 2**41) | st.just(T0)
MS: Final = pa.timestamp("ms", tz="UTC")


@st.composite
def records(draw: DrawFn) -> list[Record]:
    """Return records, perhaps with duplicate headers."""
    found = []
    for offset in range(draw(st.integers(1, 8))):
        pair = st.tuples(header_keys | st.just("h"), values)
        headers = tuple(draw(st.lists(pair, max_size=3)))
        found.append(Record(offset, draw(values), draw(values), draw(timestamps), headers))
    return found


def arrow(
    found: Sequence[Record], kind: pa.DataType = BINARY, pairs: pa.DataType = HEADERS
) -> pa.RecordBatch:
    headers = [
        [{"key": key, "value": value} for key, value in record.headers] or None for record in found
    ]
    return pa.record_batch(
        {
            "key": pa.array([record.key for record in found], kind),
            "value": pa.array([record.value for record in found], kind),
            "headers": pa.array(headers, pairs),
            "timestamp": pa.array([record.timestamp for record in found], MS),
        }
    )


def all_rows(columns: ProducerColumns) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(columns.num_rows)


def encoded(
    batch: pa.RecordBatch,
    codec: Codec = Codec.NONE,
    producer: ProducerIdAndEpoch = NOBODY,
    sequence: int = -1,
) -> bytes:
    columns = ProducerColumns.of(batch, NOW)
    encoder = RecordEncoder(Compressor(codec))
    return bytes(encoder.encode(columns, all_rows(columns), producer, sequence))


def read_back(found: Sequence[Record]) -> list[Row]:
    return [
        Row(place, record.key, record.value, record.timestamp, 0, record.headers or None)
        for place, record in enumerate(found)
    ]


def of_peer(
    found: Sequence[Record], producer: ProducerIdAndEpoch = NOBODY, sequence: int = -1
) -> bytes:
    """Encode by kafka-python, which names 0 for the epoch of a leader that it does not know."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=producer.is_transactional,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        batch_size=ROOM,
    )
    for place, record in enumerate(found):
        builder.append(place, record.timestamp, record.key, record.value, record.headers)
    built = bytes(builder.build())
    return built[:12] + struct.pack(">i", -1) + built[16:]


@given(records(), records(), records(), st.sampled_from(Codec))
def test_records_are_read_as_they_were(before, found, behind, codec):
    batch = arrow(before + found + behind).slice(len(before), len(found))
    written = encoded(batch, codec)
    assert rows(written) == rows_of_peer(written) == read_back(found)


@given(records(), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1), st.booleans())
def test_bytes_of_kafka_python(found, epoch, sequence, is_transactional):
    assert encoded(arrow(found)) == of_peer(found)
    producer = ProducerIdAndEpoch(2**40 + 1, epoch, is_transactional)
    expected = of_peer(found, producer, sequence)
    assert encoded(arrow(found), Codec.NONE, producer, sequence) == expected


@given(records(), st.data())
def test_rows_are_taken_in_the_order_that_is_asked_for(found, data):
    columns = ProducerColumns.of(arrow(found), NOW)
    taken = data.draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=len(found)))
    written = RecordEncoder(Compressor()).encode(columns, np.array(taken), NOBODY, -1)
    assert written == of_peer([found[row] for row in taken])


@given(records())
def test_columns_with_offsets_of_64_bits_give_the_same_bytes_as_slices_too(found):
    pairs = pa.large_list(
        pa.struct([pa.field("key", pa.large_string()), pa.field("value", pa.large_binary())])
    )
    batch = arrow([Record(0), *found, Record(0)], pa.large_binary(), pairs)
    assert encoded(batch.slice(1, len(found))) == of_peer(found)


def test_columns_beyond_32_bits(monkeypatch):
    found = [Record(0, b"first"), Record(1, None, b"key"), Record(2, b"")]
    batch = arrow([Record(0), *found], pa.large_binary()).slice(1)
    monkeypatch.setattr(outgoing_columns, "MAX_BYTES", 1)
    columns = ProducerColumns.of(batch, NOW)
    assert columns.arrays[2][0].dtype == np.int64
    assert encoded(batch) == of_peer(found)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_are_written_as_utf_8(kind):
    batch = pa.record_batch(
        {"key": pa.array(["ä", None], kind), "value": pa.array(["", "€"], kind)}
    )
    assert [(row.key, row.value) for row in rows(encoded(batch))] == [
        ("ä".encode(), b""),
        (None, "€".encode()),
    ]


@pytest.mark.parametrize("kind", [None, pa.null()])
def test_columns_that_are_absent(kind):
    names = ["key", "value", "headers", "timestamp"]
    absent = {name: pa.array([None, None], kind) for name in names} if kind else {}
    batch = pa.record_batch({"topic": pa.array(["t", "t"]), **absent})
    assert rows(encoded(batch)) == [Row(place, None, None, NOW, 0, None) for place in range(2)]


@pytest.mark.parametrize(("unit", "many"), [("ms", 1), ("us", 1_000), ("ns", 1_000_000)])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich"])
def test_timestamps(unit, many, zone):
    """Timestamps are rounded down to milliseconds, before 1970 as well, and null is now."""
    ticks = [None, 0, many, 2 * many - 1, -1, -many, -many - 1, None]
    kind: pa.DataType = pa.timestamp(unit, tz=zone)  # of a literal
    batch = pa.record_batch({"timestamp": pa.array([5, *ticks], kind)}).slice(1)
    expected = [NOW, *(tick // many for tick in ticks[1:-1] if tick is not None), NOW]
    assert [row.timestamp for row in rows(encoded(batch))] == expected


def test_timestamps_that_are_far_apart():
    """A difference that no long holds goes round, as in Java, and there is room for any."""
    ends = [-(2**63), 2**63 - 1, 0]
    columns = ProducerColumns.of(pa.record_batch({"timestamp": pa.array(ends, MS)}), NOW)
    written = RecordEncoder(Compressor()).encode(columns, all_rows(columns), NOBODY, -1)
    deltas = [b"\x00", b"\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
    bodies = [
        b"\0" + delta + bytes([2 * place]) + b"\x01\x01\x00" for place, delta in enumerate(deltas)
    ]
    assert written[61:] == b"".join(bytes([2 * len(body)]) + body for body in bodies)
    assert len(written) <= 61 + columns.sizes.sum()


HEADERLESS: Final = [
    [[{"key": None, "value": b"v"}]],
    [None, [{"key": "k", "value": b"v"}, {"key": None, "value": None}]],
    [[{"key": "k", "value": b"v"}, None]],
]


@pytest.mark.parametrize("headers", HEADERLESS)
def test_headers_without_a_key(headers):
    batch = pa.record_batch({"headers": pa.array(headers, HEADERS)})
    with pytest.raises(InvalidRecordError, match="A record cannot be written: a header has no key"):
        ProducerColumns.of(batch, NOW)


def test_headers_that_nobody_sees():
    pairs = pa.array(
        [{"key": None, "value": b"x"}, {"key": "k", "value": None}], HEADERS.value_type
    )
    offsets, hidden = pa.array([0, 1, 2], pa.int32()), pa.array([True, False])
    behind_null = pa.ListArray.from_arrays(offsets, pairs, type=HEADERS, mask=hidden)
    outside = pa.ListArray.from_arrays(offsets, pairs, type=HEADERS).slice(1)
    for headers in (behind_null, outside):
        batch = pa.record_batch({"headers": headers})
        assert rows(encoded(batch))[-1].headers == (("k", None),)


def test_null_pairs_in_slices():
    pairs = pa.array(
        [None, {"key": "a", "value": None}, {"key": "b", "value": b"x"}], HEADERS.value_type
    )
    headers = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pairs.slice(1), type=HEADERS
    )
    written = encoded(pa.record_batch({"headers": headers}))
    assert [row.headers for row in rows(written)] == [(("a", None),), (("b", b"x"),)]


def test_buffers_that_are_not_aligned():
    """Buffers may begin at any byte."""
    ends = pa.py_buffer(b"\0" + struct.pack("<3i", 0, 1, 3)).slice(1)
    value = pa.Array.from_buffers(pa.binary(), 2, [None, ends, pa.py_buffer(b"abc")])
    batch = pa.record_batch({"value": value})
    assert [row.value for row in rows(encoded(batch))] == [b"a", b"bc"]


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("key", pa.int64(), "'key' is int64; it must be binary or string"),
        ("value", pa.list_(pa.int8()), "'value' is list<item: int8>"),
        ("timestamp", pa.int64(), "'timestamp' is int64; it must be timestamp\\(ms"),
        ("timestamp", pa.timestamp("s"), "'timestamp' is timestamp\\[s\\]"),
        ("headers", pa.string(), "'headers' is string"),
        ("headers", pa.list_(pa.string()), "'headers' is list<item: string>"),
        ("headers", pa.list_(pa.struct([("key", pa.string())])), "'headers' is list<item"),
        (
            "headers",
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.int8())])),
            "'headers.value' is int8",
        ),
    ],
)
def test_types_that_are_not_written(name, kind, expected):
    with pytest.raises(TypeError, match=expected):
        ProducerColumns.of(pa.record_batch({name: pa.array([None], kind)}), NOW)


@given(records())
def test_a_record_has_as_many_bytes_as_was_said_or_fewer_and_not_many_fewer(found):
    columns = ProducerColumns.of(arrow(found), NOW)
    encoder = RecordEncoder(Compressor())
    for row, size in enumerate(columns.sizes):
        real = len(encoder.encode(columns, np.array([row]), NOBODY, -1)) - 61
        # An offset and a timestamp may have fewer bytes than the batch's longest.
        assert real <= size <= real + 10
    assert len(encoded(arrow(found))) <= 61 + columns.sizes.sum()


@given(records(), st.data(), st.sampled_from([0, 61, 100, 300, 9_000, 100_000]))
def test_chunks(found, data, most):
    """Chunks have all rows in their order, and none could take the next row as well."""
    columns = ProducerColumns.of(arrow(found), NOW)
    taken = np.array(
        data.draw(st.lists(st.integers(0, len(found) - 1), max_size=len(found))), np.int64
    )
    encoder = RecordEncoder(Compressor())
    chunks = encoder.chunks(columns, taken, most)
    assert [row for chunk in chunks for row in chunk] == taken.tolist()
    sizes = columns.sizes
    for place, chunk in enumerate(chunks):
        assert len(chunk) == 1 or 61 + sizes[chunk].sum() <= most
        assert len(chunk) == 1 or len(encoder.encode(columns, chunk, NOBODY, -1)) <= most
        if place + 1 < len(chunks):
            assert 61 + sizes[chunk].sum() + sizes[chunks[place + 1][0]] > most


@given(records(), st.data())
def test_the_payload_is_the_bytes_of_keys_values_and_headers(found, data):
    columns = ProducerColumns.of(arrow(found), NOW)
    taken = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=12))
    parts = [
        part
        for row in taken
        for part in (
            found[row].key,
            found[row].value,
            *(key.encode() for key, _ in found[row].headers),
            *(value for _, value in found[row].headers),
        )
    ]
    payload = columns.payload_bytes(np.array(taken, np.int64))
    assert payload == sum(len(part) for part in parts if part is not None)


def test_lengths_of_three_and_four_bytes_are_written():
    found = [Record(0, bytes(2**20 - 1), bytes(2**20)), Record(1, b"", bytes(2**21))]
    assert encoded(arrow(found)) == of_peer(found)


@given(records(), st.data())
def test_room(found, data):
    """Where a record may be larger than what is left, no more is written, nor behind the room."""
    columns = ProducerColumns.of(arrow(found), NOW)
    bounds = columns.sizes
    room = data.draw(st.integers(0, int(bounds.sum())))
    ends = [0, *(len(of_peer(found[: place + 1])) - 61 for place in range(len(found)))]
    has_room = all(bound <= room - end for bound, end in zip(bounds, ends, strict=False))
    memory = np.full(int(bounds.sum()) + 100, 0xAA, np.uint8)
    taken = all_rows(columns)
    end, _, _ = encode_records(columns.arrays, columns.sizes, taken, memory[:room], 0)
    assert end == (ends[-1] if has_room else NO_ROOM)
    assert set(memory[room:]) == {0xAA}


def test_many_records():
    """Offsets of more than one byte are written, and small records make a large batch."""
    found = [Record(0, b"%d" % place, None, T0 + place) for place in range(20_000)]
    written = encoded(arrow(found))
    assert written == of_peer(found)
    assert len(written) <= 61 + ProducerColumns.of(arrow(found), NOW).sizes.sum()


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_no_sequence_without_a_producer(codec):
    header = DefaultRecordBatch(encoded(arrow([Record(0)]), codec, NOBODY, 7))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("is_transactional", [False, True])
def test_headers_of_batches(codec, is_transactional):
    """A batch's header says its codec, its producer and its place in the producer's sequence."""
    producer = ProducerIdAndEpoch(2**62, 2**15 - 1, is_transactional)
    header = DefaultRecordBatch(encoded(arrow([Record(0)] * 3), codec, producer, 2**31 - 1))
    assert header.validate_crc()
    assert (header.base_offset, header.last_offset_delta, header.leader_epoch) == (0, 2, -1)
    assert header.attributes == codec | (0x10 if is_transactional else 0)
    assert (header.producer_id, header.producer_epoch) == (2**62, 2**15 - 1)
    assert header.base_sequence == 2**31 - 1
    assert header.timestamp_type == 0


@pytest.mark.parametrize("taken", [[-1], [0, -1, 1], [2], [0, 2, 1], [2**40], [0, 0, 0]])
def test_rows_that_there_are_not(taken):
    """More rows than there are, with some repeated, have no bound."""
    columns = ProducerColumns.of(arrow([Record(0), Record(1)]), NOW)
    rows_taken = np.array(taken, np.int64)
    calls = [
        lambda: RecordEncoder(Compressor()).encode(columns, rows_taken, NOBODY, -1),
        lambda: RecordEncoder(Compressor()).chunks(columns, rows_taken, 1_000),
        *([lambda: columns.payload_bytes(rows_taken)] if any(taken) else []),
    ]
    for call in calls:
        with pytest.raises(IndexError, match=r"^there is no such row$"):
            call()


def test_without_rows_there_is_no_chunk_and_no_batch():
    columns = ProducerColumns.of(arrow([]), NOW)
    encoder = RecordEncoder(Compressor())
    assert (columns.num_rows, columns.payload_bytes(all_rows(columns))) == (0, 0)
    assert encoder.chunks(columns, all_rows(columns), 1_000) == []
    with pytest.raises(ValueError, match=r"^a batch needs at least one record$"):
        encoder.encode(columns, all_rows(columns), NOBODY, -1)


def test_a_batch_that_is_too_large():
    columns = ProducerColumns.of(arrow([Record(0), Record(1)]), NOW)
    huge = replace(columns, sizes=np.full(2, 2**30, np.int64))
    with pytest.raises(InvalidRecordError, match="its 2147483709 bytes are more than a batch can"):
        RecordEncoder(Compressor()).encode(huge, all_rows(huge), NOBODY, -1)


def test_a_batch_keeps_its_memory_when_others_are_encoded():
    encoder = RecordEncoder(Compressor())
    found = [[Record(0, size * b"x")] for size in (10, 100, 5_000, 7)]
    batches = []
    for each in found:
        columns = ProducerColumns.of(arrow(each), NOW)
        batches.append(encoder.encode(columns, all_rows(columns), NOBODY, -1))
    assert batches == [of_peer(each) for each in found]


def test_the_source_is_kept():
    """The columns keep the memory that they look at, and no longer than they are there."""
    lease = Lease()
    ends = np.array([0, 3], np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), lease.buffer(np.frombuffer(b"abc", np.uint8))]
    batch = pa.record_batch({"value": pa.Array.from_buffers(pa.binary(), 1, buffers)})
    columns = ProducerColumns.of(batch, NOW)
    there = weakref.ref(lease)
    del lease, buffers, batch
    assert there() is not None
    del columns
    assert there() is None
