"""What every ``RecordWriter`` owes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.partition_log import StoredRecord
from pyspark_kafka.adapters.memory.record_writer import MemoryRecordWriter
from pyspark_kafka.domain.errors import KafkaRequestError, UnknownTopicError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.record_schema import TYPES


def batch(**columns: list[Any]) -> pa.RecordBatch:
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return pa.RecordBatch.from_pydict(columns, schema=schema)


@pytest.fixture
def cluster() -> MemoryCluster:
    """Give a cluster with the topics ``one`` and ``other`` of two partitions each."""
    made = MemoryCluster()
    made.create_topic("one", 2)
    made.create_topic("other", 2)
    return made


@pytest.fixture
def writer(cluster: MemoryCluster) -> MemoryRecordWriter:
    """Give the writer that is held to the contract."""
    return MemoryRecordWriter(cluster)


def written(cluster: MemoryCluster, topic: str, partition: int) -> list[StoredRecord]:
    return cluster.fetch(
        TopicPartition(topic, partition), 0, 1_000, committed_only=False, most=1_000
    )


def test_every_column_is_written(cluster: MemoryCluster, writer: MemoryRecordWriter) -> None:
    """Key, value, partition, headers and timestamp arrive as they were given."""
    when = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
    headers = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    writer.write(
        batch(
            key=[b"k"],
            value=[b"v"],
            topic=["one"],
            partition=[1],
            headers=[headers],
            timestamp=[when],
        )
    )
    assert writer.flush() == 1
    [record] = written(cluster, "one", 1)
    assert (record.key, record.value) == (b"k", b"v")
    assert record.headers == (("a", b"1"), ("a", None))
    assert record.timestamp == round(when.timestamp() * 1_000)


def test_a_given_topic_stands_above_the_column(
    cluster: MemoryCluster, writer: MemoryRecordWriter
) -> None:
    """The topic of the call is taken, whatever the column says."""
    writer.write(batch(value=[b"v"], topic=["one"], partition=[0]), topic="other")
    assert written(cluster, "one", 0) == []
    assert [record.value for record in written(cluster, "other", 0)] == [b"v"]


def test_a_record_without_a_partition_goes_where_its_key_goes(
    cluster: MemoryCluster, writer: MemoryRecordWriter
) -> None:
    """Records of one key stay together and in order."""
    keys = [b"%d" % (number % 7) for number in range(70)]
    values = [b"%d" % number for number in range(70)]
    writer.write(batch(key=keys, value=values), topic="one")
    partitions = [written(cluster, "one", number) for number in (0, 1)]
    assert all(partitions)
    for key in set(keys):
        homes = [part for part in partitions if any(record.key == key for record in part)]
        [home] = homes
        ours = [int(record.value or b"") for record in home if record.key == key]
        assert ours == sorted(ours)


def test_flush_counts_since_the_last_one(writer: MemoryRecordWriter) -> None:
    """Each flush counts what was acknowledged since the one before."""
    writer.write(batch(value=[b"v", b"w"]), topic="one")
    assert writer.flush() == 2
    assert writer.flush() == 0


def test_a_record_needs_a_topic(writer: MemoryRecordWriter) -> None:
    """A record without a topic, and one of an unknown topic, are errors."""
    with pytest.raises(KafkaRequestError, match="names no topic"):
        writer.write(batch(value=[b"v"]))
    with pytest.raises(UnknownTopicError, match="'none'"):
        writer.write(batch(value=[b"v"]), topic="none")


def test_closing_twice_does_no_harm(writer: MemoryRecordWriter) -> None:
    """The second call of close does nothing."""
    writer.close()
    writer.close()
