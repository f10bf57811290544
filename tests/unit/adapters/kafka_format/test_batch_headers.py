"""Which records a reader of committed transactions sees."""

from collections.abc import Sequence

import pytest

from pyspark_kafka.adapters.kafka_format.batch_headers import AbortedTransaction

from .batches import (
    ABORT,
    COMMIT,
    CONTROL,
    GZIP,
    NONE,
    TRANSACTIONAL,
    Batch,
    Record,
    log,
    message_set,
)
from .reading import END, rows

MARKERS = {"A": ABORT, "C": COMMIT}


def batch(kind: str, producer: int, offset: int) -> tuple[Batch | bytes, int]:
    """Return a batch, and how many offsets it has."""
    if kind in MARKERS:
        return Batch.marker(offset, producer, MARKERS[kind]), 1
    if kind == "emptied":
        attributes = TRANSACTIONAL | CONTROL
        return Batch(base_offset=offset, attributes=attributes, producer_id=producer), 1
    if kind == "message":
        return message_set(1, [Record(offset)]), 1
    attributes = 0 if kind == "plain" else TRANSACTIONAL
    codec = GZIP if kind == "gzip" else NONE
    records = [Record(offset), Record(offset + 1)]
    return Batch.of(records, codec, attributes=attributes, producer_id=producer), 2


def visible(
    text: str, aborted: Sequence[tuple[int, int]], start: int = 0, first: int = 0, end: int = END
) -> list[int]:
    """Return the offsets that are seen of a log.

    A number is a batch of a transaction of this producer; ``A1`` and ``C1`` end one of producer 1.
    """
    batches, offset = [], start
    for token in text.split():
        kind = token.rstrip("0123456789")
        made, size = batch(kind, int(token[len(kind) :] or -1), offset)
        batches.append(made)
        offset += size
    found = rows(log(*batches), first, end, [AbortedTransaction(*pair) for pair in aborted])
    return [row.offset for row in found]


@pytest.mark.parametrize(
    ("text", "aborted", "expected"),
    [
        ("1 C1 1", [], [0, 1, 3, 4]),
        ("1 gzip1 A1 1 plain", [(0, 1)], [5, 6, 7, 8]),
        # Producers side by side, one that aborts again and again, and two that begin alike.
        ("1 2 3 1 A1 1 2 C2 2 A2 A3 C1", [(14, 2), (4, 3), (0, 1)], [2, 3, 9, 10, 11, 12]),
        ("1 A1 1 C1 1 A1 1", [(6, 1), (0, 1)], [3, 4, 9, 10]),
        ("1 2 A1 A2 2", [(0, 2), (0, 1)], [6, 7]),
        # What is not in the transaction.
        ("message plain1 1 plain1", [(0, 1)], [0, 1, 2, 5, 6]),
        # A marker that compaction has emptied.
        ("1 emptied1 1 plain", [(0, 1)], [5, 6]),
        # Batches are of one transaction: a first offset within a batch aborts that batch.
        ("1", [(1, 1)], []),
        ("1 1", [(2, 1)], [0, 1]),
    ],
)
def test_aborted_transactions_and_markers_are_left_out(text, aborted, expected):
    assert visible(text, aborted) == expected


@pytest.mark.parametrize("first", range(8))
def test_begun_before_the_range(first):
    offsets = [offset for offset in (0, 1, 5, 6) if offset >= first]
    assert visible("plain 1 A1 1", [(2, 1)], first=first) == offsets


def test_begun_before_the_stretch():
    assert visible("1 A1 1", [(3, 1)], start=10) == [13, 14]


@pytest.mark.parametrize("end", range(10))
def test_a_range_may_end_in_a_transaction(end):
    assert visible("1 2 A1 1", [(0, 1)], end=end) == [at for at in (2, 3, 5, 6) if at < end]
