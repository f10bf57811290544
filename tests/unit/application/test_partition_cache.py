from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.reading.offsets import PartitionCache

from .conftest import tp


@pytest.fixture
def asked():
    """Return a function that returns one partition more each time."""
    return Mock(side_effect=(frozenset(map(tp, range(count))) for count in range(1, 9)))


def test_an_answer_is_kept_for_its_time(asked):
    clock = MemoryClock(5_000)
    cache = PartitionCache(100, clock)
    assert cache.get(asked) == {tp(0)}
    clock.sleep_ms(99)
    assert cache.get(asked) == {tp(0)}
    clock.sleep_ms(1)
    assert cache.get(asked) == {tp(0), tp(1)}
    clock.sleep_ms(99)
    assert cache.get(asked) == {tp(0), tp(1)}
    assert asked.call_count == 2


def test_a_negative_time_keeps_nothing(asked):
    cache = PartitionCache(-1, MemoryClock())
    assert [len(cache.get(asked)) for _ in range(3)] == [1, 2, 3]


def test_an_answer_can_be_forgotten(asked):
    """An answer in doubt is asked for again before its time is over."""
    cache = PartitionCache(100, MemoryClock())
    cache.get(asked)
    cache.clear()
    assert cache.get(asked) == {tp(0), tp(1)}


def test_no_partition_is_an_answer_that_is_kept():
    """A pattern that finds nothing is not asked for again at once."""
    answers = Mock(side_effect=[frozenset(), frozenset({tp(0)})])
    cache = PartitionCache(100, MemoryClock())
    assert cache.get(answers) == cache.get(answers) == frozenset()


def test_a_failure_is_not_kept(asked):
    cache = PartitionCache(100, MemoryClock())
    with pytest.raises(OSError, match="no"):
        cache.get(Mock(side_effect=OSError("no")))
    assert cache.get(asked) == {tp(0)}
