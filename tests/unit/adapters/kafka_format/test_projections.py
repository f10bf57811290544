import pytest

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import CorruptBatchError
from pyspark_kafka.domain.reading.records import COLUMNS, Projection
from pyspark_kafka.ports.record_schema import record_schema

from .batches import GZIP, Batch, Record, log, message_set, raw_batch, wrapped
from .reading import END, T, decoded

RECORDS = [Record(offset, b"v", b"k", headers=(("h", None),)) for offset in range(5)]
FETCHED = log(
    message_set(0, [Record(-5 + offset) for offset in range(5, 7)]),
    wrapped(1, GZIP, [Record(2), Record(3)]),
    Batch.of([record._replace(offset=record.offset + 4) for record in RECORDS]),
    Batch.of([record._replace(offset=record.offset + 9) for record in RECORDS], GZIP),
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
    (batch,) = decoder.decode(FetchedRecords.of(bytes(Batch.of(RECORDS))), 0, END)
    assert (getattr(buffers, unread).data == 0xA5).all()
    assert batch.column(column).to_pylist() == [column[:1].encode()] * 5
