"""Which of a stretch's records belong to a range."""

from dataclasses import replace

import pytest

from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import CorruptBatchError
from pyspark_kafka.domain.reading.records import ALL_COLUMNS

from .batches import (
    CODECS,
    FORMATS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    Batch,
    Record,
    encoded,
    log,
    message_set,
    wrapped,
)
from .reading import END, T, rows, rows_of

OFFSETS = [2, 3, 5, 6, 7, 9, 10, 13]


def records(offsets: list[int]) -> list[Record]:
    return [Record(offset, str(offset).encode()) for offset in offsets]


def stretch(magic: int, codec: int) -> bytes:
    """Return a log of three batches in a format."""
    parts = (OFFSETS[:3], OFFSETS[3:7], OFFSETS[7:])
    return log(*(encoded(records(part), magic, codec) for part in parts))


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_each_range_is_read_even_if_it_begins_or_ends_within_a_batch_or_a_gap(magic, codec):
    decoder = RecordDecoder(T, ALL_COLUMNS)
    fetched = FetchedRecords.of(stretch(magic, codec))
    for first in range(16):
        for end in range(first, 17):
            found = rows_of(decoder.decode(fetched, first, end))
            wanted = [offset for offset in OFFSETS if first <= offset < end]
            assert [row.offset for row in found] == wanted
            assert [row.value for row in found] == [str(offset).encode() for offset in wanted]


CUT = log(
    message_set(0, records([0, 1])),
    wrapped(1, GZIP, records([2, 3])),
    Batch.of(records([4, 5])),
    Batch.of(records([6, 7]), LZ4),
    Batch.of(records([8]), SNAPPY),
)


def test_a_stretch_that_is_cut_off_anywhere_has_the_rows_of_its_whole_batches():
    whole = rows(CUT)
    ends = {batch.end: batch.last_offset + 1 for batch in FetchedRecords.of(CUT).index.batches}
    assert list(ends.values()) == [1, 2, 4, 6, 8, 9]
    for cut in range(len(CUT) + 1):
        behind = max((offset for end, offset in ends.items() if end <= cut), default=None)
        assert FetchedRecords.of(CUT[:cut]).next_offset == behind
        assert rows(CUT[:cut]) == whole[:behind] if behind else rows(CUT[:cut]) == []


def test_a_stretch_of_some_thousand_small_batches_is_read_whole():
    fetched = log(*(Batch.of(records([offset]), offset % 5) for offset in range(3_000)))
    assert [row.offset for row in rows(fetched)] == list(range(3_000))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("before", CODECS)
def test_what_stands_before_corrupt_bytes(before, codec):
    bad = bytearray(bytes(Batch.of(records([7, 8]), codec)))
    bad[-1] ^= 1
    fetched = log(*(Batch.of(records([offset]), before) for offset in (4, 5, 6)), bytes(bad))
    decoder = RecordDecoder(T, ALL_COLUMNS).decode(FetchedRecords.of(fetched), 0, END)
    assert [row.offset for row in rows_of([next(decoder)])] == [4, 5, 6]
    with pytest.raises(CorruptBatchError, match=r"at offset 7 .* its checksum does not match"):
        next(decoder)
    assert [row.offset for row in rows(fetched, 0, 7)] == [4, 5, 6]


def test_a_decoder_after_an_error():
    bad = bytearray(bytes(Batch.of(records([7, 8]))))
    bad[-1] ^= 1
    decoder = RecordDecoder(T, ALL_COLUMNS)
    with pytest.raises(CorruptBatchError):
        list(decoder.decode(FetchedRecords.of(bytes(bad)), 0, END))
    good = FetchedRecords.of(bytes(Batch.of(records([7, 8]))))
    assert [row.offset for row in rows_of(decoder.decode(good, 0, END))] == [7, 8]


def test_a_decoder_that_was_left():
    decoder = RecordDecoder(T, ALL_COLUMNS)
    many = FetchedRecords.of(bytes(Batch.of(records(list(range(20_000))))))
    next(decoder.decode(many, 0, END))
    assert [row.offset for row in rows_of(decoder.decode(many, 3, 5))] == [3, 4]


@pytest.mark.parametrize(
    "fetched",
    [
        log(Batch.of(records([5, 6])), Batch.of(records([6, 7]))),
        log(Batch.of(records([5, 6]), GZIP), Batch.of(records([1]), GZIP)),
        log(Batch.of(records([5, 6])), message_set(1, records([6]))),
        log(Batch.of(records([5, 6])), wrapped(0, GZIP, records([6, 7]))),
        log(message_set(0, records([6])), message_set(0, records([6]))),
        log(message_set(0, records([5, 6])), Batch.of(records([6]), LZ4)),
    ],
)
def test_batches_that_go_back(fetched):
    """Offsets ascend from batch to batch: one that was read before is not read again."""
    with pytest.raises(CorruptBatchError, match="the offsets of its records do not ascend"):
        rows(fetched)


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("deltas", [(1, 0), (0, 0), (0, 5)])
def test_records_that_go_back(codec, deltas):
    written = [Record(10 + delta) for delta in deltas]
    batch = Batch.of([Record(10)], codec)
    body = Batch.of(written, base_offset=10).body
    moved = replace(batch, body=body, count=2, base_offset=20, last_delta=4)
    with pytest.raises(CorruptBatchError, match=r"at offset 20 .* do not ascend"):
        rows(bytes(moved))


@pytest.mark.parametrize("codec", CODECS)
def test_nothing_behind_the_range_is_looked_at(codec):
    fetched = log(Batch.of(records([5, 6, 7]), codec), Batch.of(records([1]), codec))
    assert [row.offset for row in rows(fetched, 0, 7)] == [5, 6]
