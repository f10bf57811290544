"""KafkaMicroBatchSourceSuite: topics that come and go while a micro-batch stream runs."""

import re

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka.testing import await_until
from tests.spark.topics import Topics

from .live_queries import Live, LiveQueries, numbers
from .peer import Held, peer
from .side_by_side import root_cause
from .sources import (
    BOTH_CLIENTS,
    JVM,
    ONE_CLIENT,
    OURS,
    Source,
    agreed,
    assert_same_words,
    for_each,
)
from .test_kafka_micro_batch_source_suite import BASE, sizes

SHORT_WAITS = {"kafka__request__timeout__ms": "3000", "kafka__default__api__timeout__ms": "3000"}

LOST_PARTITIONS = (
    r"have been lost during running query with Trigger\.AvailableNow\..*"
    r"topic-partitions for latest offset: .*topic-partitions for end offset: "
)
LOST_OFFSETS = (
    r"report available offset which is less than end offset during running query with "
    r"Trigger\.AvailableNow\..*latest offset: .*end offset: "
)


def queries_by_pattern(live: Live, topics: Topics) -> tuple[str, LiveQueries]:
    """Return a topic, and running queries of its pattern that have read 1, 2 and 3.

    The topic has an offset in partition 0, which is before their start, and three in partition 1.
    """
    topic = sizes(topics, (1, 0))
    queries = live.queries(
        lambda open_: open_(
            subscribePattern=f"{topic}.*",
            startingOffsets="latest",
            failOnDataLoss="false",
            **SHORT_WAITS,
        ),
        sources=BOTH_CLIENTS,
    )
    queries.start()
    queries.settle()
    topics.numbers(topic, 1, range(1, 4))
    queries.settle()
    assert queries.rows() == [1, 2, 3]
    return topic, queries


@peer(BASE, "subscribing topic by pattern with topic deletions", Held.BESIDE_JVM)
def test_subscribing_topic_by_pattern_with_topic_deletions(live, kafka, topics):
    topic, queries = queries_by_pattern(live, topics)
    kafka.delete_topic(topic)
    kafka.create_topic(f"{topic}-new", 2)
    topics.numbers(f"{topic}-new", 1, range(4, 7))
    queries.settle()
    assert queries.rows() == [1, 2, 3, 4, 5, 6]


@peer(BASE, "SPARK-41375: empty partitions should not record to latest offset", Held.BESIDE_JVM)
def test_spark_41375_empty_partitions_should_not_record_to_latest_offset(live, kafka, topics):
    """When every topic is gone, no batch without any partition is written to the log."""
    topic, queries = queries_by_pattern(live, topics)
    kafka.delete_topic(topic)
    queries.settle()
    assert queries.rows() == [1, 2, 3]
    assert queries.ends()[-1] == {topic: {"0": 1, "1": 3}}


@peer(BASE, "subscribe topic by pattern with topic recreation between batches", Held.BESIDE_JVM)
def test_subscribe_topic_by_pattern_with_topic_recreation_between_batches(live, kafka, topics):
    topic = sizes(topics, (2,))
    other = f"{topic}-other"
    kafka.create_topic(other)
    topics.numbers(other, 0, range(2, 4))

    queries = live.queries(lambda open_: open_(subscribePattern=f"{topic}.*"), sources=BOTH_CLIENTS)
    queries.run(availableNow=True)
    assert queries.results() == [[0, 1, 2, 3]]
    kafka.delete_topic(other)
    kafka.create_topic(other)
    topics.numbers(other, 0, range(6, 7))
    errors = queries.fail()
    theirs = root_cause(errors[JVM])
    assert "was changed from 2 to 1" in theirs
    assert_same_words(errors, theirs)


@peer(
    BASE,
    "topic-level offsets tolerate a new topic matching subscribePattern after the start",
    Held.SPARK,
)
def test_topic_level_offsets_tolerate_a_new_topic_after_the_start(live, kafka, topics):
    """A topic that comes while the query runs is read from its beginning, though not named.

    The JVM connector of Spark 4.2.0 has no offsets of whole topics yet.
    """
    topic = sizes(topics, (1,))
    queries = live.queries(
        lambda open_: open_(
            subscribePattern=f"{topic}.*", startingOffsets=f'{{"{topic}":"earliest"}}'
        ),
        sources=OURS,
    )
    queries.start()
    queries.settle()
    assert queries.rows() == [0]
    later, last = f"{topic}-later", f"{topic}-last"
    kafka.create_topic(later)
    topics.numbers(later, 0, range(2, 3))
    queries.settle()
    assert queries.rows() == [0, 2]
    # A running query may find a topic before its first record; a stopped one does not.
    queries.stop()
    kafka.create_topic(last)
    topics.numbers(last, 0, range(3, 4))
    queries.start()
    queries.settle()
    assert queries.rows() == [0, 2, 3]
    assert queries.last_end() == {topic: {"0": 1}, later: {"0": 1}, last: {"0": 1}}


@peer(BASE, "delete a topic when a Spark job is running", Held.BESIDE_JVM)
def test_delete_a_topic_when_a_spark_job_is_running(live, spark, kafka, topics):
    """With failOnDataLoss=false a task that finds its topic recreated under it reads on.

    The task has read the first partition and waits; then the topic is deleted; then the task comes
    to the second partition, which is empty now.
    """

    def run(source: Source) -> list[int]:
        topic = sizes(topics, (5, 5))
        job = WaitingJob(spark, topic)
        queries = live.queries(
            lambda open_: open_(
                subscribe=topic,
                failOnDataLoss="false",
                kafkaConsumer__pollTimeoutMs="1000",
                **SHORT_WAITS,
            ),
            sources=(source,),
            function=lambda batch, number: numbers(job.of(batch), number),
            name=topic,
        )
        queries.start()
        job.await_reading()
        kafka.delete_topic(topic)
        kafka.create_topic(topic, 2)
        job.go_on()
        queries.settle()
        [first] = queries.each(lambda one: one.results[0]).values()
        # Which of the partitions comes first is up to the source.
        return [row % 1000 for row in first]

    # A task for all partitions would have read the second one by then.
    assert agreed(for_each((*OURS, JVM), run)) == [0, 1, 2, 3, 4]


class WaitingJob:
    """A job of one task that waits at the first row until it may continue, for 30 s at most.

    The task and this process share properties of the JVM, in which local tasks run.
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._system = spark._jvm.java.lang.System  # type: ignore[union-attr]
        self._reading, self._open = f"{name}.reading", f"{name}.open"

    def of(self, batch: DataFrame) -> DataFrame:
        """Return a batch as the job reads it: all partitions in one task, one after another."""
        tell = f"java_method('java.lang.System', 'setProperty', '{self._reading}', 'yes')"
        is_open = f"java_method('java.lang.System', 'getProperty', '{self._open}') = 'yes'"
        sleep = "java_method('java.lang.Thread', 'sleep', 50L)"
        return (
            batch.coalesce(1)
            .selectExpr("value", "explode(sequence(1, if(offset = 0, 600, 1))) as turn")
            .selectExpr(
                "value",
                "turn",
                f"{tell} as told",
                f"case when not coalesce({is_open}, false) then {sleep} end as slept",
            )
            # Spark does not compute columns that are not used.
            .where("turn = 1 and concat(coalesce(told, ''), coalesce(slept, '')) != 'never'")
        )

    def await_reading(self) -> None:
        await_until(lambda: self._system.getProperty(self._reading) == "yes", 60.0)

    def go_on(self) -> None:
        self._system.setProperty(self._open, "yes")


@peer(
    BASE,
    "Query with Trigger.AvailableNow should throw error when topic partitions got unavailable "
    "during subsequent batches",
    Held.BESIDE_JVM,
)
@peer(
    BASE,
    "Query with Trigger.AvailableNow should throw error when offset(s) in planned topic partitions "
    "got unavailable during subsequent batches",
    Held.BESIDE_JVM,
)
@pytest.mark.parametrize(
    ("partitions", "records", "expected"), [(3, 15, LOST_PARTITIONS), (5, 10, LOST_OFFSETS)]
)
def test_available_now_when_what_was_planned_got_unavailable(
    live, kafka, topics, partitions, records, expected
):
    names = {source: topics.create(5) for source in ONE_CLIENT}

    def run(source: Source) -> Exception:
        def recreate(_batch: DataFrame, _number: int) -> None:
            kafka.delete_topic(topic)
            kafka.create_topic(topic, partitions)
            topics.numbers(topic, 0, range(records))

        topic = names[source]
        topics.numbers(topic, 0, range(15))
        queries = live.queries(
            lambda open_: open_(subscribe=topic, maxOffsetsPerTrigger="5"),
            sources=(source,),
            function=recreate,
        )
        return queries.fail(availableNow=True)[source]

    errors = for_each(ONE_CLIENT, run)
    theirs = root_cause(errors[JVM])
    assert re.search(rf"Some of partitions in Kafka topic\(s\) {expected}", theirs, re.DOTALL)
    for source, topic in names.items():
        assert_same_words({source: errors[source]}, theirs.replace(names[JVM], topic))
