from dataclasses import replace

import pytest

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import CorruptBatchError, MalformedTimestampError
from pyspark_kafka.domain.reading.records import COLUMNS, Projection
from pyspark_kafka.ports.record_schema import record_schema

from .batches import (
    APPEND_TIME,
    CODECS,
    CONTROL,
    FORMATS,
    GZIP,
    LZ4,
    SNAPPY,
    T0,
    ZSTD,
    Batch,
    Record,
    encoded,
    holding,
    log,
    message,
    message_set,
    raw_batch,
    raw_record,
    raw_snappy,
    sizeless_zstd,
    wrapped,
)
from .reading import END, T, decoded, row_of, rows, rows_of_peer

RECORDS = [
    Record(7, b"one", b"k1", T0),
    Record(8, None, None, T0 + 5),
    Record(9, b"", b"", T0 - 70),
    Record(10, b"v" * 300, None, T0),
    Record(11, None, b"k" * 300, T0 + 2**33),
]
PLAIN_ROWS = [row_of(record) for record in RECORDS]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_records_become_rows(magic, codec):
    """Null and empty keys and values among them."""
    fetched = encoded(RECORDS, magic, codec)
    assert rows(fetched) == [row_of(record, magic) for record in RECORDS]
    if (magic, codec) != (0, LZ4):  # which it reads with one more package
        assert rows(fetched) == rows_of_peer(fetched)


def test_formats_behind_one_another():
    headers = (("h", b"1"), ("h", b"2"))
    fetched = log(
        message_set(0, [Record(0), Record(1)]),
        wrapped(0, SNAPPY, [Record(2), Record(3)]),
        wrapped(1, GZIP, [Record(4), Record(5)]),
        Batch.of([Record(6, headers=headers), Record(7)], LZ4),
        message_set(1, [Record(8), Record(9)]),
        Batch.of([Record(10), Record(11, headers=headers)]),
    )
    found = rows(fetched)
    assert [row.offset for row in found] == list(range(12))
    assert [row.headers for row in found] == [
        headers if offset in {6, 11} else None for offset in range(12)
    ]


def test_headers():
    """Headers keep their order, keys that come twice or are empty, and null and empty values."""
    headers = (("b", b"1"), ("a", None), ("b", b""), ("", b"2"), ("ü", b"\xff"))
    fetched = log(Batch.of([Record(0, headers=headers), Record(1), Record(2, headers=headers)]))
    assert [row.headers for row in rows(fetched)] == [headers, None, headers]


def test_header_keys_of_other_bytes():
    batch = raw_batch(
        raw_record(0, headers=[(b"a\xff\xc3", b"\xff"), (b"\xed\xa0\x80", None)]),
        raw_record(1, headers=[("ü".encode(), b"")]),
    )
    assert [row.headers for row in rows(bytes(batch))] == [
        (("a\ufffd\ufffd", b"\xff"), ("\ufffd", None)),
        (("ü", b""),),
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_where_the_broker_has_put_the_time_all_records_of_a_batch_have_it(codec):
    batch = Batch.of(RECORDS, codec, attributes=APPEND_TIME, max_timestamp=T0 + 1)
    assert {(row.timestamp, row.timestamp_type) for row in rows(bytes(batch))} == {(T0 + 1, 1)}


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_append_time_of_compressed_messages(codec):
    fetched = wrapped(1, codec, RECORDS, timestamp=T0 + 1, attributes=APPEND_TIME)
    assert {(row.timestamp, row.timestamp_type) for row in rows(fetched)} == {(T0 + 1, 1)}


def test_create_time_of_compressed_messages():
    """Their timestamps have the type of the message that holds them, as in Java."""
    inner = message(1, 0, b"v", timestamp=5, attributes=APPEND_TIME)
    fetched = holding(1, 0, inner)
    assert [(row.timestamp, row.timestamp_type) for row in rows(fetched)] == [(5, 0)]


def test_append_time_of_a_message():
    fetched = log(message(1, 3, b"v", attributes=APPEND_TIME), message(1, 4, b"v", timestamp=5))
    assert [(row.timestamp, row.timestamp_type) for row in rows(fetched)] == [(T0, 1), (5, 0)]


def test_a_record_without_a_timestamp_has_minus_one():
    fetched = log(Batch.of([Record(0, timestamp=-1)]), message(1, 1, b"v", timestamp=-1))
    assert [(row.timestamp, row.timestamp_type) for row in rows(fetched)] == [(-1, 0), (-1, 0)]


LAST = (2**63 - 1) // 1_000


@pytest.mark.parametrize("timestamp", [LAST, -LAST, 0])
def test_the_first_and_the_last_millisecond_that_fit_sparks_microseconds_are_read(timestamp):
    fetched = log(Batch.of([Record(0, timestamp=timestamp)]), message(1, 1, b"", None, timestamp))
    assert [row.timestamp for row in rows(fetched)] == [timestamp, timestamp]


@pytest.mark.parametrize("timestamp", [LAST + 1, -LAST - 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("magic", [1, 2])
def test_timestamps_that_do_not_fit(magic, timestamp):
    late = raw_batch(raw_record(), base_offset=6, base_timestamp=timestamp)
    fetched = log(
        Batch.of([Record(5)]), late if magic == 2 else message(1, 6, b"", timestamp=timestamp)
    )
    assert [row.offset for row in rows(fetched, 0, 6)] == [5]
    with pytest.raises(
        MalformedTimestampError, match=rf"offset 6 has timestamp value {timestamp} "
    ):
        rows(fetched)
    (batch,) = decoded(fetched, projection=Projection(("offset", "timestampType")))
    assert batch.to_pydict() == {"offset": [5, 6], "timestampType": [0, 0]}


def test_timestamps_that_overflow_by_their_delta():
    batch = raw_batch(raw_record(timestamp_delta=1), base_timestamp=2**63 - 1)
    with pytest.raises(MalformedTimestampError):
        rows(bytes(batch))


@pytest.mark.parametrize("codec", CODECS)
def test_compaction(codec):
    """Compaction leaves gaps between offsets, and behind the last record of a batch."""
    batch = Batch.of([Record(5), Record(9), Record(14)], codec, last_delta=20)
    fetched = log(batch, Batch.of([Record(26)], codec))
    assert [row.offset for row in rows(fetched)] == [5, 9, 14, 26]
    assert FetchedRecords.of(bytes(batch)).next_offset == 26


def test_compaction_leaves_batches_without_records_which_keep_their_offsets():
    fetched = log(Batch(base_offset=0, last_delta=9), Batch.of([Record(10)]))
    assert [row.offset for row in rows(fetched)] == [10]
    assert rows(bytes(Batch(base_offset=3, last_delta=1))) == []
    assert FetchedRecords.of(bytes(Batch(base_offset=3, last_delta=1))).next_offset == 5


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_control_batches_are_not_records(kind):
    fetched = log(Batch.of([Record(0)]), Batch.marker(1, 7, kind), Batch.of([Record(2)]))
    assert [row.offset for row in rows(fetched)] == [0, 2]


def test_control_batches_without_records():
    fetched = log(Batch(base_offset=0, attributes=CONTROL), Batch.of([Record(1)]))
    assert [row.offset for row in rows(fetched)] == [1]


def test_an_attribute_that_says_nothing_about_the_records_changes_nothing():
    batch = Batch.of(RECORDS)
    assert rows(bytes(replace(batch, attributes=0x40))) == PLAIN_ROWS


@pytest.mark.parametrize(
    ("codec", "packer"), [(SNAPPY, raw_snappy), (ZSTD, sizeless_zstd)], ids=["snappy", "zstd"]
)
def test_other_writers(codec, packer):
    """Snappy without a frame and zstd without a size, as other clients write them, are read."""
    assert rows(bytes(Batch.of(RECORDS, codec, packer=packer))) == PLAIN_ROWS


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs(codec):
    """A codec that Kafka does not have is said by its number, behind the rows before it."""
    with pytest.raises(CorruptBatchError, match=rf"offset 1 .* its codec {codec} is unknown"):
        rows(log(Batch.of([Record(0)]), Batch(base_offset=1, codec=codec, packer=bytes)))


@pytest.mark.parametrize("magic", [3, 0x7F, 0x80, 0xFF])
def test_a_format_of_the_future_is_refused(magic):
    later = bytearray(bytes(Batch.of([Record(1)])))
    later[16] = magic
    fetched = log(Batch.of([Record(0)]), bytes(later))
    with pytest.raises(CorruptBatchError, match=r"at offset 1 .* its magic number is unknown"):
        rows(fetched)
    assert len(rows(fetched, 0, 1)) == 1


def test_messages_within_messages_within_messages():
    inner = wrapped(1, GZIP, [Record(0)])
    twice = holding(1, 0, inner)
    with pytest.raises(CorruptBatchError, match="its magic number is unknown"):
        rows(twice)


@pytest.mark.parametrize("inner_offset", [-(2**63), -5, -1])
def test_negative_offsets_of_compressed_messages(inner_offset):
    inner = message(1, inner_offset, b"v")
    with pytest.raises(CorruptBatchError, match="offsets"):
        rows(holding(1, 5, inner))


def test_nothing_fetched_is_nothing_read():
    assert rows(b"") == []
    assert FetchedRecords.of(b"").next_offset is None


def test_offsets_up_to_the_last_one_that_can_have_one_behind_it_are_read():
    last = END - 1
    assert [row.offset for row in rows(bytes(Batch.of([Record(last - 1), Record(last)])))] == [
        last - 1,
        last,
    ]


SOME = [Record(offset, b"v", b"k", headers=(("h", None),)) for offset in range(5)]
FETCHED = log(
    message_set(0, [Record(-5 + offset) for offset in range(5, 7)]),
    wrapped(1, GZIP, [Record(2), Record(3)]),
    Batch.of([record._replace(offset=record.offset + 4) for record in SOME]),
    Batch.of([record._replace(offset=record.offset + 9) for record in SOME], GZIP),
)


@pytest.mark.parametrize("column", COLUMNS)
def test_one_column_alone_is_the_same_as_among_all(column):
    (every,) = decoded(FETCHED)
    (one,) = decoded(FETCHED, projection=Projection((column,)))
    assert one.schema == record_schema(Projection((column,)))
    assert one.column(0).equals(every.column(column))


@pytest.mark.parametrize(
    "columns", [COLUMNS, tuple(reversed(COLUMNS)), ("value", "key"), ("headers", "offset", "topic")]
)
def test_columns_come_in_the_order_in_which_they_are_projected(columns):
    (every,) = decoded(FETCHED)
    (some,) = decoded(FETCHED, projection=Projection(columns))
    assert some.schema == record_schema(Projection(columns))
    assert some.equals(every.select(list(columns)))


@pytest.mark.parametrize("column", COLUMNS)
def test_headers_that_are_not_projected_are_not_looked_at(column):
    headers = b"\x0a\xff\xff\xff"  # five of them, and no sense
    record = b"\0\0\0\x02k\x02v" + headers
    fetched = bytes(raw_batch(bytes([2 * len(record)]) + record))
    if column == "headers":
        with pytest.raises(CorruptBatchError, match=r"does not fit|more bytes than its type"):
            decoded(fetched, projection=Projection((column,)))
    else:
        assert decoded(fetched, projection=Projection((column,)))[0].num_rows == 1


@pytest.mark.parametrize(("column", "unread"), [("key", "values"), ("value", "keys")])
def test_the_bytes_of_a_column_that_is_not_projected_are_not_copied(column, unread):
    decoder = RecordDecoder(T, Projection((column,)))
    buffers = decoder._builder.buffers
    getattr(buffers, unread).data[:] = 0xA5
    getattr(buffers, column + "s").data[:] = 0xA5
    (batch,) = decoder.decode(FetchedRecords.of(bytes(Batch.of(SOME))), 0, END)
    assert (getattr(buffers, unread).data == 0xA5).all()
    assert batch.column(column).to_pylist() == [column[:1].encode()] * 5
