from unittest.mock import Mock

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.cluster_describer import MemoryClusterDescriber
from pyspark_kafka.application.cluster.topic_list import TopicList
from pyspark_kafka.domain.cluster.topics import PartitionDescription, TopicDescription
from pyspark_kafka.domain.subscription import SubscribePattern
from pyspark_kafka.testing import MemoryWorld

ANY = SubscribePattern(".*")
NO_LEADER = PartitionDescription(None, frozenset({0}), frozenset())


def topic_list(world: MemoryWorld, describer: object = None) -> TopicList:
    fetcher = world.container().offset_fetcher()
    return TopicList(fetcher, describer or MemoryClusterDescriber(world.cluster))  # type: ignore[arg-type]


def test_topics_have_offsets_and_leaders():
    world = MemoryWorld(cluster=MemoryCluster())
    world.create("b", 2)
    world.create("a")
    world.cluster.produce("b", b"v", partition=1)
    found = topic_list(world).fetch(ANY)
    assert [(topic.name, topic.offsets, sorted(topic.leaders)) for topic in found] == [
        ("a", 0, [0]),
        ("b", 1, [0]),
    ]
    assert [each.latest for each in found[1].partitions] == [0, 1]


def test_partitions_without_a_leader_are_not_asked_for_offsets():
    """The request would wait for a leader; partitions that are new have none either."""
    leaderless = Mock()
    leaderless.describe_topics.return_value = {"a": TopicDescription({0: NO_LEADER})}
    world = MemoryWorld(cluster=MemoryCluster())
    world.create("a", 2)
    world.create("gone")
    (found,) = topic_list(world, leaderless).fetch(ANY)
    assert [(each.number, each.offsets) for each in found.partitions] == [(0, None), (1, None)]
