"""Ranges that are fetched by one request."""

from pyspark_kafka.domain.reading.expected_ranges import MAX_TOGETHER, ExpectedRanges
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def expecting(*numbers: int) -> ExpectedRanges[str]:
    expected = ExpectedRanges[str]()
    expected.expect([OffsetRange(tp(number), 7, 9) for number in numbers])
    return expected


def together(expected: ExpectedRanges[str]) -> list[int]:
    return [one.partition.partition for one in expected.next_on(lambda _: True)]


def test_what_was_begun_is_not_expected():
    expected = expecting(0, 1, 2, 3)
    expected.begin(tp(1), 7)
    assert together(expected) == [2, 3]
    expected.begin(tp(3), 8)
    assert together(expected) == [2, 3]


def test_a_request_names_a_partition_once():
    expected = expecting(0, 1, 0, 2)
    assert together(expected) == [0, 1, 2]
    even = expected.next_on(lambda partition: partition.partition % 2 == 0)
    assert [one.partition.partition for one in even] == [0, 2]


def test_a_request_has_a_bound():
    assert len(together(expecting(*range(10 * MAX_TOGETHER)))) == MAX_TOGETHER


def test_what_is_held_has_a_bound():
    """A range of many fetches is read first, and each fetch could name further ranges."""
    expected = expecting(*range(10 * MAX_TOGETHER))
    held = 0
    for _ in range(3):
        for number in together(expected):
            expected.hold(tp(number), "data")
            held += 1
    assert held == MAX_TOGETHER
    expected.begin(tp(0), 7)
    assert expected.take(tp(0)) == "data"
    assert together(expected) == [MAX_TOGETHER]


def test_a_partition_with_an_error_is_read_alone():
    """Its broker would answer at once each time, although the others have no records yet."""
    expected = expecting(0, 1, 2)
    expected.refuse(tp(1))
    assert together(expected) == [0, 2]
    expected.expect([OffsetRange(tp(1), 9, 10)])
    assert together(expected) == [1]


def test_a_range_that_begins_again_changes_nothing():
    expected = expecting(0, 1, 2, 3)
    for number in (2, 2, 0):
        expected.begin(tp(number), 7)
        assert together(expected) == [3]


def test_the_start_of_a_range_is_found_without_a_search():
    compared = 0

    class Partition(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, str(other))

        __hash__ = str.__hash__

    count = 5_000
    expected = ExpectedRanges[str]()
    expected.expect([OffsetRange(TopicPartition(Partition("t"), n), 7, 9) for n in range(count)])
    for number in range(count):
        expected.begin(TopicPartition(Partition("t"), number), 7)
        # A read of the rest of the range, by another request.
        expected.begin(TopicPartition(Partition("t"), number), 8)
    assert together(expected) == []
    assert compared < 10 * count


def test_held_data_are_taken_once():
    expected = expecting(0, 1)
    expected.hold(tp(0), "data")
    assert together(expected) == [1]
    assert [expected.take(tp(0)) for _ in range(2)] == ["data", None]


def test_a_new_expectation_drops_what_is_held():
    """A task that ended early leaves nothing for the next one."""
    expected = expecting(0)
    expected.hold(tp(0), "data")
    expected.expect([])
    assert expected.take(tp(0)) is None
