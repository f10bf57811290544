"""KafkaRelationSuite: what a batch query reads, beside the JVM connector in the same session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record

from .one_client import one_client
from .peer import Held, peer
from .side_by_side import Sides, ends, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_kafka.brokers import KafkaCluster
    from pyspark_kafka.testing import KafkaWorld

SUITE = "KafkaRelationSuiteBase"

EARLY, LATE, NEVER = 1_000, 2_000, 3_000
"""Times of the first and of the second half of ``timed``, and one after all records."""


@pytest.fixture
def sides(spark: SparkSession, kafka: KafkaCluster, client: str) -> Sides:
    """Return a function to make queries of both sources."""
    return Sides(spark, kafka, client)


@pytest.fixture
def topic(world: KafkaWorld) -> str:
    """Return a topic of three partitions: 0 to 8, 10 to 12 and none."""
    name = world.topic(3)
    write(world, name, {0: range(9), 1: range(10, 13)})
    return name


@pytest.fixture
def timed(world: KafkaWorld) -> str:
    """Return a topic of two partitions, 0 to 5 and 10 to 15, the second half of each later."""
    name = world.topic(2)
    write(world, name, {0: range(3), 1: range(10, 13)}, EARLY)
    write(world, name, {0: range(3, 6), 1: range(13, 16)}, LATE)
    return name


FIRST_HALF, SECOND_HALF = [0, 1, 2, 10, 11, 12], [3, 4, 5, 13, 14, 15]
BEFORE = [*range(9), *range(10, 13)]


@peer(SUITE, "explicit earliest to latest offsets", Held.BESIDE_JVM)
def test_explicit_earliest_to_latest_offsets(sides: Sides, world: KafkaWorld, topic: str) -> None:
    """A query over everything reads everything, and what came since when it runs again."""
    tables = sides.batch(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
    assert tables.numbers() == BEFORE
    write(world, topic, {0: [9], 2: range(20, 23)})
    assert tables.numbers() == [*range(13), *range(20, 23)]


@peer(SUITE, "default starting and ending offsets", Held.BESIDE_JVM)
def test_default_starting_and_ending_offsets(sides: Sides, topic: str) -> None:
    """A query without ends reads everything."""
    assert sides.batch(subscribe=topic).numbers() == BEFORE


@peer(SUITE, "explicit offsets", Held.BESIDE_JVM)
def test_explicit_offsets(sides: Sides, world: KafkaWorld, topic: str) -> None:
    """Ends that are numbers stay where they are, and -1 moves on with the log."""
    tables = sides.batch(
        subscribe=topic, startingOffsets=ends(topic, -2, 1, 0), endingOffsets=ends(topic, 4, -1, -1)
    )
    assert tables.numbers() == [0, 1, 2, 3, 11, 12]
    write(world, topic, {0: [9], 1: [13], 2: [20]})
    assert tables.numbers() == [0, 1, 2, 3, 11, 12, 13, 20]


@peer(SUITE, "default starting and ending offsets with headers", Held.BESIDE_JVM)
def test_default_starting_and_ending_offsets_with_headers(sides: Sides, world: KafkaWorld) -> None:
    """Headers keep their order and their duplicates, and are null where there are none."""
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
def test_timestamp_provided_for_starting_and_ending(sides: Sides, timed: str) -> None:
    """Between two times are the records from the first on and before the second."""
    tables = sides.batch(
        subscribe=timed,
        startingOffsetsByTimestamp=ends(timed, EARLY, EARLY + 1),
        endingOffsetsByTimestamp=ends(timed, LATE, LATE + 1),
    )
    assert tables.numbers() == [0, 1, 2, 13, 14, 15]


@peer(SUITE, "timestamp provided for starting, offset provided for ending", Held.BESIDE_JVM)
def test_timestamp_provided_for_starting_offset_provided_for_ending(
    sides: Sides, timed: str
) -> None:
    """A query begins at times and ends at offsets."""
    tables = sides.batch(
        subscribe=timed,
        startingOffsetsByTimestamp=ends(timed, LATE, EARLY),
        endingOffsets=ends(timed, 4, -1),
    )
    assert tables.numbers() == [3, *range(10, 16)]


@peer(SUITE, "timestamp provided for ending, offset provided for starting", Held.BESIDE_JVM)
def test_timestamp_provided_for_ending_offset_provided_for_starting(
    sides: Sides, timed: str
) -> None:
    """A query begins at offsets and ends at times."""
    tables = sides.batch(
        subscribe=timed,
        startingOffsets=ends(timed, 2, -2),
        endingOffsetsByTimestamp=ends(timed, NEVER, LATE),
    )
    assert tables.numbers() == [2, 3, 4, 5, 10, 11, 12]


@peer(SUITE, "timestamp provided for starting, ending not provided", Held.BESIDE_JVM)
def test_timestamp_provided_for_starting_ending_not_provided(sides: Sides, timed: str) -> None:
    """A query that begins at times and says no end ends at the latest offsets."""
    tables = sides.batch(subscribe=timed, startingOffsetsByTimestamp=ends(timed, LATE, LATE))
    assert tables.numbers() == SECOND_HALF


@peer(SUITE, "timestamp provided for ending, starting not provided", Held.BESIDE_JVM)
def test_timestamp_provided_for_ending_starting_not_provided(sides: Sides, timed: str) -> None:
    """A query that ends at times and says no beginning begins at the earliest offsets."""
    tables = sides.batch(subscribe=timed, endingOffsetsByTimestamp=ends(timed, LATE, LATE))
    assert tables.numbers() == FIRST_HALF


@peer(SUITE, "global timestamp provided for starting and ending", Held.BESIDE_JVM)
def test_global_timestamp_provided_for_starting_and_ending(sides: Sides, timed: str) -> None:
    """One time stands for all partitions, at either end."""
    tables = sides.batch(subscribe=timed, startingTimestamp=str(EARLY), endingTimestamp=str(LATE))
    assert tables.numbers() == FIRST_HALF


@peer(SUITE, "no matched offset for timestamp - startingOffsets", Held.BESIDE_JVM)
@one_client
def test_no_matched_offset_for_timestamp_starting_offsets(sides: Sides, timed: str) -> None:
    """A time after the last record of a partition is refused as a start, unless told otherwise."""
    for starting in (
        {"startingOffsetsByTimestamp": ends(timed, EARLY, NEVER)},
        {"startingTimestamp": str(NEVER), "assign": f'{{"{timed}":[1]}}'},
    ):
        options = starting if "assign" in starting else {"subscribe": timed, **starting}
        sides.assert_refused_alike("No offset matched from request", **options)
        lenient = sides.batch(**options, startingOffsetsByTimestampStrategy="latest")
        assert lenient.numbers() == ([] if "assign" in starting else list(range(6)))


@peer(SUITE, "preferences on offset related options", Held.BESIDE_JVM)
@one_client
def test_preferences_on_offset_related_options(sides: Sides, timed: str) -> None:
    """Of several ends a global timestamp precedes timestamps, and these precede offsets."""
    lowest = {
        "subscribe": timed,
        "startingOffsets": ends(timed, 1, 1),
        "endingOffsets": ends(timed, 2, 2),
    }
    middle = {
        **lowest,
        "startingOffsetsByTimestamp": ends(timed, LATE, LATE),
        "endingOffsetsByTimestamp": ends(timed, NEVER, NEVER),
    }
    highest = {**middle, "startingTimestamp": str(EARLY), "endingTimestamp": str(LATE)}
    assert sides.batch(**lowest).numbers() == [1, 11]
    assert sides.batch(**middle).numbers() == SECOND_HALF
    assert sides.batch(**highest).numbers() == FIRST_HALF


@peer(SUITE, "no matched offset for timestamp - endingOffsets", Held.BESIDE_JVM)
@one_client
def test_no_matched_offset_for_timestamp_ending_offsets(sides: Sides, timed: str) -> None:
    """A time after the last record of a partition is, as an end, the latest offset."""
    tables = sides.batch(subscribe=timed, endingOffsetsByTimestamp=ends(timed, LATE, NEVER))
    assert tables.numbers() == [0, 1, 2, *range(10, 16)]
    assert sides.batch(subscribe=timed, endingTimestamp=str(NEVER)).numbers() == sorted(
        FIRST_HALF + SECOND_HALF
    )


@peer(SUITE, "reuse same dataframe in query", Held.BESIDE_JVM)
def test_reuse_same_dataframe_in_query(sides: Sides, topic: str) -> None:
    """A table that stands twice in a query is read twice."""
    tables = sides.batch(subscribe=topic)
    for table in (tables.ours, tables.theirs):
        rows = table.union(table).selectExpr("cast(cast(value as string) as int)").collect()
        assert sorted(row[0] for row in rows) == sorted(2 * BEFORE)


@peer(SUITE, "test late binding start offsets", Held.BESIDE_JVM)
def test_late_binding_start_offsets(sides: Sides, world: KafkaWorld, topic: str) -> None:
    """Records that are deleted between two runs of a query are not missed by the second."""
    tables = sides.batch(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
    assert tables.numbers() == BEFORE
    world.delete_records(TopicPartition(topic, 0), 6)
    write(world, topic, {0: [9]})
    assert tables.numbers() == [*range(6, 13)]


@peer(SUITE, "bad batch query options", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    ("option", "value", "core"),
    [
        ("startingOffsets", "latest", "starting offset can't be latest for batch queries on Kafka"),
        ("startingOffsets", '{"t":{"0":-1}}', "startingOffsets for t-0 can't be latest"),
        ("endingOffsets", "earliest", "ending offset can't be earliest for batch queries on Kafka"),
        ("endingOffsets", '{"t":{"0":-2}}', "ending offset for t-0 can't be earliest"),
        ("subscribePattern", "", "Only one of the following options can be specified"),
    ],
)
@one_client
def test_bad_batch_query_options(sides: Sides, option: str, value: str, core: str) -> None:
    """What a batch query cannot begin or end with is refused in the same words."""
    sides.assert_refused_alike(core, **{"subscribe": "t", option: value})


@peer(SUITE, "read Kafka transactional messages: read_committed", Held.BESIDE_JVM)
def test_read_kafka_transactional_messages_read_committed(sides: Sides, world: KafkaWorld) -> None:
    """Records of transactions that were aborted or are open are not read."""
    topic, partition = _transactions(world)
    tables = sides.batch(subscribe=topic, kafka__isolation__level="read_committed")
    assert tables.numbers() == [*range(5), *range(10, 20)]
    with world.transaction(commit=True) as send:
        send(partition, [Record(b"20")])
        write(world, topic, {0: [21]})
        assert tables.numbers() == [*range(5), *range(10, 20)]
    assert tables.numbers() == [*range(5), *range(10, 22)]


@peer(SUITE, "read Kafka transactional messages: read_uncommitted", Held.BESIDE_JVM)
def test_read_kafka_transactional_messages_read_uncommitted(
    sides: Sides, world: KafkaWorld
) -> None:
    """Records of all transactions are read, and nothing stands for their markers."""
    topic, partition = _transactions(world)
    tables = sides.batch(subscribe=topic, kafka__isolation__level="read_uncommitted")
    assert tables.numbers() == list(range(20))
    with world.transaction(commit=True) as send:
        send(partition, [Record(b"20")])
        assert tables.numbers() == list(range(21))


@peer(SUITE, "SPARK-30656: minPartitions", Held.BESIDE_JVM)
@pytest.mark.parametrize("ending", ["latest", "offsets"])
def test_min_partitions(sides: Sides, world: KafkaWorld, ending: str) -> None:
    """Partitions are split into as many tasks, the last of which reads to an end that moves."""
    topic = world.topic(3)
    write(world, topic, {number: range(10 * number, 10 * number + 10) for number in range(3)})
    tables = sides.batch(
        subscribe=topic,
        startingOffsets="earliest",
        endingOffsets="latest" if ending == "latest" else ends(topic, 10, 10, 10),
        minPartitions="6",
    )
    tasks = tables.ours.rdd.getNumPartitions()
    assert tasks == tables.theirs.rdd.getNumPartitions()
    assert tasks >= 6
    assert tables.numbers() == list(range(30))
    write(world, topic, {2: range(30, 40)})
    assert tables.numbers() == list(range(40 if ending == "latest" else 30))


@peer(SUITE, "topic-partition for start offset and end offset must match", Held.BESIDE_JVM)
@pytest.mark.parametrize("kind", ["Offsets", "OffsetsByTimestamp"])
@one_client
def test_topic_partition_for_start_offset_and_end_offset_must_match(
    sides: Sides, topic: str, kind: str
) -> None:
    """A start and an end that name different partitions are refused in the same words."""
    few, many = ends(topic, 5, 5), ends(topic, 5, 5, 5)
    core = "The specified start offset and end offset should have the same topic-partitions."
    for start, end in ((few, many), (many, few)):
        sides.assert_refused_alike(
            core, subscribe=topic, **{f"starting{kind}": start, f"ending{kind}": end}
        )


@peer(SUITE, "topic-partition for start offset and end offset must match", Held.BESIDE_JVM)
@pytest.mark.parametrize("given", [2, 4])
@pytest.mark.parametrize(
    ("option", "core"),
    [
        ("startingOffsets", "Partitions specified for Kafka start offsets don't match"),
        ("endingOffsets", "Partitions specified for Kafka start offsets don't match"),
        ("startingOffsetsByTimestamp", "Kafka timestamp based start offsets don't match"),
        ("endingOffsetsByTimestamp", "Kafka timestamp based end offsets don't match"),
    ],
)
@one_client
def test_offsets_must_be_of_the_partitions_that_there_are(
    sides: Sides, topic: str, option: str, core: str, given: int
) -> None:
    """Ends of more or fewer partitions than a topic has are refused, and both sets are named."""
    ours, theirs = sides.refusals(subscribe=topic, **{option: ends(topic, *[1] * given)})
    assert core in theirs
    # A set is printed in no order by the JVM connector, and in order here.
    facts, _, _ = theirs.partition("Specified:")
    assert facts in ours
    names = [f"{topic}-{number}" for number in range(max(given, 3))]
    assert f"Specified: Set({', '.join(names[:given])})" in ours
    assert f"Assigned: Set({', '.join(names[:3])})" in ours
    assert all(name in theirs for name in names)


@peer(SUITE, "unresolved start offset greater than end offset", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    ("kind", "word"), [("Offsets", "offset"), ("OffsetsByTimestamp", "timest")]
)
@one_client
def test_unresolved_start_offset_greater_than_end_offset(
    sides: Sides, kind: str, word: str, topic: str
) -> None:
    """A start beyond the end of the same kind is refused, with both and their partition."""
    sides.assert_refused_alike(
        f"The specified start {word}",
        subscribe=topic,
        **{f"starting{kind}": ends(topic, 1, 7, 1), f"ending{kind}": ends(topic, 1, 5, 1)},
    )


@peer(SUITE, "resolved start offset greater than end offset (without latest)", Held.BESIDE_JVM)
@one_client
def test_resolved_start_offset_greater_than_end_offset(sides: Sides, timed: str) -> None:
    """A start that proves to lie behind an end of another kind is refused in the same words."""
    core = f"The resolved start offset {{}} is greater than the resolved end offset {{}} for topic {timed} partition 1."  # noqa: E501
    sides.assert_refused_alike(
        core.format(5, 3),
        subscribe=timed,
        startingOffsets=ends(timed, 0, 5),
        endingOffsetsByTimestamp=ends(timed, LATE, LATE),
    )
    sides.assert_refused_alike(
        core.format(3, 1),
        subscribe=timed,
        startingOffsetsByTimestamp=ends(timed, EARLY, LATE),
        endingOffsets=ends(timed, 6, 1),
    )


def _transactions(world: KafkaWorld) -> tuple[str, TopicPartition]:
    """Write 0 to 4 in a transaction, 5 to 9 in one that is aborted, and 10 to 19 in two more."""
    topic = world.topic(1)
    partition = TopicPartition(topic, 0)
    for first, commit in ((0, True), (5, False), (10, True), (15, True)):
        with world.transaction(commit=commit) as send:
            send(partition, [Record(str(first + number).encode()) for number in range(5)])
    return topic, partition
