"""KafkaMicroBatchSourceSuite: what a micro-batch stream does, batch for batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record
from tests.spark.queries import OURS, PEER, read_stream, run_available_now

from .one_client import one_client
from .peer import Held, peer
from .stream_runs import await_latest, await_until, batch_ends, run_once, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_kafka.brokers import KafkaCluster
    from tests.spark.topics import Topics

BASE = "KafkaMicroBatchSourceSuiteBase"


@pytest.fixture
def open_stream(spark: SparkSession, kafka: KafkaCluster, client: str) -> Callable[..., DataFrame]:
    """Return a function to open a stream of either source, from the earliest offsets."""

    def opened(source: str = OURS, **options: str) -> DataFrame:
        chosen = {"client": client} if source == OURS else {}
        return read_stream(
            spark, kafka, source, **{"startingOffsets": "earliest", **chosen, **options}
        )

    return opened


@pytest.fixture
def world(kafka: KafkaCluster, fresh_name: Callable[[], str], client: str) -> Iterator[KafkaWorld]:
    """Yield a function to write transactions."""
    made = KafkaWorld(client, fresh_name, kafka)
    yield made
    made.close()


@pytest.fixture
def quick_progress(spark: SparkSession) -> Iterator[None]:
    """Let a query that has nothing to do tell so every 100 ms."""
    setting = "spark.sql.streaming.noDataProgressEventInterval"
    spark.conf.set(setting, "100")
    yield
    spark.conf.unset(setting)


def sizes(topics: Topics, counts: tuple[int, ...]) -> str:
    topic = topics.create(len(counts))
    for partition, count in enumerate(counts):
        topics.numbers(topic, partition, range(1000 * partition, 1000 * partition + count))
    return topic


@peer(BASE, "maxOffsetsPerTrigger", Held.BESIDE_JVM)
def test_max_offsets_per_trigger(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """On 101, 11 and 1 records a limit of 10 ends every batch where the JVM connector's ends."""
    topic = sizes(topics, (101, 11, 1))
    ends = {}
    for source in (OURS, PEER):
        stream = open_stream(source, subscribe=topic, maxOffsetsPerTrigger="10")
        batches = run_once(stream, tmp_path / source)
        assert [len(batch) for batch in batches[:2]] == [10, 10]
        ends[source] = batch_ends(tmp_path / source)
    assert ends[OURS][0] == {topic: {"0": 8, "1": 1, "2": 1}}
    assert len(ends[OURS]) >= 5
    assert ends[OURS] == ends[PEER]


@pytest.mark.usefixtures("quick_progress")
@peer(BASE, "minOffsetsPerTrigger", Held.BESIDE_JVM)
def test_min_offsets_per_trigger(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """The first batch always runs, the next waits for 15 offsets, as in the JVM connector."""
    for source in (OURS, PEER):
        topic = sizes(topics, (4, 1))
        stream = open_stream(
            source, subscribe=topic, minOffsetsPerTrigger="15", maxTriggerDelay="1h"
        )
        query = start(stream, tmp_path / source)
        try:
            _await_batches(tmp_path / source, 1)
            topics.numbers(topic, 0, range(6))
            await_latest(query, topic, 11)
            assert _ends(tmp_path / source) == [{topic: {"0": 4, "1": 1}}]
            topics.numbers(topic, 1, range(9))
            _await_batches(tmp_path / source, 2)
            assert _ends(tmp_path / source)[1] == {topic: {"0": 10, "1": 10}}
        finally:
            query.stop()


@pytest.mark.usefixtures("quick_progress")
@peer(BASE, "compositeReadLimit", Held.BESIDE_JVM)
def test_composite_read_limit(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """A least of 15 and a most of 20 offsets hold at once, as in the JVM connector."""
    found = {}
    for source in (OURS, PEER):
        topic = sizes(topics, (21, 11, 1))
        stream = open_stream(
            source,
            subscribe=topic,
            minOffsetsPerTrigger="15",
            maxOffsetsPerTrigger="20",
            maxTriggerDelay="1h",
        )
        query = start(stream, tmp_path / source)
        try:
            _await_batches(tmp_path / source, 1)
            await_latest(query, topic, 33)
            found[source] = [sorted(_ends(tmp_path / source)[0][topic].items())]
            topics.numbers(topic, 0, range(10))
            _await_batches(tmp_path / source, 2)
            found[source].append(sorted(_ends(tmp_path / source)[1][topic].items()))
        finally:
            query.stop()
    assert found[OURS] == found[PEER]
    assert sum(offset for _, offset in found[OURS][0]) == 19


@peer(BASE, "Trigger.AvailableNow", Held.SPARK)
def test_trigger_available_now(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """15 records with a limit of 5 are read in 3 batches, and what comes meanwhile is left."""
    topic = sizes(topics, (15,))
    stream = open_stream(subscribe=topic, maxOffsetsPerTrigger="5")
    batches = run_once(
        stream, tmp_path, lambda number: topics.numbers(topic, 0, range(100 + number, 101 + number))
    )
    assert batches == [list(range(5)), list(range(5, 10)), list(range(10, 15))]


@peer(
    BASE,
    (
        "SPARK-26718 Rate limit set to Long.Max should not overflow integer during end offset "
        "calculation"
    ),
    Held.SPARK,
)
@one_client
def test_spark_26718_rate_limit_of_long_max(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """The largest limit there is reads all."""
    topic = sizes(topics, (10,))
    stream = open_stream(
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 5}}),
        maxOffsetsPerTrigger=str(2**63 - 1),
    )
    assert run_once(stream, tmp_path) == [list(range(5, 10))]


@peer(BASE, "SPARK-30656: minPartitions", Held.SPARK)
def test_spark_30656_min_partitions(
    open_stream: Callable[..., DataFrame], spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """With a least of 6, 3 partitions are read by at least 6 tasks, and the rows are the same."""
    topic = sizes(topics, (30, 30, 30))
    tasks = []

    def count(batch: DataFrame, _number: int) -> None:
        tasks.append(batch.rdd.getNumPartitions())

    stream = open_stream(subscribe=topic, minPartitions="6")
    query = stream.writeStream.foreachBatch(count).trigger(availableNow=True).start()
    query.awaitTermination()
    assert tasks[0] >= 6
    assert sum(len(batch) for batch in run_once(stream, tmp_path)) == 90
    assert spark.sparkContext.defaultParallelism < 6


@peer(BASE, "read Kafka transactional messages: read_committed", Held.SPARK)
def test_read_kafka_transactional_messages_read_committed(
    open_stream: Callable[..., DataFrame], world: KafkaWorld, tmp_path: Path
) -> None:
    """Offsets of aborted and control records use the limit up and give no rows."""
    topic = world.topic()
    part = TopicPartition(topic, 0)
    with world.transaction(commit=True) as write:
        write(part, _numbers(0, 5))
    with world.transaction(commit=False) as write:
        write(part, _numbers(6, 11))
    with world.transaction(commit=True) as write:
        write(part, _numbers(12, 17))
    stream = open_stream(
        subscribe=topic, maxOffsetsPerTrigger="3", kafka__isolation__level="read_committed"
    )
    rows = run_once(stream, tmp_path)
    assert rows == [[0, 1, 2], [3, 4], [12, 13, 14], [15, 16]]
    assert [end[topic]["0"] for end in batch_ends(tmp_path)] == [3, 6, 9, 12, 15, 18]


@peer(BASE, "read Kafka transactional messages: read_uncommitted", Held.SPARK)
def test_read_kafka_transactional_messages_read_uncommitted(
    open_stream: Callable[..., DataFrame], world: KafkaWorld, tmp_path: Path
) -> None:
    """Aborted records are rows and control records are not."""
    topic = world.topic()
    part = TopicPartition(topic, 0)
    with world.transaction(commit=False) as write:
        write(part, _numbers(0, 5))
    with world.transaction(commit=True) as write:
        write(part, _numbers(6, 11))
    stream = open_stream(subscribe=topic, maxOffsetsPerTrigger="4")
    assert run_once(stream, tmp_path) == [[0, 1, 2, 3], [4, 6, 7], [8, 9, 10]]


@peer(BASE, "SPARK-27494: read kafka record containing null key/values.", Held.BESIDE_JVM)
def test_spark_27494_null_keys_and_values(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """Null keys and values are null in rows of both sources."""
    topic = topics.create()
    topics.fill(topic, {0: 6})
    tables = [
        run_available_now(open_stream(source, subscribe=topic), tmp_path / source)
        for source in (OURS, PEER)
    ]
    ours, theirs = (
        [tuple(row) for row in table.select("offset", "key", "value").orderBy("offset").collect()]
        for table in tables
    )
    assert ours == theirs
    assert ours[4] == (4, None, None)


@peer(BASE, "subscribing topic by pattern with topic deletions", Held.SPARK)
def test_subscribing_topic_by_pattern_with_topic_deletions(
    open_stream: Callable[..., DataFrame], kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """With failOnDataLoss=false a query goes on with the topic that came for the one deleted."""
    first = sizes(topics, (5,))
    stream = open_stream(subscribePattern=f"^{first}(-new)?$", failOnDataLoss="false")
    assert run_once(stream, tmp_path) == [list(range(5))]
    kafka.delete_topic(first)
    kafka.create_topic(f"{first}-new", 2)
    topics.numbers(f"{first}-new", 1, range(10, 13))
    assert run_once(stream, tmp_path) == [list(range(10, 13))]


@peer(BASE, "subscribe topic by pattern with topic recreation between batches", Held.BESIDE_JVM)
def test_subscribe_topic_by_pattern_with_topic_recreation_between_batches(
    open_stream: Callable[..., DataFrame], kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """With failOnDataLoss=true a recreated topic with fewer records fails the query."""
    topic = sizes(topics, (2, 2))
    for source in (OURS, PEER):
        stream = open_stream(source, subscribePattern=f"^{topic}$", failOnDataLoss="true")
        assert run_once(stream, tmp_path / source) == [[0, 1, 1000, 1001]]
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 2)
    topics.numbers(topic, 0, range(1))
    topics.numbers(topic, 1, range(5))
    for source in (OURS, PEER):
        stream = open_stream(source, subscribePattern=f"^{topic}$", failOnDataLoss="true")
        with pytest.raises(Exception, match="was changed from 2 to 1"):
            run_once(stream, tmp_path / source)


@peer(BASE, "SPARK-41375: empty partitions should not record to latest offset", Held.SPARK)
def test_spark_41375_empty_partitions_should_not_record_to_latest_offset(
    open_stream: Callable[..., DataFrame], kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """When every topic is gone, no batch without any partition is written to the log."""
    topic = sizes(topics, (3,))
    stream = open_stream(subscribePattern=f"^{topic}$", failOnDataLoss="false")
    run_once(stream, tmp_path)
    kafka.delete_topic(topic)
    assert run_once(stream, tmp_path) == []
    assert {} not in batch_ends(tmp_path)


@peer(
    BASE,
    "Query with Trigger.AvailableNow should throw error when topic partitions got unavailable "
    "during subsequent batches",
    Held.BESIDE_JVM,
)
def test_available_now_when_partitions_got_unavailable(
    open_stream: Callable[..., DataFrame], kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """A topic recreated with fewer partitions fails a running query, with the same message."""
    for source in (OURS, PEER):
        topic = sizes(topics, (15, 15, 15, 15, 15))

        def recreate(number: int, topic: str = topic) -> None:
            if number == 0:
                kafka.delete_topic(topic)
                kafka.create_topic(topic, 3)

        stream = open_stream(source, subscribe=topic, maxOffsetsPerTrigger="5")
        with pytest.raises(Exception, match="have been lost during running query with") as caught:
            run_once(stream, tmp_path / source, recreate)
        assert "Some of partitions in Kafka topic(s)" in str(caught.value)


@peer(
    BASE,
    "Query with Trigger.AvailableNow should throw error when offset(s) in planned topic partitions "
    "got unavailable during subsequent batches",
    Held.BESIDE_JVM,
)
def test_available_now_when_offsets_got_unavailable(
    open_stream: Callable[..., DataFrame], kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """A topic recreated with fewer records fails a running query, with the same message."""
    for source in (OURS, PEER):
        topic = sizes(topics, (15,))

        def recreate(number: int, topic: str = topic) -> None:
            if number == 0:
                kafka.delete_topic(topic)
                kafka.create_topic(topic, 1)
                topics.numbers(topic, 0, range(3))

        stream = open_stream(source, subscribe=topic, maxOffsetsPerTrigger="5")
        expected = "report available offset which is less than end offset"
        with pytest.raises(Exception, match=expected):
            run_once(stream, tmp_path / source, recreate)


@peer(BASE, "KafkaSource with watermark", Held.SPARK)
@one_client
def test_kafka_source_with_watermark(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """A record's timestamp serves as event time."""
    topic = topics.create()
    topics.fill(topic, {0: 6})
    windows = (
        open_stream(subscribe=topic)
        .withWatermark("timestamp", "10 seconds")
        .groupBy("timestamp")
        .count()
    )
    query = (
        windows.writeStream.format("memory")
        .queryName(f"windows_{topic}")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert windows.sparkSession.table(query.name).count() == 6


@peer(BASE, "SPARK-56243: malformed record timestamp throws detailed error", Held.BESIDE_JVM)
def test_spark_56243_malformed_record_timestamp_throws_detailed_error(
    open_stream: Callable[..., DataFrame], world: KafkaWorld, tmp_path: Path
) -> None:
    """A time in nanoseconds fails the query in the JVM connector's words."""
    topic = world.topic(message__timestamp__after__max__ms=str(2**63 - 1))
    world.produce(TopicPartition(topic, 0), [Record(b"1", timestamp=1_700_000_000_000_000_000)])
    for source in (OURS, PEER):
        with pytest.raises(Exception, match="overflows when converting to Spark") as caught:
            run_once(open_stream(source, subscribe=topic), tmp_path / source)
        assert f"topic {topic} partition 0 offset 0" in str(caught.value)


@peer(BASE, "delete a topic when a Spark job is running", Held.SPARK)
def test_delete_a_topic_when_a_spark_job_is_running(
    open_stream: Callable[..., DataFrame], kafka: KafkaCluster, topics: Topics, tmp_path: Path
) -> None:
    """With failOnDataLoss=false a topic that goes between two batches does not fail the query."""
    topic = sizes(topics, (10,))
    other = sizes(topics, (3,))
    stream = open_stream(
        subscribePattern=f"^({topic}|{other})$",
        failOnDataLoss="false",
        kafkaConsumer__pollTimeoutMs="1000",
    )
    run_once(stream, tmp_path)
    topics.numbers(topic, 0, range(10, 12))
    topics.numbers(other, 0, range(3, 5))
    kafka.delete_topic(topic)
    assert run_once(stream, tmp_path) == [[3, 4]]


@peer(BASE, "input row metrics", Held.SPARK)
@one_client
def test_input_row_metrics(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """The progress of a query counts the rows that were read."""
    topic = sizes(topics, (2, 1))
    query = start(open_stream(subscribe=topic), tmp_path, availableNow=True)
    query.awaitTermination()
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 3


@peer("KafkaMicroBatchV2SourceSuite", "minPartitions is supported", Held.BESIDE_JVM)
@pytest.mark.parametrize("least", ["a", "1.0", "0", "-1"])
@one_client
def test_min_partitions_is_refused(
    open_stream: Callable[..., DataFrame], least: str, tmp_path: Path
) -> None:
    """A minimum that is not positive is refused with the JVM connector's message."""
    words = {"0": "minPartitions must be positive", "-1": "minPartitions must be positive"}
    expected = words.get(least, f'For input string: "{least}"')
    for source in (OURS, PEER):
        with pytest.raises(Exception, match=expected):
            run_once(open_stream(source, subscribe="t", minPartitions=least), tmp_path / source)


def _numbers(first: int, end: int) -> list[Record]:
    return [Record(str(number).encode()) for number in range(first, end)]


def _await_batches(directory: Path, count: int) -> None:
    await_until(lambda: len(_ends(directory)) == count)


def _ends(directory: Path) -> list[dict[str, dict[str, int]]]:
    return batch_ends(directory) if (directory / "checkpoint" / "offsets").exists() else []


def test_stream_stream_self_join(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """A stream that is joined with itself reads the same on both sides: each row finds its own."""
    topic = sizes(topics, (3, 1))
    values = open_stream(subscribe=topic).selectExpr("cast(value as string) as number")
    query = (
        values.alias("a")
        .join(values.alias("b"), "number")
        .writeStream.format("memory")
        .queryName(f"joined_{topic}")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert values.sparkSession.table(query.name).count() == 4
    sources = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[2:]
    assert [json.loads(source) for source in sources] == [{topic: {"0": 3, "1": 1}}] * 2


@peer("KafkaSourceSuiteBase", "Kafka column types", Held.BESIDE_JVM)
def test_kafka_column_types(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """The columns have the JVM connector's types, and 0 stands for a time that a producer set."""
    topic = topics.create()
    topics.fill(topic, {0: 1})
    ours, theirs = (open_stream(source, subscribe=topic) for source in (OURS, PEER))
    assert ours.schema == theirs.schema
    [row] = run_available_now(ours, tmp_path).collect()
    assert (row["timestampType"], row["partition"], row["offset"], row["topic"]) == (0, 0, 0, topic)


@peer("KafkaSourceSuiteBase", "cannot stop Kafka stream", Held.SPARK)
def test_cannot_stop_kafka_stream(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """A running query can be stopped, repeatedly."""
    topic = sizes(topics, (5,))
    for run in range(2):
        query = start(open_stream(subscribe=topic), tmp_path / str(run))
        query.processAllAvailable()
        query.stop()
        assert not query.isActive
        assert query.exception() is None


@peer(
    "KafkaMicroBatchV2SourceSuite",
    "default config of includeHeader doesn't break existing query from Spark 2.4",
    Held.SPARK,
)
def test_headers_are_left_out_by_default(
    open_stream: Callable[..., DataFrame], topics: Topics, tmp_path: Path
) -> None:
    """A query that does not ask for headers goes on from its checkpoint with the same columns."""
    topic = sizes(topics, (3,))
    stream = open_stream(subscribe=topic)
    assert "headers" not in stream.columns
    assert run_once(stream, tmp_path) == [[0, 1, 2]]
    topics.numbers(topic, 0, range(3, 5))
    assert run_once(stream, tmp_path) == [[3, 4]]
