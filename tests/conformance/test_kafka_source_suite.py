"""KafkaSourceSuiteBase: where a stream starts, how it continues, and the options it refuses."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record

from ..spark.queries import OURS, read
from .live_queries import LiveQueries
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import Sides
from .sources import JVM, ONE_TASK, assert_words, with_client
from .start_offsets import (
    BASE,
    PARTITIONS,
    SECOND,
    STARTS,
    STRATEGIES,
    assert_all_is_read_once,
    at_timestamps,
    covers_all_starts,
    filled,
    write,
)

CLIENTS = ("confluent", "kafka-python")


@pytest.fixture
def sides(spark, kafka, client):
    own_options = ONE_TASK if client == "kafka-python" else {}
    return Sides(spark, kafka, client, own_options=own_options)


@covers_all_starts(Held.SPARK)
@one_client
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stream_starts_at_its_offsets_and_goes_on(live, world, strategy, start):
    begin = STARTS[start]
    topic = filled(world, begin)
    options = {**STRATEGIES[strategy](topic), **begin.options(topic)}
    # Each client has each flag in half of the tests.
    turn = (list(STRATEGIES).index(strategy) + list(STARTS).index(start)) % 2
    flags = dict(zip(("true", "false"), CLIENTS[turn:] + CLIENTS[:turn], strict=True))
    partitions = PARTITIONS if strategy == "assign" else 2 * PARTITIONS
    queries = live.queries(
        lambda open_: open_(**options),
        [with_client(client).given(failOnDataLoss=flag) for flag, client in flags.items()],
    )
    assert_all_is_read_once(queries, world, topic, begin.first, partitions)
    assert len(queries.last_end()[topic]) == partitions


@peer(BASE, "subscribing topics from topic-level offsets", Held.SPARK)
@one_client
def test_subscribing_topics_from_topic_level_offsets(live, world):
    one, two, three = world.topic(3), world.topic(2), world.topic(2)
    for topic, numbers in ((one, (1, 2, 3)), (two, (11,)), (three, (21, 22, 23))):
        write(world, topic, 0, *numbers)
    starts = json.dumps({one: "earliest", two: "latest", three: {"0": 1, "1": -2}})
    queries = live.queries(
        lambda open_: open_(subscribe=f"{one},{two},{three}", startingOffsets=starts),
        [with_client(world.client)],
    )
    queries.start()
    queries.settle()
    write(world, two, 0, 12)
    write(world, one, 2, 4)
    queries.await_numbers([1, 2, 3, 22, 23, 12, 4])
    queries.stop()
    queries.start()
    queries.settle()
    queries.await_numbers([1, 2, 3, 22, 23, 12, 4])


NOT_MATCHED = STARTS["from specific timestamps"]
"""Partition 4 has no record at the second time."""

TIMES: dict[str, Callable[[str], dict[str, str]]] = {
    "specific timestamps": lambda topic: at_timestamps(topic, *[SECOND] * PARTITIONS),
    "global timestamp per topic": lambda _topic: {"startingTimestamp": str(SECOND)},
}


def covers_all_unmatched(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test as the counterpart of four."""
    for strategy in ("name", "pattern"):
        for times in TIMES:
            name = f"subscribing topic by {strategy} from {times} with non-matching starting offset"
            test = peer(BASE, name, Held.BESIDE_JVM)(test)
    return test


@covers_all_unmatched
@pytest.mark.parametrize(
    ("strategy", "times", "client"),
    [
        (f"subscribing topic by {strategy}", times, CLIENTS[turn % 2])
        for turn, (strategy, times) in enumerate(
            (strategy, times) for strategy in ("name", "pattern") for times in TIMES
        )
    ],
)
def test_a_starting_time_behind_all_records(live, world, strategy, times):
    """A time without a later record fails both sources; with the strategy they start at the end."""
    topic = filled(world, NOT_MATCHED)
    options = {
        **STRATEGIES[strategy](topic),
        **TIMES[times](topic),
        "failOnDataLoss": "true",
        "fetchOffset__retryIntervalMs": "1",
    }
    sources = (with_client(world.client), JVM)

    def queries_for(*strategies: dict[str, str]) -> LiveQueries:
        return live.queries(
            lambda open_: open_(**options),
            [source.given(**strategy) for source in sources for strategy in strategies],
        )

    assert_words(
        queries_for({}, {"startingoffsetsbytimestampstrategy": "error"}).fail(),
        f"No offset matched from request of topic-partition {topic}-4 and timestamp {SECOND}",
    )
    queries = queries_for({"startingoffsetsbytimestampstrategy": "latest"})
    queries.start()
    queries.await_numbers([-21, -22, -11, -12, 2, 12])
    write(world, topic, 4, 23, 24, 25)
    queries.await_numbers([-21, -22, -11, -12, 2, 12, 23, 24, 25])
    assert queries.last_end() == {topic: {"0": 3, "1": 3, "2": 3, "3": 3, "4": 6}}


@peer(
    BASE,
    "SPARK-53560: no crash looping during uncommitted batch retry in AvailableNow trigger",
    Held.BESIDE_JVM,
)
@one_client
def test_spark_53560_an_uncommitted_batch_is_run_again(live, world):
    """A failed batch runs again to the same end, with other partitions, records and limits."""
    topic = world.topic()
    write(world, topic, 0, *range(1, 8))

    def fail_on_7(numbers: list[int]) -> None:
        if 7 in numbers:
            raise RuntimeError("error for 7")

    def queries_with(**limit: str) -> LiveQueries:
        return live.queries(
            lambda open_: open_(subscribe=topic, **limit), (with_client(world.client), JVM)
        )

    assert_words(queries_with().fail(fail_on_7, availableNow=True), "error for 7")
    world.add_partitions(topic, 2)
    write(world, topic, 0, 8, 9, 10)
    queries = queries_with(maxOffsetsPerTrigger="2")
    assert_words(queries.fail(fail_on_7, availableNow=True), "error for 7")
    queries.run(availableNow=True)
    assert queries.results() == [[1, 2, 3, 4, 5, 6, 7], [8, 9], [10]]


@peer(BASE, "get offsets from case insensitive parameters", Held.BESIDE_JVM)
@one_client
def test_get_offsets_from_case_insensitive_parameters(sides, world):
    topic = f"{world.fresh_name()}-A"
    world.create(topic, 2)
    world.create(topic.lower())
    write(world, topic, 0, *range(30))
    write(world, topic, 1, *range(30, 33))
    everything = list(range(33))
    words = {"STARTINGoffsets": "earLiEst", "ENDINGoffsets": "laTest"}
    assert sides.batch(SUBSCRIBE=topic, **words).numbers() == everything
    assert sides.batch(subscribe=topic).numbers() == everything
    specific = json.dumps({topic: {"0": 23, "1": -2}})
    assert sides.batch(subscribe=topic, startingoffsets=specific).numbers() == everything[23:]


@peer(BASE, "get offsets from case insensitive parameters", Held.SPARK)
@one_client
def test_topic_level_words_are_case_insensitive(spark, kafka, world):
    one, two = f"{world.fresh_name()}-A", f"{world.fresh_name()}-B"
    for topic in (one, two):
        world.create(topic)
        write(world, topic, 0, 1, 2, 3)
    starts = json.dumps({one: "eArLiEst", two: {"0": 2}})
    options = {"subscribe": f"{one},{two}", "startingOffsets": starts}
    table = read(spark, kafka, OURS, client=world.client, **options)
    assert sorted((row.topic, int(row.value)) for row in table.collect()) == [
        *((one, number) for number in (1, 2, 3)),
        (two, 3),
    ]


@peer(BASE, "Kafka column types", Held.BESIDE_JVM)
def test_kafka_column_types(sides, world, tmp_path):
    topic = world.topic()
    now = datetime.fromtimestamp(round(time.time(), 3), UTC)
    headers = (("a", b"b"), ("c", b"d"))
    record = Record(b"1", headers=headers, timestamp=round(now.timestamp() * 1_000))
    world.produce(TopicPartition(topic, 0), [record])
    both = sides.run_streams(
        tmp_path, subscribe=topic, startingOffsets="earliest", includeHeaders="true"
    )
    assert both.numbers() == [1]
    [row] = both.ours.collect()
    assert row.asDict(recursive=True) == {
        "key": None,
        "value": b"1",
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": now.astimezone().replace(tzinfo=None),
        "timestampType": 0,
        "headers": [{"key": key, "value": value} for key, value in headers],
    }


@peer(BASE, "cannot stop Kafka stream", Held.BESIDE_JVM)
def test_cannot_stop_kafka_stream(live, world):
    topic = world.topic(PARTITIONS)
    for partition in range(PARTITIONS):
        write(world, topic, partition, 101 + partition)
    queries = live.queries(
        lambda open_: open_(subscribePattern=f"{topic}.*", startingOffsets="latest"),
        (with_client(world.client), JVM),
    )
    queries.start()
    queries.settle()
    queries.stop()
    queries.await_numbers([])
    assert not any(queries.each(lambda one: one.running().isActive).values())
