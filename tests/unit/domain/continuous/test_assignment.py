from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.continuous.assignment import spread
from pyspark_kafka.domain.topic_partition import TopicPartition


def partitions(count: int, topic: str = "t") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def test_partitions_go_to_slots_in_turns() -> None:
    zero, one, two = partitions(3)
    assert spread([two, zero, one], {0: (), 1: ()}) == {0: [zero, two], 1: [one]}


def test_a_new_partition_goes_to_the_slot_with_the_fewest() -> None:
    assert spread(partitions(1), {0: partitions(2, "u"), 1: partitions(1, "v")}) == {
        1: partitions(1)
    }


def test_without_slots_nothing_can_be_read() -> None:
    with pytest.raises(ValueError, match="no slot"):
        spread(partitions(1), {})


@given(st.integers(0, 50), st.integers(1, 9))
def test_slots_differ_by_one_partition_at_most(count: int, slots: int) -> None:
    found = spread(partitions(count), dict.fromkeys(range(slots), ()))
    sizes = [len(found.get(slot, ())) for slot in range(slots)]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1
