"""KafkaMicroBatchSourceSuite: what a micro-batch stream reads, batch for batch."""

import time
from datetime import datetime
from functools import partial

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import window

from pyspark_kafka.domain.reading.errors import MalformedTimestampError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record
from tests.spark.topics import Topics

from .continuous_runs import numbered
from .live_queries import LiveQueries, LiveQuery, OpenStream, numbers
from .peer import Held, peer
from .side_by_side import failure, java_causes
from .sources import (
    ANY_TASKS,
    BOTH_CLIENTS,
    JVM,
    ONE_CLIENT,
    Source,
    agreed,
    assert_same_words,
    for_each,
)
from .stream_runs import run_once, start

BASE = "KafkaMicroBatchSourceSuiteBase"

DELAY_SECONDS = 2


@pytest.fixture
def client():
    return "confluent"


def sizes(topics: Topics, counts: tuple[int, ...]) -> str:
    """Make a topic with so many numbers in its partitions: from 0, 1000, 2000 on and so forth."""
    topic = topics.create(len(counts))
    for partition, count in enumerate(counts):
        topics.numbers(topic, partition, range(1000 * partition, 1000 * partition + count))
    return topic


@peer(BASE, "maxOffsetsPerTrigger", Held.BESIDE_JVM)
def test_max_offsets_per_trigger(live, topics):
    """Ten at a time of 101, 11 and 1 records are read in proportion, also after a restart.

    Trigger.Once reads all that there is instead.
    """
    topic = sizes(topics, (101, 11, 1))

    def limited(open_: OpenStream) -> DataFrame:
        return open_(subscribe=topic, maxOffsetsPerTrigger="10")

    queries = live.queries(limited, sources=ANY_TASKS)
    for count in (2, 4):
        queries.start()
        queries.await_batches(count)
        queries.stop()
    assert queries.results(4) == [
        [*range(8), 1000, 2000],
        [*range(8, 17), 1001],
        [*range(17, 26), 1002],
        [*range(26, 35), 1003],
    ]
    assert queries.ends(4)[3] == {topic: {"0": 35, "1": 4, "2": 1}}

    queries = live.queries(limited, name="once")
    queries.run(once=True)
    topics.numbers(topic, 0, range(5000, 5011))
    queries.run(once=True)
    assert queries.results() == [[*range(101), *range(1000, 1011), 2000], list(range(5000, 5011))]


@peer(BASE, "minOffsetsPerTrigger", Held.BESIDE_JVM)
def test_min_offsets_per_trigger(live, topics):
    """The first batch always runs, a later one waits for 15 offsets or for its time.

    Trigger.Once waits for nothing.
    """
    topic = sizes(topics, (4, 1))

    def limited(open_: OpenStream, delay: str) -> DataFrame:
        return open_(subscribe=topic, minOffsetsPerTrigger="15", maxTriggerDelay=delay)

    queries = live.queries(partial(limited, delay="1h"), sources=ANY_TASKS)
    queries.start()
    queries.settle()
    topics.numbers(topic, 0, range(10, 16))
    queries.settle()
    assert queries.results() == [[*range(4), 1000]]
    topics.numbers(topic, 1, range(20, 29))
    queries.settle()
    queries.stop()
    topics.numbers(topic, 0, range(30, 31))
    queries.run(once=True)
    assert queries.results() == [[*range(4), 1000], [*range(10, 16), *range(20, 29)], [30]]

    queries = live.queries(partial(limited, delay=f"{DELAY_SECONDS}s"), name="delayed")
    queries.start()
    queries.settle()
    topics.numbers(topic, 0, range(31, 32))
    queries.await_batches(2)
    queries.settle()
    queries.stop()
    assert queries.results()[1] == [31]
    assert_delayed(queries, 1)


@peer(BASE, "compositeReadLimit", Held.BESIDE_JVM)
def test_composite_read_limit(live, topics):
    """At least 15 and at most 20 offsets are a batch; what is less than 15 waits for its time.

    Trigger.Once ignores both limits.
    """
    topic = sizes(topics, (21, 11, 1))

    def limited(open_: OpenStream, delay: str) -> DataFrame:
        return open_(
            subscribe=topic,
            minOffsetsPerTrigger="15",
            maxOffsetsPerTrigger="20",
            maxTriggerDelay=delay,
        )

    queries = live.queries(partial(limited, delay="1h"), sources=ANY_TASKS)
    queries.start()
    queries.settle()
    assert queries.results() == [[*range(12), *range(1000, 1006), 2000]]
    topics.numbers(topic, 0, range(30, 40))
    queries.settle()
    _first, second = queries.results()
    assert 15 <= len(second) <= 20
    queries.stop()
    topics.numbers(topic, 0, range(50, 72))
    queries.run(once=True)
    *_, rest = queries.results()
    assert len(rest) > 20
    assert len(queries.rows()) == 65

    queries = live.queries(partial(limited, delay=f"{DELAY_SECONDS}s"), name="delayed")
    queries.start()
    queries.await_batches(4)
    queries.settle()
    queries.stop()
    *most, last = queries.results()
    assert [15 <= len(batch) <= 20 for batch in most] == [True] * 3
    assert 0 < len(last) < 15
    assert len(queries.rows()) == 65
    assert_delayed(queries, 3)


def assert_delayed(queries: LiveQueries, number: int) -> None:
    def began(one: LiveQuery, number: int) -> datetime:
        progress = next(
            progress
            for progress in one.running().recentProgress
            if progress["batchId"] == number and progress["numInputRows"]
        )
        return datetime.fromisoformat(progress["timestamp"])

    gaps = queries.each(lambda one: (began(one, number) - began(one, number - 1)).total_seconds())
    assert all(gap > 0.5 * DELAY_SECONDS for gap in gaps.values()), gaps


@peer(BASE, "Trigger.AvailableNow", Held.BESIDE_JVM)
def test_trigger_available_now(live, topics, tmp_path):
    def run(source: Source) -> list[list[int]]:
        topic = sizes(topics, (15,))
        return run_once(
            live.open(source, subscribe=topic, maxOffsetsPerTrigger="5"),
            tmp_path / str(source),
            lambda number: topics.numbers(topic, 0, range(100 + number, 101 + number)),
        )

    batches = agreed(for_each(ONE_CLIENT, run))
    assert batches == [list(range(5)), list(range(5, 10)), list(range(10, 15))]


@peer(
    BASE,
    (
        "SPARK-26718 Rate limit set to Long.Max should not overflow integer during end offset "
        "calculation"
    ),
    Held.BESIDE_JVM,
)
def test_spark_26718_rate_limit_of_long_max(live, topics):
    topic = sizes(topics, (5,))
    queries = live.queries(
        lambda open_: open_(
            subscribe=topic,
            startingOffsets=f'{{"{topic}":{{"0":5}}}}',
            maxOffsetsPerTrigger=str(2**63 - 1),
        )
    )
    queries.start()
    queries.settle()
    assert queries.rows() == []
    topics.numbers(topic, 0, range(30, 35))
    queries.settle()
    assert queries.results()[-1] == list(range(30, 35))
    assert queries.rows() == list(range(30, 35))


@peer(BASE, "SPARK-30656: minPartitions", Held.BESIDE_JVM)
def test_spark_30656_min_partitions(live, topics):
    topic = sizes(topics, (10, 10, 1))

    def rows_by_task(batch: DataFrame, _number: int) -> list[list[int]]:
        values = batch.selectExpr("cast(cast(value as string) as int) as number")
        tasks = values.rdd.mapPartitions(lambda rows: [[row.number for row in rows]]).collect()
        return sorted(tasks)

    queries = live.queries(
        lambda open_: open_(subscribe=topic, minPartitions="6"), function=rows_by_task
    )
    queries.run(availableNow=True)
    [tasks] = queries.results()
    assert len(tasks) >= 6
    assert sorted(number for task in tasks for number in task) == [
        *range(10),
        *range(1000, 1010),
        2000,
    ]


@peer(BASE, "read Kafka transactional messages: read_committed", Held.BESIDE_JVM)
def test_read_kafka_transactional_messages_read_committed(live, world):
    """Three offsets at a time: aborted records and markers use the limit up and give no rows.

    Numbers are offsets. An open transaction gives nothing, however long the query runs.
    """
    topic = world.topic()
    partition = TopicPartition(topic, 0)
    queries = live.queries(
        lambda open_: open_(
            subscribe=topic, maxOffsetsPerTrigger="3", kafka__isolation__level="read_committed"
        ),
        sources=BOTH_CLIENTS,
    )
    queries.start()
    with world.transaction(commit=True) as write:
        write(partition, numbered(range(5)))
        queries.settle()
        assert queries.rows() == []
    queries.settle()
    assert queries.rows() == [0, 1, 2, 3, 4]
    with world.transaction(commit=False) as write:
        write(partition, numbered(range(6, 11)))
    queries.settle()
    skipped = queries.results()
    assert [batch for batch in skipped if batch] == [[0, 1, 2], [3, 4]]
    assert skipped[-2:] == [[], []]
    queries.stop()
    _write_in_gaps(world, partition)
    queries.start()
    queries.settle()
    assert queries.results()[len(skipped) :] == [[12, 13, 14], [15, 16], [18, 20], [22, 23], []]
    ends = [end[topic]["0"] for end in queries.ends()]
    assert ends[-9:] == [3, 6, 9, 12, 15, 18, 21, 24, 25]


@peer(BASE, "read Kafka transactional messages: read_uncommitted", Held.BESIDE_JVM)
def test_read_kafka_transactional_messages_read_uncommitted(live, world):
    """Records of open and of aborted transactions are rows; markers are not.

    Numbers are offsets. While the query is stopped, transactions leave markers at 17, 19, 21 and
    24: at the end of a batch, in its middle, at its beginning, and alone in the last batch.
    """
    topic = world.topic()
    partition = TopicPartition(topic, 0)
    queries = live.queries(
        lambda open_: open_(
            subscribe=topic, maxOffsetsPerTrigger="3", kafka__isolation__level="read_uncommitted"
        ),
        sources=BOTH_CLIENTS,
    )
    queries.start()
    with world.transaction(commit=True) as write:
        write(partition, numbered(range(5)))
        queries.settle()
        assert queries.rows() == [0, 1, 2, 3, 4]
    with world.transaction(commit=False) as write:
        write(partition, numbered(range(6, 11)))
        queries.settle()
        assert queries.rows() == [*range(5), *range(6, 11)]
    queries.settle()
    queries.stop()
    _write_in_gaps(world, partition)
    queries.start()
    queries.settle()
    last = agreed(
        queries.each(lambda one: [one.results[number] for number in sorted(one.results)][-5:])
    )
    assert last == [[12, 13, 14], [15, 16], [18, 20], [22, 23], []]
    assert agreed(queries.each(lambda one: one.ends()[-1])) == {topic: {"0": 25}}


def _write_in_gaps(world: KafkaWorld, partition: TopicPartition) -> None:
    """Write offsets 12 to 24 in four transactions, whose markers are at 17, 19, 21 and 24."""
    for first, end in ((12, 17), (18, 19), (20, 21), (22, 24)):
        with world.transaction(commit=True) as write:
            write(partition, numbered(range(first, end)))


@peer(BASE, "SPARK-25495: FetchedData.reset should reset all fields", Held.BESIDE_JVM)
def test_spark_25495_records_of_the_next_batch_are_not_mixed_in(live, world):
    def run(source: Source) -> list[list[int]]:
        topic = world.topic()
        partition = TopicPartition(topic, 0)
        with world.transaction(commit=True) as write:
            write(partition, numbered(range(4)))

        def function(batch: DataFrame, number: int) -> list[int]:
            if number == 0:
                with world.transaction(commit=True) as write:
                    write(partition, numbered(range(4, 8)))
            return numbers(batch, number)

        queries = live.queries(
            lambda open_: open_(subscribe=topic, kafka__isolation__level="read_committed"),
            sources=(source,),
            function=function,
            name=topic,
        )
        queries.start()
        queries.settle()
        queries.stop()
        [batches] = queries.each(lambda one: list(one.results.values())).values()
        return batches

    assert agreed(for_each(BOTH_CLIENTS, run)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@peer(BASE, "SPARK-27494: read kafka record containing null key/values.", Held.BESIDE_JVM)
def test_spark_27494_null_keys_and_values(live, world):
    topic = world.topic()
    queries = live.queries(
        lambda open_: open_(subscribe=topic, kafka__isolation__level="read_committed"),
        sources=BOTH_CLIENTS,
        function=lambda batch, _number: [
            tuple(row) for row in batch.select("key", "value").orderBy("offset").collect()
        ],
    )
    queries.start()
    with world.transaction(commit=True) as write:
        partition = TopicPartition(topic, 0)
        write(partition, [Record(None)] * 5)
        write(partition, [Record(None, key=str(key).encode()) for key in range(5)])
        write(partition, numbered(range(5, 10)))
    queries.settle()
    assert queries.rows() == [
        *[(None, None)] * 5,
        *[(str(key).encode(), None) for key in range(5)],
        *[(None, str(value).encode()) for value in range(5, 10)],
    ]


@peer(BASE, "KafkaSource with watermark", Held.BESIDE_JVM)
def test_kafka_source_with_watermark(live, topics):
    now = time.time()
    topic = sizes(topics, (1,))

    def windows(open_: OpenStream) -> DataFrame:
        return (
            open_(subscribe=topic)
            .withWatermark("timestamp", "10 seconds")
            .groupBy(window("timestamp", "5 seconds"))
            .count()
        )

    queries = live.queries(
        windows,
        function=lambda batch, _number: [
            (row["start"], row["count"])
            for row in batch.selectExpr("unix_timestamp(window.start) as start", "count").collect()
        ],
        mode="complete",
    )
    queries.start()
    queries.settle()
    [(begin, count)] = queries.results()[-1]
    assert begin >= now - 5 - 1
    assert count == 1


@peer(BASE, "input row metrics", Held.BESIDE_JVM)
def test_input_row_metrics(live, topics):
    topic = sizes(topics, (1, 0))
    queries = live.queries(lambda open_: open_(subscribe=topic, startingOffsets="latest"))
    queries.start()
    queries.settle()
    topics.numbers(topic, 1, range(1, 4))
    queries.settle()
    assert queries.rows() == [1, 2, 3]
    counts = queries.each(
        lambda one: sum(each["numInputRows"] for each in one.running().recentProgress)
    )
    assert agreed(counts) == 3


@peer(BASE, "SPARK-56243: malformed record timestamp throws detailed error", Held.BESIDE_JVM)
def test_spark_56243_malformed_record_timestamp_throws_detailed_error(live, world, tmp_path):
    nanoseconds = 1_712_345_678_123_456_789
    topic = world.topic(message__timestamp__after__max__ms=str(2**63 - 1))
    world.produce(TopicPartition(topic, 0), [Record(b"1", timestamp=nanoseconds)])

    def run(source: Source) -> Exception:
        query = start(live.open(source, subscribe=topic), tmp_path / str(source), availableNow=True)
        return failure(query.awaitTermination)

    errors = for_each(BOTH_CLIENTS, run)
    *_, theirs, cause = java_causes(errors[JVM])
    assert topic in theirs.getMessage()
    assert str(nanoseconds) in theirs.getMessage()
    assert_same_words(errors, theirs.getMessage())
    assert theirs.getCondition() == MalformedTimestampError.condition
    assert all(f"[{theirs.getCondition()}]" in str(errors[source]) for source in BOTH_CLIENTS[:-1])
    assert theirs.getSqlState() == MalformedTimestampError.sql_state == "22008"
    assert cause.getClass().getName() == "java.lang.ArithmeticException"
    assert issubclass(MalformedTimestampError, ArithmeticError)


@peer(
    BASE,
    "ensure stream-stream self-join generates only one offset in log and correct metrics",
    Held.BESIDE_JVM,
)
@pytest.mark.parametrize(("reuse", "rows_read"), [("false", 8), ("true", 4)])
def test_stream_stream_self_join(live, spark, topics, reuse, rows_read):
    topic = sizes(topics, (1, 0))

    def joined(open_: OpenStream) -> DataFrame:
        values = open_(subscribe=topic, startingOffsets="latest").selectExpr(
            "cast(cast(value as string) as int) as value",
            "cast(cast(value as string) as int) % 5 as key",
        )
        return values.join(values, "key")

    queries = live.queries(
        joined, function=lambda batch, _number: sorted(tuple(row) for row in batch.collect())
    )
    spark.conf.set("spark.sql.exchange.reuse", reuse)
    try:
        queries.start()
    finally:
        spark.conf.unset("spark.sql.exchange.reuse")
    queries.settle()
    topics.numbers(topic, 0, range(1, 3))
    queries.settle()
    assert queries.rows() == [(1, 1, 1), (2, 2, 2)]
    topics.numbers(topic, 1, range(6, 7))
    topics.numbers(topic, 1, range(3, 4))
    queries.settle()
    assert sorted(queries.rows()) == [
        *[(1, 1, 1), (1, 1, 6), (1, 6, 1), (1, 6, 6)],
        *[(2, 2, 2), (3, 3, 3)],
    ]
    offsets = queries.each(
        lambda one: one.running()._jsq.streamingQuery().availableOffsets().size()
    )
    assert agreed(offsets) == 1
    counts = queries.each(
        lambda one: sum(each["numInputRows"] for each in one.running().recentProgress)
    )
    assert agreed(counts) == rows_read
