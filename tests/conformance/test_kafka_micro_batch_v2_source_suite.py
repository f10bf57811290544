"""KafkaMicroBatchV2SourceSuite: what only the newer of the JVM connector's sources has."""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_kafka.application.reading.stream import KafkaMicroBatchStream
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .conftest import OpenContainer
from .live_queries import OpenStream
from .peer import Held, peer
from .sources import ONE_CLIENT, Source, agreed, for_each

SUITE: Final = "KafkaMicroBatchV2SourceSuite"
CHECKPOINT: Final = Path(__file__).parent / "checkpoints" / "spark-2.4.8"
TOPIC_OF_CHECKPOINT: Final = "written-by-spark-2.4"


@peer(SUITE, "V2 Source is used by default", Held.BESIDE_JVM)
def test_v2_source_is_used_by_default(live, topics):
    topic = topics.create()
    queries = live.queries(lambda open_: open_(subscribePattern=f"{topic}.*"))
    queries.start()
    queries.settle()
    scans = queries.each(lambda one: _scan(one.running()))
    kind = "org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation"
    assert agreed({source: scan.getClass().getName() for source, scan in scans.items()}) == kind
    ours, theirs = (scans[source].stream().getClass().getSimpleName() for source in ONE_CLIENT)
    assert ours.startswith("PythonMicroBatchStream")
    assert theirs == "KafkaMicroBatchStream"


def _scan(query: StreamingQuery) -> Any:
    leaves = query._jsq.streamingQuery().logicalPlan().collectLeaves()
    assert leaves.size() == 1
    return leaves.head()


@peer(SUITE, "minPartitions is supported", Held.BESIDE_JVM)
def test_min_partitions_is_supported(live, topics):
    topic = topics.create()
    topics.numbers(topic, 0, range(100))
    minimums: Mapping[str, dict[str, str]] = {
        "none": {},
        "1": {"minPartitions": "1"},
        "4": {"minPartitions": "4"},
    }

    def united(open_: OpenStream) -> DataFrame:
        first, *others = (
            open_(subscribe=topic, **options).select(lit(name).alias("name"))
            for name, options in minimums.items()
        )
        for other in others:
            first = first.union(other)
        return first

    def tasks(batch: DataFrame, _number: int) -> dict[str, int]:
        names = batch.rdd.mapPartitions(lambda rows: [{row.name for row in rows}]).collect()
        return Counter(name for task in names for name in task)

    queries = live.queries(united, function=tasks)
    queries.run(availableNow=True)
    assert queries.results() == [{"none": 1, "1": 1, "4": 4}]


@pytest.fixture
def topic_of_checkpoint(kafka):
    kafka.create_topic(TOPIC_OF_CHECKPOINT, 5)
    yield TOPIC_OF_CHECKPOINT
    kafka.delete_topic(TOPIC_OF_CHECKPOINT)


@peer(
    SUITE,
    "default config of includeHeader doesn't break existing query from Spark 2.4",
    Held.BESIDE_JVM,
)
def test_a_query_of_spark_2_4_goes_on_without_headers(live, kafka, topics, topic_of_checkpoint):
    """A query with state continues from a Spark 2.4.8 checkpoint, though records have headers."""
    topic = topic_of_checkpoint
    world = KafkaWorld("confluent", topics.fresh_name, kafka)
    for partition in range(5):
        topics.numbers(topic, partition, range(10 * partition - 20, 10 * partition - 17))
        number = str(31 + partition).encode()
        headers = (("a", b"b"), ("c", b"d"))
        world.produce(TopicPartition(topic, partition), [Record(number, headers=headers)])
    world.close()

    def run(source: Source) -> tuple[list[int], int]:
        queries = live.queries(
            lambda open_: open_(subscribePattern=topic).dropDuplicates(), sources=(source,)
        )
        [query] = queries.each(lambda one: one).values()
        shutil.copytree(CHECKPOINT, query.directory / "checkpoint")
        queries.start()
        queries.settle()
        # All have the same id, and Spark runs one at a time.
        queries.stop()
        [rows] = query.results.values()
        progress = query.running().lastProgress
        assert progress is not None
        return rows, progress["stateOperators"][0]["numRowsTotal"]

    rows, rows_in_state = agreed(for_each(ONE_CLIENT, run))
    assert rows == [31, 32, 33, 34, 35]
    assert rows_in_state == 20


@peer(SUITE, "test custom metrics - with rate limit", Held.EMBEDDED)
@peer(SUITE, "test custom metrics - no rate limit", Held.EMBEDDED)
@pytest.mark.parametrize(("limit", "behind"), [({"maxOffsetsPerTrigger": "1"}, True), ({}, False)])
def test_custom_metrics(world, open_container, limit, behind):
    topic = _topic_of(world, 5, 5)
    stream = _stream(open_container, subscribe=topic, **limit)
    limited = stream.default_read_limit
    end = stream.latest_offset(stream.initial_offset(), limited)
    metrics = stream.metrics(end)
    assert metrics.keys() == {
        "minOffsetsBehindLatest",
        "maxOffsetsBehindLatest",
        "avgOffsetsBehindLatest",
    }
    assert all((float(value) > 0) is behind for value in metrics.values())
    while (later := stream.latest_offset(end, limited)) != end:
        end = later
    assert {float(value) for value in stream.metrics(end).values()} == {0}


@peer(SUITE, "test custom metrics - corner cases", Held.EMBEDDED)
@peer(
    SUITE, "SPARK-57438: metrics should not NPE when latestPartitionOffsets is null", Held.EMBEDDED
)
def test_custom_metrics_corner_cases(world, open_container):
    """With 1 of 3 and 2 of 6 consumed the lag is 2, 4 and 3.0; without either it is empty."""
    topic = _topic_of(world, 3, 6)
    consumed = PartitionOffsets({TopicPartition(topic, 0): 1, TopicPartition(topic, 1): 2})
    stream = _stream(open_container, subscribe=topic)
    assert stream.metrics(consumed) == {}
    stream.latest_offset(consumed, stream.default_read_limit)
    assert stream.metrics(None) == {}
    assert stream.metrics(consumed) == {
        "minOffsetsBehindLatest": "2",
        "maxOffsetsBehindLatest": "4",
        "avgOffsetsBehindLatest": "3.0",
    }


def _stream(open_container: OpenContainer, **options: str) -> KafkaMicroBatchStream:
    container = open_container(QueryKind.STREAM, startingOffsets="earliest", **options)
    return container.micro_batch_stream()


def _topic_of(world: KafkaWorld, *counts: int) -> str:
    topic = world.topic(len(counts))
    for partition, count in enumerate(counts):
        records = [Record(str(number).encode()) for number in range(count)]
        world.produce(TopicPartition(topic, partition), records)
    return topic
