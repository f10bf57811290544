import pickle

import pytest
from hypothesis import given

from pyspark_kafka.domain.topic_partition import TopicPartition

from .strategies import close_topic_partitions, topic_partitions


@given(close_topic_partitions, close_topic_partitions)
def test_partitions_are_ordered_by_topic_and_number(left, right):
    pairs = (left.topic, left.partition), (right.topic, right.partition)
    assert (left < right, left == right, left > right) == (
        pairs[0] < pairs[1],
        pairs[0] == pairs[1],
        pairs[0] > pairs[1],
    )


@given(topic_partitions)
def test_equal_partitions_are_interchangeable_as_keys(partition):
    twin = TopicPartition(partition.topic, partition.partition)
    assert {partition: "found"}[twin] == "found"


@given(topic_partitions)
def test_pickle(partition):
    assert pickle.loads(pickle.dumps(partition)) == partition  # noqa: S301


@pytest.mark.parametrize(
    ("topic", "number", "problem"),
    [("", 0, "a topic's name must not be empty"), ("t", -1, "not a partition number: -1")],
)
def test_a_partition_has_a_topic_with_a_name_and_a_number_from_0_on(topic, number, problem):
    with pytest.raises(ValueError, match=f"^{problem}$"):
        TopicPartition(topic, number)


def test_a_partition_is_written_as_kafkas_java_client_writes_it():
    assert str(TopicPartition("my-topic", 12)) == "my-topic-12"
