"""KafkaSourceOffsetSuite: offsets as a checkpoint holds them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..spark.queries import OURS, read_stream
from .one_client import one_client
from .peer import Held, peer
from .stream_runs import batch_ends, run_once

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pyspark_kafka.brokers import KafkaCluster

    from ..spark.topics import Topics

SUITE = "KafkaSourceOffsetSuite"


def offsets(*entries: tuple[str, int, int]) -> PartitionOffsets:
    return PartitionOffsets(
        {TopicPartition(topic, partition): offset for topic, partition, offset in entries}
    )


@peer(SUITE, "comparison <one> <=> <two>", Held.LIBRARY)
@pytest.mark.parametrize(
    ("one", "two"),
    [
        (offsets(("t", 0, 1)), offsets(("t", 0, 2))),
        (offsets(("t", 0, 1), ("t", 1, 0)), offsets(("t", 0, 2), ("t", 1, 1))),
        (offsets(("t", 0, 1), ("T", 0, 0)), offsets(("t", 0, 2), ("T", 0, 1))),
        (offsets(("t", 0, 1)), offsets(("t", 0, 1), ("t", 1, 0))),
        (offsets(("t", 0, 1)), offsets(("u", 0, 1))),
    ],
)
def test_comparison_one_two(one: PartitionOffsets, two: PartitionOffsets) -> None:
    """Offsets are equal to themselves as the checkpoint holds them, and to no others."""
    for each in (one, two):
        assert each == PartitionOffsets.from_json(each.to_json())
        assert hash(each) == hash(PartitionOffsets.from_json(each.to_json()))
    assert one != two
    assert two != one
    assert one.to_json() != two.to_json()


@peer(SUITE, "basic serialization - deserialization", Held.LIBRARY)
def test_basic_serialization_deserialization() -> None:
    """What was written is read again, in one order whatever the order it came in."""
    written = offsets(("t", 1, 0), ("t", 10, 7), ("t", 0, 1), ("T", 0, 2**63 - 1))
    text = written.to_json()
    assert text == '{"T":{"0":9223372036854775807},"t":{"0":1,"1":0,"10":7}}'
    assert PartitionOffsets.from_json(text) == written
    assert PartitionOffsets.from_dict(json.loads(text)) == written


@peer(SUITE, "OffsetSeqLog serialization - deserialization", Held.SPARK)
@one_client
def test_offset_seq_log_serialization_deserialization(
    spark: SparkSession, kafka: KafkaCluster, topics: Topics, client: str, tmp_path: Path
) -> None:
    """Spark's log of offsets holds the end of each batch, and a restart goes on from it."""
    topic = topics.create(2)
    reading = {"subscribe": topic, "client": client, "startingOffsets": "earliest"}
    batches = []
    for start in (0, 5):
        topics.numbers(topic, 0, range(start, start + 5))
        topics.numbers(topic, 1, range(100 + start, 101 + start))
        batches += run_once(read_stream(spark, kafka, OURS, **reading), tmp_path)
    assert batches == [[0, 1, 2, 3, 4, 100], [5, 6, 7, 8, 9, 105]]
    assert [PartitionOffsets.from_dict(end) for end in batch_ends(tmp_path)] == [
        offsets((topic, 0, 5), (topic, 1, 1)),
        offsets((topic, 0, 10), (topic, 1, 2)),
    ]


@peer(SUITE, "read Spark 2.1.0 offset format", Held.LIBRARY)
def test_read_spark_2_1_0_offset_format() -> None:
    """Offsets are read as Spark has written them since 2.1.0."""
    old = '{"topic1":{"0":456,"1":789},"topic2":{"0":0}}'
    read = offsets(("topic1", 0, 456), ("topic1", 1, 789), ("topic2", 0, 0))
    assert PartitionOffsets.from_json('{"topic1":{"0":456}}') == offsets(("topic1", 0, 456))
    assert PartitionOffsets.from_json(old) == read
    assert read.to_json() == old
