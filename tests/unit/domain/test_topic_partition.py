import dataclasses
import pickle

import pytest
from hypothesis import given

from pyspark_kafka.domain.topic_partition import TopicPartition

from .strategies import close_topic_partitions, topic_partitions


@given(close_topic_partitions, close_topic_partitions)
def test_order(left, right):
    """Partitions are ordered as pairs of their topic's name and their number."""
    pairs = (left.topic, left.partition), (right.topic, right.partition)
    assert (left < right, left == right, left > right) == (
        pairs[0] < pairs[1],
        pairs[0] == pairs[1],
        pairs[0] > pairs[1],
    )


def test_numeric_order():
    """Partition 2 stands before partition 10, and both stand before the next topic's."""
    first, second, third = (TopicPartition(*pair) for pair in (("a", 2), ("a", 10), ("b", 0)))
    assert sorted([third, second, first]) == [first, second, third]


@given(topic_partitions)
def test_equality_and_hash(partition):
    """Equal partitions are interchangeable as keys."""
    twin = TopicPartition(partition.topic, partition.partition)
    assert {partition: "found"}[twin] == "found"


@given(topic_partitions)
def test_pickle(partition):
    """A partition survives the pickle between processes."""
    assert pickle.loads(pickle.dumps(partition)) == partition  # noqa: S301


@pytest.mark.parametrize(
    ("topic", "number", "problem"),
    [
        ("", 0, "a topic's name must not be empty"),
        ("t", -1, "not a partition number: -1"),
    ],
)
def test_refusal(topic, number, problem):
    """A partition has a topic with a name, and a number from 0 on."""
    with pytest.raises(ValueError, match=f"^{problem}$"):
        TopicPartition(topic, number)


@pytest.mark.parametrize("name", ["topic", "partition"])
def test_immutability(name):
    """A partition cannot be turned into another one."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(TopicPartition("t", 0), name, 1)


def test_text():
    """A partition is written as Kafka's Java client writes it."""
    assert str(TopicPartition("my-topic", 12)) == "my-topic-12"
