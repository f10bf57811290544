from contextlib import closing

import pytest

from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import OffsetFetcherContract

from .held_adapter import HeldAdapter
from .registry import OFFSET_FETCHERS

KAFKA_FETCHERS = [held for held in OFFSET_FETCHERS if held.adapter is not MemoryOffsetFetcher]


@pytest.mark.parametrize("held", OFFSET_FETCHERS, ids=str)
class TestOffsetFetcher(HeldAdapter, OffsetFetcherContract):
    def test_the_adapter_is_that_of_the_registry(self, world, held):
        assert type(world.container().offset_fetcher()) is held.adapter


@pytest.mark.parametrize("held", KAFKA_FETCHERS, ids=str)
def test_internal_topics_can_be_assigned(open_world, held):
    """Patterns do not match them, but other subscriptions have them."""
    with closing(open_world(held)) as world:
        fetcher = world.container().offset_fetcher()
        # The first commit makes Kafka create its internal topic of offsets.
        partition = TopicPartition(world.topic(), 0)
        fetcher.commit(world.fresh_name(), PartitionOffsets({partition: 1}))
        assigned = world.options(assign='{"__consumer_offsets":[0]}').subscription
        assert fetcher.partitions(assigned) == {TopicPartition("__consumer_offsets", 0)}
