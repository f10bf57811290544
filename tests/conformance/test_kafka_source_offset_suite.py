"""KafkaSourceOffsetSuite: offsets as a checkpoint holds them."""

import json
from itertools import chain
from typing import Any

import pytest

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..spark.queries import OURS, PEER, read_stream
from .jvm_connector import JvmConnector
from .one_client import one_client
from .peer import Held, peer
from .stream_runs import run_once

SUITE = "KafkaSourceOffsetSuite"


def offsets(*entries: tuple[str, int, int]) -> PartitionOffsets:
    return PartitionOffsets(
        {TopicPartition(topic, partition): offset for topic, partition, offset in entries}
    )


KSO1 = offsets(("t", 0, 1))
KSO2 = offsets(("t", 0, 2), ("t", 1, 3))


@peer(SUITE, "comparison <one> <=> <two>", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    ("one", "two"),
    [
        (offsets(("t", 0, 1)), offsets(("t", 0, 2))),
        (offsets(("t", 0, 1), ("t", 1, 0)), offsets(("t", 0, 2), ("t", 1, 1))),
        (offsets(("t", 0, 1), ("T", 0, 0)), offsets(("t", 0, 2), ("T", 0, 1))),
        (offsets(("t", 0, 1)), offsets(("t", 0, 2), ("t", 1, 1))),
        (PartitionOffsets.from_json(KSO1.to_json()), PartitionOffsets.from_json(KSO2.to_json())),
        (offsets(("t", 0, 1)), offsets(("t", 0, 1), ("t", 1, 0))),
        (offsets(("t", 0, 1)), offsets(("u", 0, 1))),
    ],
)
def test_comparison_one_two(jvm, one, two):
    for each in (one, two):
        assert each == PartitionOffsets.from_json(each.to_json())
        assert hash(each) == hash(PartitionOffsets.from_json(each.to_json()))
        assert jvm.source_offset(each).equals(jvm.deserialized(each.to_json()))
    assert one != two
    assert two != one
    assert one.to_json() != two.to_json()
    assert not jvm.source_offset(one).equals(jvm.source_offset(two))
    assert not jvm.deserialized(two.to_json()).equals(jvm.deserialized(one.to_json()))


@peer(SUITE, "basic serialization - deserialization", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    "written", [KSO1, offsets(("t", 1, 0), ("t", 10, 7), ("t", 0, 1), ("T", 0, 2**63 - 1))]
)
def test_basic_serialization_deserialization(jvm, written):
    theirs = jvm.source_offset(written)
    assert written.to_json() == theirs.json()
    assert PartitionOffsets.from_json(theirs.json()) == written
    assert jvm.deserialized(written.to_json()).equals(theirs)
    assert jvm.offsets_of(theirs.partitionToOffsets()) == written
    assert PartitionOffsets.from_dict(json.loads(theirs.json())) == written


@peer(SUITE, "OffsetSeqLog serialization - deserialization", Held.BESIDE_JVM)
@one_client
def test_offset_seq_log_serialization_deserialization(jvm, spark, kafka, topics, client, tmp_path):
    one, two = topics.create(2), topics.create(1)
    topics.numbers(one, 0, range(5))
    topics.numbers(one, 1, range(100, 101))
    topics.numbers(two, 0, range(200, 203))
    logs = {}
    for source, chosen in ((OURS, {"client": client}), (PEER, {})):
        reading = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "3", **chosen}
        first, second = (
            read_stream(spark, kafka, source, subscribe=topic, **reading) for topic in (one, two)
        )
        batches = run_once(first.union(second), tmp_path / source)
        assert sorted(chain.from_iterable(batches)) == [*range(5), 100, 200, 201, 202]
        logs[source] = jvm.offset_log(str(tmp_path / source / "checkpoint" / "offsets"))
    assert logs[OURS].getLatestBatchId().get() == logs[PEER].getLatestBatchId().get() == 1
    for batch in range(2):
        ours, theirs = (in_log(jvm, logs[source], batch) for source in (OURS, PEER))
        assert ours == theirs
        assert all(ours)
    assert ours == [offsets((one, 0, 5), (one, 1, 1)), offsets((two, 0, 3))]


def in_log(jvm: JvmConnector, log: Any, batch: int) -> list[PartitionOffsets]:
    sources = log.get(batch).get().offsets()
    read = [
        jvm.deserialized(sources.apply(number).get().json()) for number in range(sources.size())
    ]
    return [jvm.offsets_of(one.partitionToOffsets()) for one in read]


@peer(SUITE, "read Spark 2.1.0 offset format", Held.BESIDE_JVM)
def test_read_spark_2_1_0_offset_format(jvm):
    old = '{"topic1":{"0":456,"1":789},"topic2":{"0":0}}'
    expected = offsets(("topic1", 0, 456), ("topic1", 1, 789), ("topic2", 0, 0))
    assert PartitionOffsets.from_json(old) == expected
    assert jvm.deserialized(old).equals(jvm.source_offset(expected))
    assert expected.to_json() == old
