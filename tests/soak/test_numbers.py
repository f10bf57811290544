"""The producer of numbers, without a broker."""

import threading
from typing import Final

import pytest

from tests.slowness import bound_s

from .numbers import NumberProducer, SoakError

PARTITION: Final = 1
_WAIT_S: Final = bound_s(10)


class _Message:
    """What librdkafka tells of a record that was written."""

    def __init__(self, number: int, offset: int | None) -> None:
        self._number = number
        self._offset = offset

    def key(self) -> bytes:
        return b"%d/2" % (self._number - 2 * (self._number // 2 % 2))

    def value(self) -> bytes:
        return b"%012d" % self._number

    def partition(self) -> int:
        return PARTITION

    def offset(self) -> int | None:
        return self._offset


@pytest.fixture
def producer():
    return NumberProducer("127.0.0.1:1", "numbers", 2, 100)


def test_a_record_without_an_offset(producer):
    for number, offset in ((1, 0), (3, 1), (5, None), (7, 3), (9, 4)):
        producer._delivered(None, _Message(number, offset))
    offsets, numbers = producer.delivered(PARTITION)
    assert (offsets.tolist(), numbers.tolist()) == ([3, 4], [7, 9])


def test_an_error_of_the_writing_thread(producer, monkeypatch):
    is_called = threading.Event()

    def fail(number: int) -> None:
        is_called.set()
        raise BufferError(f"no room for {number}")

    monkeypatch.setattr(producer, "_produce", fail)
    with pytest.raises(SoakError, match="no room for 0"), producer.writing():
        assert is_called.wait(_WAIT_S)


def test_numbers_that_vanish(producer):
    for number in (1, 3, 5, 7, 9):
        producer._delivered(None, _Message(number, number // 2))
    producer._delivered(None, _Message(13, None))
    assert producer.vanished().tolist() == []
    producer.count = 5
    with producer.compacting():
        assert producer.vanished().tolist() == [1, 5]
    assert producer.vanished().tolist() == [1]
    producer.begin_at({PARTITION: 3})
    assert sorted(set(producer.vanished().tolist())) == [1, 3, 5, 13]
    offsets, numbers = producer.delivered(PARTITION)
    assert (offsets.tolist(), numbers.tolist()) == ([3, 4], [7, 9])


def test_numbers_of_other_partitions_stay(producer):
    producer._delivered(None, _Message(1, 0))
    assert producer.numbers_before({0: 5}).tolist() == []
    assert producer.numbers_before({0: 5, 2: 5}).tolist() == []
    assert producer.numbers_before({PARTITION: 1}).tolist() == [1]
