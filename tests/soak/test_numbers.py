"""The producer of numbers, without a broker."""

import threading
from typing import Final

import numpy as np
import pytest

from tests.slowness import bound_s
from verification.soak.numbers import DIGITS, NumberProducer, RecordShape, SoakError

PARTITION: Final = 1
_WAIT_S: Final = bound_s(10)


class _Message:
    """A message as librdkafka reports it after it was written."""

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


def test_offsets_that_no_delivery_reported_are_read_from_the_log(producer, monkeypatch):
    for number, offset in ((1, 0), (3, 1), (5, None), (7, 3)):
        producer._delivered(None, _Message(number, offset))
    asked = _read_logs(monkeypatch, (5, 2), (7, 3))
    with producer.paused():
        assert asked == [{PARTITION: (2, None)}]
    offsets, numbers = producer.delivered(PARTITION)
    assert (offsets.tolist(), numbers.tolist()) == ([0, 1, 2, 3], [1, 3, 5, 7])
    assert _places(producer, 5, 6) == ([PARTITION, -1], [2, -1])


def test_only_numbers_that_the_log_lacks_are_compacted(producer, monkeypatch):
    for number in (1, 3, 5, 7, 9, 11):
        producer._delivered(None, _Message(number, number // 2))
    missing = np.array([1, 3, 5, 9])
    asked = _read_logs(monkeypatch, (3, 1), (5, 2), (7, 3))
    assert producer.compacted(missing).tolist() == []
    producer.count = 8
    with producer.compacting():
        assert producer.compacted(missing).tolist() == [1, 9]
    # What is written afterwards is not compacted.
    assert producer.compacted(missing).tolist() == [1]
    assert asked == [{PARTITION: (0, 5)}, {PARTITION: (0, 5)}, {PARTITION: (2, 3)}]


def test_a_number_stays_removed_that_another_replica_still_has(producer, monkeypatch):
    for number in (1, 3, 5, 7):
        producer._delivered(None, _Message(number, number // 2))
    producer.count = 8
    missing = np.array([1, 5])
    _read_logs(monkeypatch, (3, 1), (5, 2), (7, 3))
    with producer.compacting():
        pass
    _read_logs(monkeypatch, (1, 0), (3, 1), (5, 2), (7, 3))
    assert producer.compacted(missing).tolist() == [1]


def test_a_beginning_never_goes_back(producer):
    for number in (1, 3, 5, 7):
        producer._delivered(None, _Message(number, number // 2))
    producer.begin_at({PARTITION: 3})
    producer.begin_at({PARTITION: 2, 0: 1})
    assert producer.starts == {0: 1, PARTITION: 3}
    offsets, numbers = producer.delivered(PARTITION)
    assert (offsets.tolist(), numbers.tolist()) == ([3], [7])


@pytest.mark.parametrize("size", [100, 2_000])
def test_values_have_a_size_and_noise(size):
    shape = RecordShape(size, noise=8)
    values = {number: shape.value(number) for number in (0, 1, 123_456_789)}
    assert {len(value) for value in values.values()} == {size}
    assert {int(value[:DIGITS]) for value in values.values()} == values.keys()
    assert len({value[DIGITS : DIGITS + 8] for value in values.values()}) == len(values)


def _places(producer, *numbers):
    partitions, offsets = producer.places(np.array(numbers))
    return partitions.tolist(), offsets.tolist()


def _read_logs(monkeypatch, *records):
    """Let the log have some numbers at offsets; return the list of what is asked for."""
    asked = []

    def read_log(_servers, _topic, starts):
        asked.append(starts)
        return np.array([(number, PARTITION, offset) for number, offset in records]).T

    monkeypatch.setattr("verification.soak.numbers.read_log", read_log)
    return asked
