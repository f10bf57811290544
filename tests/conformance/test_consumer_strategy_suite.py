"""ConsumerStrategySuite: which partitions a subscription stands for."""

import json

import pytest

from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher

from .conftest import OpenContainer
from .peer import Held, peer

SUITE = "ConsumerStrategySuite"


def partitions(open_container: OpenContainer, **strategy: str) -> frozenset[TopicPartition]:
    container = open_container(QueryKind.BATCH, **strategy)
    fetcher: OffsetFetcher = container.offset_fetcher()
    return fetcher.partitions(container.options().subscription)


def some_of(topic: str, *numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


@peer(SUITE, "createAdmin must create admin properly", Held.BESIDE_JVM)
@pytest.mark.parametrize("strategy", ["assign", "subscribe", "subscribePattern"])
def test_create_admin_must_create_admin_properly(jvm, world, open_container, strategy):
    topic = world.topic()
    expected = some_of(topic, 0)
    text, theirs = {
        "assign": (json.dumps({topic: [0]}), jvm.assign(expected)),
        "subscribe": (topic, jvm.subscribe(topic)),
        "subscribePattern": (f"^{topic}$", jvm.subscribe_pattern(f"^{topic}$")),
    }[strategy]
    assert jvm.assigned(theirs, world.addresses) == expected
    container = open_container(QueryKind.BATCH, **{strategy: text})
    fetcher = container.offset_fetcher()
    assert isinstance(fetcher, OffsetFetcher)
    assert container.offset_fetcher() is fetcher
    assert fetcher.partitions(container.options().subscription) == expected
    assert fetcher.earliest(expected) == {TopicPartition(topic, 0): 0}
    fetcher.close()
    fetcher.close()


@peer(SUITE, "AssignStrategy.assignedTopicPartitions must give back all assigned", Held.BESIDE_JVM)
def test_assign_strategy_must_give_back_all_assigned(jvm, world, open_container):
    topic, _other = world.topic(3), world.topic(2)
    for numbers in ([0, 2], [0, 1, 2]):
        expected = some_of(topic, *numbers)
        assert partitions(open_container, assign=json.dumps({topic: numbers})) == expected
        assert jvm.assigned(jvm.assign(expected), world.addresses) == expected


@peer(SUITE, "AssignStrategy.assignedTopicPartitions must skip invalid partitions", Held.BESIDE_JVM)
def test_assign_strategy_must_skip_invalid_partitions(jvm, world, open_container):
    topic = world.topic(2)
    for numbers, expected in (([0, 1, 2, 42], some_of(topic, 0, 1)), ([2], frozenset())):
        assert partitions(open_container, assign=json.dumps({topic: numbers})) == expected
        strategy = jvm.assign(some_of(topic, *numbers))
        assert jvm.assigned(strategy, world.addresses) == expected


@peer(
    SUITE, "SubscribeStrategy.assignedTopicPartitions must give back all assigned", Held.BESIDE_JVM
)
def test_subscribe_strategy_must_give_back_all_assigned(jvm, world, open_container):
    one, two, _other = world.topic(2), world.topic(3), world.topic(2)
    expected = some_of(one, 0, 1) | some_of(two, 0, 1, 2)
    assert partitions(open_container, subscribe=f"{one}, {two}") == expected
    assert jvm.assigned(jvm.subscribe(one, two), world.addresses) == expected


@peer(
    SUITE,
    "SubscribePatternStrategy.assignedTopicPartitions must give back all assigned",
    Held.BESIDE_JVM,
)
def test_subscribe_pattern_strategy_must_give_back_all_assigned(jvm, world, open_container):
    prefix = world.fresh_name()
    one, two = f"{prefix}-subscribed-1", f"a-{prefix}-subscribed-2"
    for name in (one, two, f"{prefix}-other"):
        world.create(name, 2)
    for pattern, topics in (
        (f"{prefix}-subscribed.*", (one, two)),
        (f"^{prefix}-subscribed", (one,)),
        (f"^(a-)?{prefix}-[s]", (one, two)),
    ):
        expected = frozenset().union(*(some_of(topic, 0, 1) for topic in topics))
        assert partitions(open_container, subscribePattern=pattern) == expected
        strategy = jvm.subscribe_pattern(pattern)
        assert jvm.assigned(strategy, world.addresses) == expected
