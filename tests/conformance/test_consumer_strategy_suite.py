"""ConsumerStrategySuite: which partitions a subscription stands for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.options import QueryKind
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.offset_fetcher import OffsetFetcher

from .peer import Held, peer

if TYPE_CHECKING:
    from pyspark_kafka.testing import KafkaWorld

    from .conftest import OpenContainer

SUITE = "ConsumerStrategySuite"


def partitions(open_container: OpenContainer, **strategy: str) -> frozenset[TopicPartition]:
    """Return the partitions that a fetcher finds for a query's subscription."""
    container = open_container(QueryKind.BATCH, **strategy)
    fetcher: OffsetFetcher = container.offset_fetcher()
    return fetcher.partitions(container.options().subscription)


def all_of(topic: str, count: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in range(count))


@peer(SUITE, "createAdmin must create admin properly", Held.LIBRARY)
@pytest.mark.parametrize("strategy", ["assign", "subscribe", "subscribePattern"])
def test_create_admin_must_create_admin_properly(
    world: KafkaWorld, open_container: OpenContainer, strategy: str
) -> None:
    """Whatever the strategy, the fetcher is made once, answers, and can be closed twice."""
    topic = world.topic()
    text = json.dumps({topic: [0]}) if strategy == "assign" else topic
    container = open_container(QueryKind.BATCH, **{strategy: text})
    fetcher = container.offset_fetcher()
    assert isinstance(fetcher, OffsetFetcher)
    assert container.offset_fetcher() is fetcher
    assert fetcher.earliest([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 0}
    fetcher.close()
    fetcher.close()


@peer(SUITE, "AssignStrategy.assignedTopicPartitions must give back all assigned", Held.LIBRARY)
def test_assign_strategy_must_give_back_all_assigned(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Assigned partitions are read, and no others of their topic."""
    topic = world.topic(3)
    assert partitions(open_container, assign=json.dumps({topic: [0, 1, 2]})) == all_of(topic, 3)
    assert partitions(open_container, assign=json.dumps({topic: [1, 0]})) == all_of(topic, 2)


@peer(SUITE, "AssignStrategy.assignedTopicPartitions must skip invalid partitions", Held.LIBRARY)
def test_assign_strategy_must_skip_invalid_partitions(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Assigned partitions that do not exist are ignored, also a whole topic."""
    topic, unknown = world.topic(2), world.fresh_name()
    given = json.dumps({topic: [0, 1, 2, 42], unknown: [0]})
    assert partitions(open_container, assign=given) == all_of(topic, 2)


@peer(SUITE, "SubscribeStrategy.assignedTopicPartitions must give back all assigned", Held.LIBRARY)
def test_subscribe_strategy_must_give_back_all_assigned(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Topics by name are read with all of their partitions."""
    one, two = world.topic(3), world.topic(1)
    found = partitions(open_container, subscribe=f"{one}, {two}")
    assert found == all_of(one, 3) | all_of(two, 1)


@peer(
    SUITE,
    "SubscribePatternStrategy.assignedTopicPartitions must give back all assigned",
    Held.LIBRARY,
)
def test_subscribe_pattern_strategy_must_give_back_all_assigned(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """Topics in whose name the pattern is found are read with all of their partitions."""
    one, two, _other = world.topic(2), world.topic(1), world.topic(1)
    found = partitions(open_container, subscribePattern=f"^({one}|{two})$")
    assert found == all_of(one, 2) | all_of(two, 1)
    assert partitions(open_container, subscribePattern=f"{one[1:]}$") >= all_of(one, 2)
