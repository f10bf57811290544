import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.reading.offsets import PartitionCache
from pyspark_kafka.domain.topic_partition import TopicPartition

from .conftest import tp


class Asked:
    """Answers with one partition more each time."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> frozenset[TopicPartition]:
        self.times += 1
        return frozenset(tp(number) for number in range(self.times))


def test_an_answer_is_kept_for_its_time():
    clock, asked = MemoryClock(5_000), Asked()
    cache = PartitionCache(100, clock)
    assert cache.get(asked) == {tp(0)}
    clock.sleep_ms(99)
    assert cache.get(asked) == {tp(0)}
    clock.sleep_ms(1)
    assert cache.get(asked) == {tp(0), tp(1)}
    clock.sleep_ms(99)
    assert cache.get(asked) == {tp(0), tp(1)}
    assert asked.times == 2


def test_a_negative_time_keeps_nothing():
    asked = Asked()
    cache = PartitionCache(-1, MemoryClock())
    assert [len(cache.get(asked)) for _ in range(3)] == [1, 2, 3]


def test_an_answer_can_be_forgotten():
    """What is in doubt is asked for again before its time is over."""
    asked = Asked()
    cache = PartitionCache(100, MemoryClock())
    cache.get(asked)
    cache.clear()
    assert cache.get(asked) == {tp(0), tp(1)}


def test_no_partition_is_an_answer_that_is_kept():
    """A pattern that finds nothing is not asked for again at once."""
    answers = [frozenset[TopicPartition](), frozenset({tp(0)})]
    cache = PartitionCache(100, MemoryClock())
    assert cache.get(lambda: answers.pop(0)) == frozenset()
    assert cache.get(lambda: answers.pop(0)) == frozenset()


def test_a_failure_is_not_kept():
    def fail() -> frozenset[TopicPartition]:
        raise OSError("no")

    cache = PartitionCache(100, MemoryClock())
    with pytest.raises(OSError, match="no"):
        cache.get(fail)
    assert cache.get(Asked()) == {tp(0)}
