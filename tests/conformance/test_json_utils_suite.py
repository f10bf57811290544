"""JsonUtilsSuite: partitions and offsets as JSON."""

import json

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.offset_limits import Specific, parse_offset_limit
from pyspark_kafka.domain.subscription import Assign
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..spark.queries import OURS, read
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import failure, write

SUITE = "JsonUtilsSuite"

A0, A1, B0 = TopicPartition("topicA", 0), TopicPartition("topicA", 1), TopicPartition("topicB", 0)
OFFSETS = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'


@peer(SUITE, "parsing partitions", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    "text", ['{"topicA":[0,1],"topicB":[4,6]}', '{"topicB":[6,4],"topicA":[1,0]}']
)
def test_parsing_partitions(jvm, text):
    expected = [A0, A1, TopicPartition("topicB", 4), TopicPartition("topicB", 6)]
    assert sorted(Assign.from_json(text).partitions) == expected
    assert sorted(jvm.partitions(text)) == expected


@peer(SUITE, "parsing partitionOffsets", Held.BESIDE_JVM)
def test_parsing_partition_offsets(jvm):
    expected = PartitionOffsets({A0: 23, A1: -1, B0: -2})
    assert PartitionOffsets.from_json(OFFSETS) == expected
    assert jvm.partition_offsets(OFFSETS) == expected
    assert expected.to_json() == OFFSETS
    assert jvm.rewritten('{"topicB":{"0":-2},"topicA":{"1":-1,"0":23}}') == OFFSETS


@peer(SUITE, "parsing specificOffsets", Held.BESIDE_JVM)
def test_parsing_specific_offsets(jvm):
    expected = PartitionOffsets({A0: 23, A1: -1, B0: -2})
    assert parse_offset_limit(OFFSETS) == Specific(expected, ())
    assert jvm.starting_offsets(OFFSETS) == expected


@peer(SUITE, "parsing specificOffsets with topic-level earliest/latest", Held.SPARK)
@one_client
def test_parsing_specific_offsets_with_topic_level_earliest_latest(spark, kafka, world, client):
    read = parse_offset_limit('{"topicA":"earliest","topicB":"latest"}')
    assert read == Specific(PartitionOffsets(), (("topicA", -2), ("topicB", -1)))
    one, two = world.topic(2), world.topic(1)
    write(world, one, {0: range(3), 1: range(10, 12)})
    write(world, two, {0: range(20, 24)})
    found = numbers(
        spark,
        kafka,
        client=client,
        subscribe=f"{one},{two}",
        startingOffsets=json.dumps({one: "earliest", two: "earliest"}),
        endingOffsets=json.dumps({one: {"0": 2, "1": 1}, two: "latest"}),
    )
    assert found == [0, 1, 10, 20, 21, 22, 23]


@peer(SUITE, "parsing specificOffsets mixing topic-level and partition-level values", Held.SPARK)
@one_client
def test_parsing_specific_offsets_mixing_topic_level_and_partition_level_values(
    spark, kafka, world, client
):
    read = parse_offset_limit('{"topicA":"earliest","topicB":{"0":23,"1":-1},"topicC":"LATEST"}')
    assert read == Specific(
        PartitionOffsets({B0: 23, TopicPartition("topicB", 1): -1}),
        (("topicA", -2), ("topicC", -1)),
    )
    one, two, three = world.topic(1), world.topic(2), world.topic(1)
    write(world, one, {0: range(3)})
    write(world, two, {0: range(10, 14), 1: range(20, 22)})
    write(world, three, {0: range(30, 33)})
    found = numbers(
        spark,
        kafka,
        client=client,
        subscribe=f"{one},{two},{three}",
        startingOffsets=json.dumps({one: "EarLiest", two: {"0": 2, "1": -2}, three: {"0": 1}}),
        endingOffsets=json.dumps({one: {"0": 2}, two: {"0": 3, "1": -1}, three: "LATEST"}),
    )
    assert found == [0, 1, 12, 20, 21, 31, 32]


@peer(SUITE, "parsing specificOffsets rejects a topic given in both forms", Held.SPARK)
@one_client
@pytest.mark.parametrize(
    "text", ['{"topicA":"earliest","topicA":{"0":23}}', '{"topicA":{"0":23},"topicA":"latest"}']
)
def test_parsing_specific_offsets_rejects_a_topic_given_in_both_forms(spark, kafka, client, text):
    with pytest.raises(ValueError, match="'topicA' has both a topic-level offset"):
        parse_offset_limit(text)
    options = {"client": client, "subscribe": "topicA", "startingOffsets": text}
    refused = str(failure(lambda: read(spark, kafka, OURS, **options).collect()))
    assert "'topicA' has both a topic-level offset" in refused


@peer(SUITE, "parsing specificOffsets rejects malformed json", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    "text",
    [
        '{"topicA":"first"}',
        '{"topicA":[0,1]}',
        '{"topicA":["earliest"]}',
        '{"topicA":{"0":"earliest"}}',
        '["earliest"]',
        '"earliest"',
        "first",
        "not json",
    ],
)
def test_parsing_specific_offsets_rejects_malformed_json(jvm, text):
    with pytest.raises(ValueError, match="Expected") as ours:
        parse_offset_limit(text)
    theirs = str(failure(lambda: jvm.starting_offsets(text)))
    assert text in theirs
    assert str(ours.value).removesuffix(". Did you mean 'earliest'?") == theirs


def numbers(spark: SparkSession, kafka: KafkaCluster, **options: str) -> list[int]:
    return sorted(int(row.value) for row in read(spark, kafka, OURS, **options).collect())
