from contextlib import closing

import pytest

from pyspark_kafka.adapters.kafka_python.cluster_describer import KafkaPythonClusterDescriber
from pyspark_kafka.adapters.memory.cluster_describer import MemoryClusterDescriber
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import ClusterDescriberContract, Record

from .held_adapter import HeldAdapter
from .registry import CLUSTER_DESCRIBERS

KAFKA_DESCRIBERS = [
    held for held in CLUSTER_DESCRIBERS if held.adapter is not MemoryClusterDescriber
]


@pytest.mark.parametrize("held", CLUSTER_DESCRIBERS, ids=str)
class TestClusterDescriber(HeldAdapter, ClusterDescriberContract):
    def test_the_adapter_is_that_of_the_registry(self, world, held):
        assert type(world.container().cluster_describer()) is held.adapter


@pytest.mark.parametrize("held", KAFKA_DESCRIBERS, ids=str)
def test_settings_and_sizes(open_world, held):
    """A topic has its retention, and with kafka-python the bytes of each leader's log."""
    with closing(open_world(held)) as world:
        topic = world.topic(2, retention__ms="86400000", cleanup__policy="compact")
        world.produce(TopicPartition(topic, 1), [Record(b"v", key=b"k")])
        described = world.container().cluster_describer().describe_topics([topic])[topic]
        assert described.retention_ms == 86_400_000
        assert described.retention_bytes == -1
        assert described.cleanup_policy == "compact"
        sizes = [described.partitions[number].size for number in (0, 1)]
        if held.adapter is KafkaPythonClusterDescriber:
            assert sizes[0] == 0
            assert sizes[1]
        else:
            assert sizes == [None, None]
