"""KafkaSourceSuiteBase: where a stream begins, and how it goes on."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.application.errors import NoOffsetForTimestampError
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .engine import Engine
from .peer import Held, peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark_kafka.brokers import KafkaCluster

BASE = "KafkaSourceSuiteBase"
PARTITIONS = 5

NUMBERS = {
    0: (-20, -21, -22),
    1: (-10, -11, -12),
    2: (0, 1, 2),
    3: (10, 11, 12),
    4: (20, 21, 22),
}
"""What each partition holds at first; the records of a partition are a second apart."""

STRATEGIES: Mapping[str, Callable[[str], Mapping[str, str]]] = {
    "assign": lambda topic: {"assign": json.dumps({topic: list(range(PARTITIONS))})},
    "subscribing topic by name": lambda topic: {"subscribe": topic},
    "subscribing topic by pattern": lambda topic: {"subscribePattern": f"^{topic}$"},
}

STARTS: Mapping[str, tuple[Callable[[str], Mapping[str, str]], tuple[int, ...]]] = {
    "from latest offsets": (lambda _topic: {"startingOffsets": "latest"}, ()),
    "from earliest offsets": (
        lambda _topic: {"startingOffsets": "earliest"},
        tuple(number for numbers in NUMBERS.values() for number in numbers),
    ),
    "from specific offsets": (
        lambda topic: {
            "startingOffsets": json.dumps({topic: {"0": -2, "1": -1, "2": 0, "3": 1, "4": 2}})
        },
        (-20, -21, -22, 0, 1, 2, 11, 12, 22),
    ),
    "from specific timestamps": (
        lambda topic: {
            "startingOffsetsByTimestamp": json.dumps(
                {topic: {"0": 0, "1": 1_000, "2": 1_001, "3": 2_000, "4": 3_000}}
            )
        },
        (-20, -21, -22, -10, -11, -12, 1, 2, 11, 12, 22),
    ),
    "from global timestamp per topic": (
        lambda _topic: {"startingTimestamp": "2000"},
        (-21, -22, -11, -12, 1, 2, 11, 12, 21, 22),
    ),
}


@pytest.fixture(params=["confluent", "kafka-python"])
def world(
    request: pytest.FixtureRequest, kafka: KafkaCluster, fresh_name: Callable[[], str]
) -> Iterator[KafkaWorld]:
    """Yield a real Kafka and the client that reads from it."""
    made = KafkaWorld(request.param, fresh_name, kafka)
    yield made
    made.close()


def engine(world: KafkaWorld, **options: str) -> Engine:
    return Engine(
        {
            **world.addresses,
            "client": world.client,
            "fetchOffset.retryIntervalMs": "20",
            "kafkaConsumer.pollTimeoutMs": "10000",
            **options,
        }
    )


def write(world: KafkaWorld, topic: str, partition: int, *numbers: int) -> None:
    records = [
        Record(str(number).encode(), timestamp=1_000 * (1 + position))
        for position, number in enumerate(numbers)
    ]
    world.produce(TopicPartition(topic, partition), records)


def filled(world: KafkaWorld) -> str:
    topic = world.topic(PARTITIONS)
    for partition, numbers in NUMBERS.items():
        write(world, topic, partition, *numbers)
    return topic


def covers_all_starts(held: Held) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test as the counterpart of the 30 tests that the JVM connector makes in a loop."""

    def marked(test: Callable[..., None]) -> Callable[..., None]:
        for strategy, start, flag in itertools.product(STRATEGIES, STARTS, ("true", "false")):
            test = peer(BASE, f"{strategy} {start} (failOnDataLoss: {flag})", held)(test)
        return test

    return marked


@covers_all_starts(Held.LIBRARY)
@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stream_begins_at_its_offsets_and_goes_on(
    world: KafkaWorld, strategy: str, start: str, fail_on_data_loss: str
) -> None:
    """From its start on every record is read once, through restarts and new partitions."""
    topic = filled(world)
    starting, first = STARTS[start]
    options = {**STRATEGIES[strategy](topic), **starting(topic)}
    with engine(world, failOnDataLoss=fail_on_data_loss, **options) as running:
        assert running.run_batch() == sorted(first)
        write(world, topic, 0, 7, 8)
        assert running.run_batch() == [7, 8]
        write(world, topic, 4, 9, 10)
        running.restart()
        assert running.run_batch() == [9, 10]
        if strategy != "assign":
            world.add_partitions(topic, 2 * PARTITIONS)
            for partition in range(PARTITIONS, 2 * PARTITIONS):
                write(world, topic, partition, 100 + partition)
            assert running.run_batch() == list(range(105, 110))
        assert running.run_batch() == []


@peer(BASE, "subscribing topics from topic-level offsets", Held.LIBRARY)
def test_subscribing_topics_from_topic_level_offsets(world: KafkaWorld) -> None:
    """A word for a whole topic stands beside numbers for the partitions of another."""
    one, other = filled(world), world.topic(2)
    write(world, other, 0, 1, 2, 3)
    starts = {one: "latest", other: {"0": 1, "1": -2}}
    with engine(world, subscribe=f"{one},{other}", startingOffsets=json.dumps(starts)) as running:
        assert running.run_batch() == [2, 3]
        write(world, one, 0, 50)
        assert running.run_batch() == [50]


UNMATCHED = [
    ("subscribing topic by name", "specific timestamps"),
    ("subscribing topic by name", "global timestamp per topic"),
    ("subscribing topic by pattern", "specific timestamps"),
    ("subscribing topic by pattern", "global timestamp per topic"),
]


@peer(
    BASE,
    "subscribing topic by name from specific timestamps with non-matching starting offset",
    Held.LIBRARY,
)
@peer(
    BASE,
    "subscribing topic by name from global timestamp per topic with non-matching starting offset",
    Held.LIBRARY,
)
@peer(
    BASE,
    "subscribing topic by pattern from specific timestamps with non-matching starting offset",
    Held.LIBRARY,
)
@peer(
    BASE,
    "subscribing topic by pattern from global timestamp per topic with non-matching starting "
    "offset",
    Held.LIBRARY,
)
@pytest.mark.parametrize(("strategy", "start"), UNMATCHED)
def test_a_starting_time_behind_all_records(world: KafkaWorld, strategy: str, start: str) -> None:
    """A time without a later record is an error, unless the strategy is to begin at the end."""
    topic = filled(world)
    times = {str(partition): 10_000 for partition in range(PARTITIONS)}
    starting = (
        {"startingOffsetsByTimestamp": json.dumps({topic: times})}
        if start == "specific timestamps"
        else {"startingTimestamp": "10000"}
    )
    options = {**STRATEGIES[strategy](topic), **starting}
    expected = f"No offset matched from request of topic-partition {topic}-0 and timestamp 10000."
    for strategy_option in ({}, {"startingOffsetsByTimestampStrategy": "error"}):
        with (
            engine(world, **options, **strategy_option) as running,
            pytest.raises(NoOffsetForTimestampError) as caught,
        ):
            running.run_batch()
        assert expected in str(caught.value)
    with engine(world, **options, startingOffsetsByTimestampStrategy="latest") as running:
        assert running.run_batch() == []
        write(world, topic, 1, 1)
        assert running.run_batch() == [1]


@peer(
    BASE,
    "SPARK-53560: no crash looping during uncommitted batch retry in AvailableNow trigger",
    Held.LIBRARY,
)
def test_spark_53560_an_uncommitted_batch_is_planned_again(world: KafkaWorld) -> None:
    """A batch of an earlier run is planned before any latest offset of this run is known."""
    topic = filled(world)
    with engine(world, subscribe=topic, startingOffsets="earliest") as running:
        stream = running.container.micro_batch_stream()
        stream.prepare_for_trigger_available_now()
        start = stream.initial_offset()
        end = start.merge({TopicPartition(topic, 0): 2})
        [planned] = stream.plan_input_partitions(start, end)
        assert str(planned) == f"{topic}-0[0, 2)"


UNSUPPORTED_SETTINGS = (
    "auto.offset.reset",
    "enable.auto.commit",
    "interceptor.classes",
    "key.deserializer",
    "value.deserializer",
)


@peer(BASE, "unsupported kafka configs", Held.LIBRARY)
@pytest.mark.parametrize("name", UNSUPPORTED_SETTINGS)
def test_unsupported_kafka_configs(name: str) -> None:
    """Settings that would change what the source promises are refused, whatever their value."""
    raw = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", f"kafka.{name}": "any"}
    for query in QueryKind:
        with pytest.raises(OptionsError, match="not supported"):
            parse_source_options(raw, query)


@peer(BASE, "get offsets from case insensitive parameters", Held.LIBRARY)
@pytest.mark.parametrize("word", ["earLiEst", "laTest"])
def test_get_offsets_from_case_insensitive_parameters(word: str) -> None:
    """Neither an option's name nor its words distinguish upper from lower case."""
    raw = {"kafka.bootstrap.servers": "h:1", "SUBSCRIBE": "t", "startingoFFsets": word}
    options = parse_source_options(raw, QueryKind.STREAM)
    assert type(options.starting_offsets).__name__.lower() == word.lower()


@peer("KafkaSourceStressSuite", "stress test with multiple topics and partitions", Held.LIBRARY)
def test_stress_test_with_multiple_topics_and_partitions(world: KafkaWorld) -> None:
    """Under a random run of writes, new topics, new partitions and restarts all is read once."""
    chance = random.Random(5)  # noqa: S311  # the same run each time
    prefix = world.fresh_name()
    sizes = {f"{prefix}-0": 1}
    world.create(f"{prefix}-0")
    written: list[int] = []
    read: list[int] = []
    with engine(
        world,
        subscribePattern=f"^{prefix}-",
        startingOffsets="earliest",
        maxOffsetsPerTrigger="40",
    ) as running:
        for step in range(60):
            match chance.choice(["write"] * 6 + ["topic", "partitions", "restart"]):
                case "write":
                    topic = chance.choice(sorted(sizes))
                    numbers = range(len(written), len(written) + chance.randint(1, 30))
                    write(world, topic, chance.randrange(sizes[topic]), *numbers)
                    written += numbers
                case "topic":
                    world.create(f"{prefix}-{step + 1}", 2)
                    sizes[f"{prefix}-{step + 1}"] = 2
                case "partitions":
                    topic = chance.choice(sorted(sizes))
                    sizes[topic] += 1
                    world.add_partitions(topic, sizes[topic])
                case _:
                    running.restart()
            read += running.run_batch()
        while numbers_left := running.run_batch():
            read += numbers_left
    assert sorted(read) == written


def churned(world: KafkaWorld, prefix: str) -> Iterator[int]:
    """Create, delete and write topics at random; yield the count of numbers after each step.

    Numbers are written once each, so that none may be read twice.
    """
    chance = random.Random(7)  # noqa: S311  # the same run each time
    alive: set[str] = set()
    written = 0
    for _ in range(40):
        topic = f"{prefix}-{chance.randrange(3)}"
        if topic not in alive:
            world.create(topic)
            alive.add(topic)
        elif chance.random() < 0.3:
            world.delete_topic(topic)
            alive.remove(topic)
        else:
            count = chance.randint(1, 10)
            write(world, topic, 0, *range(written, written + count))
            written += count
        yield written


@peer(
    "KafkaSourceStressForDontFailOnDataLossSuite",
    "stress test for failOnDataLoss=false",
    Held.LIBRARY,
)
def test_stress_test_for_fail_on_data_loss_false(world: KafkaWorld) -> None:
    """While topics come and go, a query that may lose data neither fails nor repeats."""
    prefix = world.fresh_name()
    read = []
    with engine(
        world,
        subscribePattern=f"^{prefix}-",
        startingOffsets="earliest",
        failOnDataLoss="false",
        **{"fetchOffset.numRetries": "2"},
    ) as running:
        for _ in churned(world, prefix):
            read += running.run_batch()
    assert read
    assert len(read) == len(set(read))
