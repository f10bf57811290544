"""Ranges that are fetched by one request."""

from __future__ import annotations

import struct

from kafka import errors as kafka_errors

from pyspark_kafka.adapters.kafka_python.expected_ranges import MAX_TOGETHER, ExpectedRanges
from pyspark_kafka.adapters.kafka_python.wire import NO_REPLICA, FetchedData, FetchPosition
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

BATCH = struct.pack(">qi", 7, 4) + b"rest"
FROM_7 = FetchPosition(7)


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def expecting(*numbers: int) -> ExpectedRanges:
    expected = ExpectedRanges()
    expected.expect([OffsetRange(tp(number), 7, 9) for number in numbers])
    return expected


def together(expected: ExpectedRanges) -> list[int]:
    return [one.partition.partition for one in expected.next_on(lambda _: True)]


def data(
    records: bytes, error: type[kafka_errors.KafkaError] = kafka_errors.NoError
) -> FetchedData:
    return FetchedData(error, NO_REPLICA, (), memoryview(bytearray(records)))


def test_what_was_begun_is_not_expected() -> None:
    """Neither are ranges that were passed over; a range that was not announced changes nothing."""
    expected = expecting(0, 1, 2, 3)
    expected.begin(tp(1), 7)
    assert together(expected) == [2, 3]
    expected.begin(tp(3), 8)
    assert together(expected) == [2, 3]


def test_a_request_names_a_partition_once() -> None:
    """A second range of it comes with a later request, as do those of other brokers."""
    expected = expecting(0, 1, 0, 2)
    assert together(expected) == [0, 1, 2]
    even = expected.next_on(lambda partition: partition.partition % 2 == 0)
    assert [one.partition.partition for one in even] == [0, 2]


def test_a_request_has_a_bound() -> None:
    """However many ranges are expected."""
    assert len(together(expecting(*range(10 * MAX_TOGETHER)))) == MAX_TOGETHER


def test_a_range_that_begins_again_changes_nothing() -> None:
    """Neither does one that was passed over."""
    expected = expecting(0, 1, 2, 3)
    for number in (2, 2, 0):
        expected.begin(tp(number), 7)
        assert together(expected) == [3]


def test_the_start_of_a_range_is_found_without_a_search() -> None:
    """The ranges of a task are compared a few times each, however many there are."""
    compared = 0

    class Partition(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, str(other))

        __hash__ = str.__hash__

    count = 5_000
    expected = ExpectedRanges()
    expected.expect([OffsetRange(TopicPartition(Partition("t"), n), 7, 9) for n in range(count)])
    for number in range(count):
        expected.begin(TopicPartition(Partition("t"), number), 7)
        # A read of the rest of the range, by another request.
        expected.begin(TopicPartition(Partition("t"), number), 8)
    assert together(expected) == []
    assert compared < 10 * count


def test_held_data_are_taken_once() -> None:
    """They are a copy: the memory of the response is used again."""
    expected, sent = expecting(0), data(BATCH)
    expected.hold({tp(0): sent}, {tp(0): FROM_7}, is_by_id=True)
    sent.records[:] = bytes(len(BATCH))
    held = expected.take(tp(0))
    assert held is not None
    assert (bytes(held.data.records), held.position, held.is_by_id) == (BATCH, FROM_7, True)
    assert expected.take(tp(0)) is None


def test_only_whole_batches_are_held() -> None:
    """What failed, is empty, cut off, or was not sent is fetched again, alone."""
    expected = expecting(0, 1, 2, 3)
    sent = {
        tp(0): data(b""),
        tp(1): data(BATCH[:-1]),
        tp(2): data(BATCH, kafka_errors.NotLeaderForPartitionError),
        tp(4): data(struct.pack(">qi", 7, -1) + b"rest"),
    }
    expected.hold(sent, {tp(number): FROM_7 for number in range(5)}, is_by_id=False)
    assert [expected.take(tp(number)) for number in range(5)] == [None] * 5


def test_a_new_expectation_drops_what_is_held() -> None:
    """A task that ended early leaves nothing for the next one."""
    expected = expecting(0)
    expected.hold({tp(0): data(BATCH)}, {tp(0): FROM_7}, is_by_id=True)
    expected.expect([])
    assert expected.take(tp(0)) is None
