"""Bytes that are not those that were written."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from pyspark_kafka.adapters.kafka_format.batch_headers import AbortedTransaction
from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.domain.reading.errors import CorruptBatchError
from pyspark_kafka.domain.reading.records import ALL_COLUMNS

from .batches import (
    CODECS,
    CONTROL,
    FORMATS,
    GZIP,
    NONE,
    TRANSACTIONAL,
    Batch,
    Record,
    encoded,
    log,
)
from .reading import END, Row, T, rows, rows_of

RECORDS = [Record(1, b"value", b"key", headers=(("h", b"x"),)), Record(2, None, b"")]

OFFSET = range(8)
LENGTH = range(8, 12)
EPOCH = range(12, 16)
"""The fields before the checksum of a batch of format 2, which it does not cover."""


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield bytes with each bit flipped in turn, and the index of the byte."""
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bit // 8, bytes(flipped)


def without_offset(found: list[Row]) -> list[Row]:
    return [row._replace(offset=row.offset - found[0].offset) for row in found]


def read(fetched: bytes) -> list[Row] | None:
    """Read a stretch; ``None`` if it is refused."""
    try:
        return rows(fetched)
    except CorruptBatchError:
        return None


def rows_until_an_error(fetched: bytes) -> Iterator[Row]:
    """Read what stands before corrupt bytes."""
    with suppress(CorruptBatchError):
        for batch in RecordDecoder(T, ALL_COLUMNS).decode(FetchedRecords.of(fetched), 0, END):
            yield from rows_of([batch])


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_each_bit(magic, codec):
    written = encoded(RECORDS[: None if codec or magic == 2 else 1], magic, codec)
    right = rows(written)
    for place, flipped in flips(written):
        found = read(flipped)
        if place in EPOCH and magic == 2:
            assert found == right
        elif place in OFFSET:
            # The broker puts it in after the checksum was made: it may be another offset.
            assert found is None or without_offset(found) == without_offset(right)
        elif place in LENGTH:
            assert found is None or (found == [] and FetchedRecords.of(flipped).index.batches == [])
        else:
            assert found is None


@pytest.mark.parametrize("codec", CODECS)
def test_each_bit_in_the_midst(codec):
    before, after = Batch.of([Record(0, b"before")], codec), Batch.of([Record(3)], codec)
    fetched = log(before, Batch.of(RECORDS, codec), after)
    right = rows(fetched)
    for place, flipped in flips(bytes(Batch.of(RECORDS, codec))):
        found = list(rows_until_an_error(log(before, flipped, after)))
        assert found == right if place in EPOCH else found[0] == right[0]
        offsets = [row.offset for row in found]
        assert offsets == sorted(set(offsets))


@pytest.mark.parametrize(("magic", "codec"), [pair for pair in FORMATS if pair[0] == 2 or pair[1]])
def test_with_check_crcs_false_a_wrong_checksum_is_ignored(magic, codec):
    written = encoded(RECORDS, magic, codec)
    wrong = bytearray(written)
    wrong[17 if magic == 2 else 12] ^= 1
    assert read(bytes(wrong)) is None
    assert rows(bytes(wrong), check_crcs=False) == rows(written)


@pytest.mark.parametrize(("magic", "codec"), [(2, NONE), (1, NONE), (1, GZIP)])
def test_what_is_not_wanted_is_not_checked(magic, codec):
    wrong = bytearray(encoded([Record(1)], magic, codec))
    wrong[-1] ^= 1
    fetched = log(encoded([Record(0)], magic, NONE), bytes(wrong))
    assert [row.offset for row in rows(fetched, 0, 1)] == [0]


@pytest.mark.parametrize("attribute", [CONTROL, TRANSACTIONAL])
def test_headers_that_are_wrong(attribute):
    wrong = bytearray(bytes(Batch.of(RECORDS, producer_id=1)))
    wrong[22] ^= attribute
    with pytest.raises(CorruptBatchError):
        rows(bytes(wrong), 0, END, [AbortedTransaction(0, 1)])
