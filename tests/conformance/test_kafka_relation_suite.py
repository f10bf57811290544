"""KafkaRelationSuite: what a batch query reads, beside the JVM connector in the same session."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record

from ..spark.queries import OURS, read
from .continuous_runs import numbered
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import JvmSource, Sides, ends, failure, read_jvm, root_cause, sql_conf, write
from .sources import ONE_TASK

SUITE = "KafkaRelationSuiteBase"

EARLY, MIDDLE, LATE = 1_000, 2_000, 3_000
"""Times of the first, the second and the third ten of ``timed``."""

NEVER = 2**63 - 1
"""The largest time there is."""

FIRST, SECOND, THIRD = list(range(10)), list(range(10, 20)), list(range(20, 30))


@pytest.fixture
def sides(spark, kafka, client):
    """Return a function to make queries of this source and of the JVM connector.

    Each of our clients is compared with another of the JVM connector's sources, one of them with a
    task for each partition and the other with one for all.
    """
    if client == "kafka-python":
        return Sides(spark, kafka, client, JvmSource.V1, ONE_TASK)
    return Sides(spark, kafka, client, JvmSource.V2)


@pytest.fixture
def topic(world):
    """Return a topic of three partitions: 0 to 8, 10 to 12 and none."""
    name = world.topic(3)
    write(world, name, {0: range(9), 1: range(10, 13)})
    return name


@pytest.fixture
def timed(world):
    """Return a topic of three partitions with 0 to 29, each in the partition of its remainder."""
    name = world.topic(3)
    for numbers, time in ((FIRST, EARLY), (SECOND, MIDDLE), (THIRD, LATE)):
        write(world, name, {part: [n for n in numbers if n % 3 == part] for part in range(3)}, time)
    return name


BEFORE = [*range(9), *range(10, 13)]


@peer("KafkaRelationSuiteV2", "V2 Source is used when set through SQLConf", Held.BESIDE_JVM)
@one_client
def test_v2_source_is_used(spark, kafka, client, topic):
    v1, v2 = "LogicalRelation", "DataSourceV2Relation"
    for source, kind in ((JvmSource.V1, v1), (JvmSource.V2, v2)):
        assert _relation(read_jvm(spark, kafka, source, subscribe=topic)) == kind
    for formats in (OURS, ""):
        with sql_conf(spark, "spark.sql.sources.useV1SourceList", formats):
            table = read(spark, kafka, OURS, client=client, subscribe=topic)
        assert _relation(table) == v2


@peer(SUITE, "explicit earliest to latest offsets", Held.BESIDE_JVM)
def test_explicit_earliest_to_latest_offsets(sides, world, topic):
    tables = sides.batch(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
    assert tables.numbers() == BEFORE
    write(world, topic, {0: [9], 2: range(20, 23)})
    assert tables.numbers() == [*range(13), *range(20, 23)]


@peer(SUITE, "default starting and ending offsets", Held.BESIDE_JVM)
def test_default_starting_and_ending_offsets(sides, topic):
    assert sides.batch(subscribe=topic).numbers() == BEFORE


@peer(SUITE, "explicit offsets", Held.BESIDE_JVM)
def test_explicit_offsets(sides, world, topic):
    tables = sides.batch(
        subscribe=topic, startingOffsets=ends(topic, -2, 1, 0), endingOffsets=ends(topic, 9, -1, -1)
    )
    assert tables.numbers() == [*range(9), 11, 12]
    write(world, topic, {0: [9]})
    assert tables.numbers() == [*range(9), 11, 12]
    write(world, topic, {1: [13], 2: [20]})
    assert tables.numbers() == [*range(9), 11, 12, 13, 20]


@peer(SUITE, "default starting and ending offsets with headers", Held.BESIDE_JVM)
def test_default_starting_and_ending_offsets_with_headers(sides, world):
    topic = world.topic(3)
    headers = ((("a", b"b"), ("c", b"d")), (("e", b"f"), ("e", b"g"), ("d", None)), ())
    for partition, of_record in enumerate(headers):
        record = Record(str(partition).encode(), headers=of_record)
        world.produce(TopicPartition(topic, partition), [record])
    tables = sides.batch(subscribe=topic, includeHeaders="true")
    assert tables.numbers() == [0, 1, 2]
    rows = tables.ours.orderBy("partition").select("headers").collect()
    assert [row[0] and [tuple(header) for header in row[0]] for row in rows] == [
        [("a", b"b"), ("c", b"d")],
        [("e", b"f"), ("e", b"g"), ("d", None)],
        None,
    ]


@peer(SUITE, "timestamp provided for starting and ending", Held.BESIDE_JVM)
def test_timestamp_provided_for_starting_and_ending(sides, timed):
    tables = sides.batch(
        subscribe=timed,
        startingOffsetsByTimestamp=ends(timed, MIDDLE, MIDDLE - 1, EARLY + 1),
        endingOffsetsByTimestamp=ends(timed, LATE, LATE - 1, MIDDLE + 1),
    )
    assert tables.numbers() == SECOND


@peer(SUITE, "timestamp provided for starting, offset provided for ending", Held.BESIDE_JVM)
def test_timestamp_provided_for_starting_offset_provided_for_ending(sides, timed):
    tables = sides.batch(
        subscribe=timed,
        startingOffsetsByTimestamp=ends(timed, MIDDLE, EARLY, EARLY),
        endingOffsets=ends(timed, -1, -1, 1),
    )
    assert tables.numbers() == sorted([*range(12, 30, 3), *range(1, 30, 3), 2])


@peer(SUITE, "timestamp provided for ending, offset provided for starting", Held.BESIDE_JVM)
def test_timestamp_provided_for_ending_offset_provided_for_starting(sides, timed):
    tables = sides.batch(
        subscribe=timed,
        startingOffsets=ends(timed, 2, -2, 0),
        endingOffsetsByTimestamp=ends(timed, LATE, LATE, LATE),
    )
    assert tables.numbers() == sorted({*FIRST, *SECOND} - {0, 3})


@peer(SUITE, "timestamp provided for starting, ending not provided", Held.BESIDE_JVM)
def test_timestamp_provided_for_starting_ending_not_provided(sides, timed):
    tables = sides.batch(
        subscribe=timed, startingOffsetsByTimestamp=ends(timed, MIDDLE, MIDDLE, MIDDLE)
    )
    assert tables.numbers() == SECOND + THIRD


@peer(SUITE, "timestamp provided for ending, starting not provided", Held.BESIDE_JVM)
def test_timestamp_provided_for_ending_starting_not_provided(sides, timed):
    tables = sides.batch(subscribe=timed, endingOffsetsByTimestamp=ends(timed, LATE, LATE, LATE))
    assert tables.numbers() == FIRST + SECOND


@peer(SUITE, "global timestamp provided for starting and ending", Held.BESIDE_JVM)
def test_global_timestamp_provided_for_starting_and_ending(sides, timed):
    tables = sides.batch(subscribe=timed, startingTimestamp=str(MIDDLE), endingTimestamp=str(LATE))
    assert tables.numbers() == SECOND


@peer(SUITE, "no matched offset for timestamp - startingOffsets", Held.BESIDE_JVM)
def test_no_matched_offset_for_timestamp_starting_offsets(sides, timed):
    for options, rest in (
        (
            {"subscribe": timed, "startingOffsetsByTimestamp": ends(timed, MIDDLE, MIDDLE, NEVER)},
            [number for number in SECOND + THIRD if number % 3 != 2],
        ),
        ({"assign": f'{{"{timed}":[1]}}', "startingTimestamp": str(LATE + 1)}, []),
    ):
        sides.assert_refused_alike("No offset matched from request", **options)
        lenient = sides.batch(**options, startingOffsetsByTimestampStrategy="latest")
        assert lenient.numbers() == rest


@peer(SUITE, "preferences on offset related options", Held.BESIDE_JVM)
@one_client
def test_preferences_on_offset_related_options(sides, timed):
    lowest = {
        "subscribe": timed,
        "startingOffsets": ends(timed, 1, 1, 1),
        "endingOffsets": ends(timed, 2, 2, 2),
    }
    middle = {
        **lowest,
        "startingOffsetsByTimestamp": ends(timed, MIDDLE, MIDDLE, MIDDLE),
        "endingOffsetsByTimestamp": ends(timed, NEVER, NEVER, NEVER),
    }
    highest = {**middle, "startingTimestamp": str(EARLY), "endingTimestamp": str(LATE)}
    assert sides.batch(**lowest).numbers() == [3, 4, 5]
    assert sides.batch(**middle).numbers() == SECOND + THIRD
    assert sides.batch(**highest).numbers() == FIRST + SECOND


@peer(SUITE, "no matched offset for timestamp - endingOffsets", Held.BESIDE_JVM)
def test_no_matched_offset_for_timestamp_ending_offsets(sides, timed):
    tables = sides.batch(
        subscribe=timed, endingOffsetsByTimestamp=ends(timed, MIDDLE, MIDDLE, NEVER)
    )
    assert tables.numbers() == sorted({*FIRST, *range(2, 30, 3)})
    assert sides.batch(subscribe=timed, endingTimestamp=str(NEVER)).numbers() == list(range(30))


@peer(SUITE, "reuse same dataframe in query", Held.BESIDE_JVM)
def test_reuse_same_dataframe_in_query(sides, topic):
    tables = sides.batch(subscribe=topic)
    for table in (tables.ours, tables.theirs):
        rows = table.union(table).selectExpr("cast(cast(value as string) as int)").collect()
        assert sorted(row[0] for row in rows) == sorted(2 * BEFORE)


@peer(SUITE, "test late binding start offsets", Held.BESIDE_JVM)
def test_late_binding_start_offsets(sides, world, topic):
    """Records that are deleted between two runs of a query are not missed by the second."""
    tables = sides.batch(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
    assert tables.numbers() == BEFORE
    world.delete_records(TopicPartition(topic, 0), 6)
    # All that there are.
    world.delete_records(TopicPartition(topic, 1), -1)
    write(world, topic, {0: [9], 1: range(13, 16)})
    assert tables.numbers() == [*range(6, 10), *range(13, 16)]


@peer(SUITE, "read Kafka transactional messages: read_committed", Held.BESIDE_JVM)
def test_read_kafka_transactional_messages_read_committed(sides, world):
    topic = world.topic()
    part = TopicPartition(topic, 0)
    tables = sides.batch(subscribe=topic, kafka__isolation__level="read_committed")
    with world.transaction(commit=True) as send:
        send(part, numbered(range(1, 6)))
        assert tables.numbers() == []
    assert tables.numbers() == [*range(1, 6)]
    with world.transaction(commit=False) as send:
        send(part, numbered(range(6, 11)))
    assert tables.numbers() == [*range(1, 6)]
    with world.transaction(commit=True) as send:
        send(part, numbered(range(11, 16)))
        # Records after the beginning of an open transaction wait for its end.
        write(world, topic, {0: [16]})
        assert tables.numbers() == [*range(1, 6)]
    assert tables.numbers() == [*range(1, 6), *range(11, 17)]


@peer(SUITE, "read Kafka transactional messages: read_uncommitted", Held.BESIDE_JVM)
def test_read_kafka_transactional_messages_read_uncommitted(sides, world):
    topic = world.topic()
    part = TopicPartition(topic, 0)
    tables = sides.batch(subscribe=topic, kafka__isolation__level="read_uncommitted")
    with world.transaction(commit=True) as send:
        send(part, numbered(range(1, 6)))
        assert tables.numbers() == [*range(1, 6)]
    assert tables.numbers() == [*range(1, 6)]
    with world.transaction(commit=False) as send:
        send(part, numbered(range(6, 11)))
    assert tables.numbers() == [*range(1, 11)]
    with world.transaction(commit=True) as send:
        send(part, numbered(range(11, 16)))
    assert tables.numbers() == [*range(1, 16)]


@peer(SUITE, "SPARK-30656: minPartitions", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    ("client", "ending"),
    [("confluent", "latest"), ("kafka-python", "latest"), ("kafka-python", "offsets")],
)
def test_min_partitions(sides, world, ending):
    topic = world.topic(3)
    write(world, topic, {0: range(10), 1: range(10, 20), 2: [20]})
    options = {} if ending == "latest" else {"endingOffsets": ends(topic, 10, 10, 1)}
    split = replace(sides, own_options={})
    tables = split.batch(subscribe=topic, minPartitions="6", **options)
    # Each is planned once, and run before and after more records came.
    tasks = [table.rdd.map(_number).glom() for table in (tables.ours, tables.theirs)]
    for each in tasks:
        assert each.getNumPartitions() >= 6
        assert _flat(each.collect()) == list(range(21))
    write(world, topic, {0: [21, 22], 1: range(23, 26), 2: range(26, 31)})
    everything = list(range(31 if ending == "latest" else 21))
    ours, theirs = (each.collect() for each in tasks)
    assert sorted(map(sorted, ours)) == sorted(map(sorted, theirs))
    assert _flat(ours) == everything
    assert tables.numbers() == everything


RESOLVED = "The resolved start offset {} is greater than the resolved end offset {} for topic {} partition {}."  # noqa: E501


@peer(SUITE, "resolved start offset greater than end offset (without latest)", Held.BESIDE_JVM)
@one_client
def test_resolved_start_offset_greater_than_end_offset(sides, timed):
    sides.assert_refused_alike(
        RESOLVED.format(5, 3, timed, 1),
        subscribe=timed,
        startingOffsets=ends(timed, 0, 5, 0),
        endingOffsetsByTimestamp=ends(timed, MIDDLE, MIDDLE, MIDDLE),
    )
    sides.assert_refused_alike(
        RESOLVED.format(3, 1, timed, 1),
        subscribe=timed,
        startingOffsetsByTimestamp=ends(timed, EARLY, MIDDLE, EARLY),
        endingOffsets=ends(timed, 6, 1, 6),
    )


@peer(
    "KafkaRelationSuiteV1",
    "resolved start offset greater than end offset (with latest)",
    Held.BESIDE_JVM,
)
@one_client
def test_resolved_start_offset_greater_than_an_end_that_tasks_resolve(
    spark, kafka, client, world, topic
):
    """A start behind the latest offset, or an end before the earliest, is refused as by V1.

    The JVM connector's V2 source, which batch queries do not use by default, reads nothing.
    """
    world.delete_records(TopicPartition(topic, 1), 2)
    behind = {"startingOffsets": ends(topic, 0, 2, 1)}
    before = {"startingOffsets": "earliest", "endingOffsets": ends(topic, 9, 1, 0)}
    for options, words in (
        (behind, RESOLVED.format(1, 0, topic, 2)),
        (before, RESOLVED.format(2, 1, topic, 1)),
    ):
        # Both refuse it whether or not data may be lost.
        given = {"subscribe": topic, "failOnDataLoss": "false", **options}
        v1, v2 = (read_jvm(spark, kafka, source, **given) for source in JvmSource)
        assert words in (theirs := root_cause(failure(v1.collect)))
        assert v2.where("partition > 0").count() == (options is behind)
        ours = failure(read(spark, kafka, OURS, client=client, **given).collect)
        assert theirs in str(ours)


def _relation(table: DataFrame) -> str:
    plan: Any = table._jdf.queryExecution().analyzed()
    return str(plan.getClass().getSimpleName())


def _number(row: Row) -> int:
    return int(row["value"])


def _flat(tasks: list[list[int]]) -> list[int]:
    return sorted(number for task in tasks for number in task)
