"""KafkaOffsetRangeLimitSuite: offsets of whole topics."""

import json

from dependency_injector import providers

from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..spark.queries import OURS, read
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import failure, write
from .unsteady_fetcher import unsteady

SUITE = "KafkaOffsetRangeLimitSuite"


@peer(SUITE, "resolving topic-level offsets against the assigned partitions", Held.SPARK)
@one_client
def test_resolving_topic_level_offsets_against_the_assigned_partitions(
    spark, world, open_container, kafka
):
    one, two = world.topic(2), world.topic(1)
    write(world, one, {0: range(2), 1: range(10, 12)})
    write(world, two, {0: range(100, 125)})
    reading = {
        "subscribe": f"{one},{two}",
        "startingOffsets": json.dumps({one: "earliest", two: {"0": 23}}),
    }
    container = open_container(QueryKind.BATCH, **reading)
    limit = container.options().starting_offsets
    assert container.offset_reader().unresolved(limit, "start") == {
        TopicPartition(one, 0): -2,
        TopicPartition(one, 1): -2,
        TopicPartition(two, 0): 23,
    }
    rows = read(spark, kafka, OURS, client=world.client, **reading).collect()
    assert sorted(int(row.value) for row in rows) == [0, 1, 10, 11, 123, 124]


@peer(
    SUITE,
    "resolving fully enumerated offsets doesn't need the assigned partitions",
    Held.BESIDE_JVM,
)
@one_client
def test_resolving_fully_enumerated_offsets_does_not_need_the_assigned_partitions(
    jvm, world, open_container
):
    """Offsets of all partitions are looked up once, to check them, and not again to resolve them.

    The JVM connector before 4.3 resolves no topics, and looks up partitions for the same check.
    """
    topic = world.topic()
    offsets = PartitionOffsets({TopicPartition(topic, 0): 23})
    container = open_container(QueryKind.BATCH, subscribe=topic, startingOffsets=offsets.to_json())
    ours = unsteady(container.offset_fetcher())
    with container.offset_fetcher.override(providers.Object(ours)):
        limit = container.options().starting_offsets
        assert container.offset_reader().unresolved(limit, "start") == offsets
    theirs = jvm.unsteady(jvm.subscribe(topic))
    with jvm.offset_reader(theirs, world.addresses) as reader:
        assert reader.partition_offsets(jvm.specific(offsets)) == offsets
    assert ours.partitions.call_count == theirs.calls == 1


@peer(
    SUITE, "resolving a topic-level offset of a topic without assigned partitions fails", Held.SPARK
)
@one_client
def test_resolving_a_topic_level_offset_of_a_topic_without_assigned_partitions_fails(
    spark, world, kafka
):
    topic = world.topic(1)
    refused = failure(
        lambda: read(
            spark,
            kafka,
            OURS,
            client=world.client,
            subscribe=topic,
            startingOffsets=json.dumps({topic: "earliest", "another": "earliest"}),
        ).collect()
    )
    assert "[KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED]" in str(refused)
    assert f"no assigned partitions: another. Assigned: Set({topic}-0)" in str(refused)
