"""Which records a reader of committed transactions sees."""

import pytest

from pyspark_kafka.adapters.kafka_format.batch_headers import AbortedTransaction

from .batches import ABORT, COMMIT, GZIP, TRANSACTIONAL, Batch, Record, log, message_set
from .reading import END, rows

Aborted = list[tuple[int, int]]


def sent(offset: int, producer: int, codec: int = 0) -> Batch:
    return Batch.of(
        [Record(offset), Record(offset + 1)], codec, attributes=TRANSACTIONAL, producer_id=producer
    )


def plain(offset: int, producer: int = -1) -> Batch:
    return Batch.of([Record(offset), Record(offset + 1)], producer_id=producer)


def visible(aborted: Aborted, *batches: Batch | bytes, first: int = 0, end: int = END) -> list[int]:
    found = rows(log(*batches), first, end, [AbortedTransaction(*pair) for pair in aborted])
    return [row.offset for row in found]


def test_committed():
    """Transactions that a fetch does not call aborted are read, but for their markers."""
    assert visible([], sent(0, 1), Batch.marker(2, 1, COMMIT), sent(3, 1)) == [0, 1, 3, 4]


def test_an_aborted_transaction_is_left_out():
    batches = (sent(0, 1), sent(2, 1, GZIP), Batch.marker(4, 1, ABORT), sent(5, 1), plain(7))
    assert visible([(0, 1)], *batches) == [5, 6, 7, 8]


def test_producers_side_by_side():
    batches = (
        sent(0, 1),
        sent(2, 2),
        sent(4, 3),
        sent(6, 1),
        Batch.marker(8, 1, ABORT),
        sent(9, 1),
        sent(11, 2),
        Batch.marker(13, 2, COMMIT),
        sent(14, 2),
        Batch.marker(16, 2, ABORT),
        Batch.marker(17, 3, ABORT),
        Batch.marker(18, 1, COMMIT),
    )
    assert visible([(14, 2), (4, 3), (0, 1)], *batches) == [2, 3, 9, 10, 11, 12]


def test_aborted_again_and_again():
    batches = (
        sent(0, 1),
        Batch.marker(2, 1, ABORT),
        sent(3, 1),
        Batch.marker(5, 1, COMMIT),
        sent(6, 1),
        Batch.marker(8, 1, ABORT),
        sent(9, 1),
    )
    assert visible([(6, 1), (0, 1)], *batches) == [3, 4, 9, 10]


def test_two_that_begin_alike():
    """Transactions of two producers may be said to begin with the same offset."""
    batches = (sent(0, 1), sent(2, 2), Batch.marker(4, 1, ABORT), Batch.marker(5, 2, ABORT))
    assert visible([(0, 2), (0, 1)], *batches, sent(6, 2)) == [6, 7]


@pytest.mark.parametrize("first", range(8))
def test_begun_before_the_range(first):
    batches = (plain(0), sent(2, 1), Batch.marker(4, 1, ABORT), sent(5, 1))
    offsets = [offset for offset in (0, 1, 5, 6) if offset >= first]
    assert visible([(2, 1)], *batches, first=first) == offsets


def test_begun_before_the_stretch():
    assert visible([(3, 1)], sent(10, 1), Batch.marker(12, 1, ABORT), sent(13, 1)) == [13, 14]


@pytest.mark.parametrize("end", range(10))
def test_a_range_may_end_in_a_transaction(end):
    batches = (sent(0, 1), sent(2, 2), Batch.marker(4, 1, ABORT), sent(5, 1))
    assert visible([(0, 1)], *batches, end=end) == [at for at in (2, 3, 5, 6) if at < end]


def test_not_in_the_transaction():
    batches = (message_set(1, [Record(0)]), plain(1, producer=1), sent(3, 1), plain(5, producer=1))
    assert visible([(0, 1)], *batches) == [0, 1, 2, 5, 6]


def test_a_marker_that_compaction_has_emptied():
    emptied = Batch(base_offset=2, attributes=TRANSACTIONAL | 0x20, producer_id=1)
    assert visible([(0, 1)], sent(0, 1), emptied, sent(3, 1), plain(5)) == [5, 6]


def test_the_batch_in_which_a_transaction_begins():
    """A first offset within a batch aborts that batch: batches are of one transaction."""
    assert visible([(1, 1)], sent(0, 1)) == []


def test_a_transaction_that_begins_behind_a_batch_does_not_abort_it():
    assert visible([(2, 1)], sent(0, 1), sent(2, 1)) == [0, 1]
