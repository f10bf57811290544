"""KafkaContinuousSourceSuite, with the tests that it inherits from KafkaSourceSuiteBase."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

import pytest

from pyspark_kafka import continuous
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record, await_until

from .continuous_runs import SECONDS, Runs, numbered
from .peer import Held, peer
from .start_offsets import (
    BASE,
    PARTITIONS,
    STARTS,
    STRATEGIES,
    assert_all_is_read_once,
    covers_all_starts,
    filled,
)
from .test_bad_options import LIMITS, NOBODY, SETTINGS, refusal_of_source, told
from .test_bad_options import STRATEGIES as BAD_STRATEGIES

SUITE = "KafkaContinuousSourceSuite"


@pytest.fixture
def runs(spark, world, tmp_path):
    return Runs(spark, world, tmp_path)


@pytest.fixture
def in_threads(world, tmp_path):
    return Runs(None, world, tmp_path)


@peer(SUITE, "read Kafka transactional messages: read_committed", Held.SPARK)
def test_read_kafka_transactional_messages_read_committed(runs):
    topic = runs.world.topic()
    part = TopicPartition(topic, 0)
    level = "read_committed"
    with runs.query(
        subscribe=topic, startingOffsets="earliest", kafka__isolation__level=level
    ) as query:
        with runs.world.transaction(commit=True) as send:
            send(part, numbered(range(1, 6)))
            query.processAllAvailable()
            assert runs.numbers() == []
        runs.await_numbers(query, range(1, 6))
        with runs.world.transaction(commit=False) as send:
            send(part, numbered(range(6, 11)))
        query.processAllAvailable()
        assert runs.numbers() == [*range(1, 6)]
        with runs.world.transaction(commit=True) as send:
            send(part, numbered(range(11, 16)))
        runs.await_numbers(query, [*range(1, 6), *range(11, 16)])


@peer(SUITE, "read Kafka transactional messages: read_uncommitted", Held.SPARK)
def test_read_kafka_transactional_messages_read_uncommitted(runs):
    topic = runs.world.topic()
    part = TopicPartition(topic, 0)
    level = "read_uncommitted"
    with runs.query(
        subscribe=topic, startingOffsets="earliest", kafka__isolation__level=level
    ) as query:
        with runs.world.transaction(commit=True) as send:
            send(part, numbered(range(1, 6)))
            runs.await_numbers(query, range(1, 6))
        with runs.world.transaction(commit=False) as send:
            send(part, numbered(range(6, 11)))
        runs.await_numbers(query, range(1, 11))
        with runs.world.transaction(commit=True) as send:
            send(part, numbered(range(11, 16)))
            runs.await_numbers(query, range(1, 16))
        query.processAllAvailable()
        assert runs.numbers() == [*range(1, 16)]


@peer(SUITE, "SPARK-27494: read kafka record containing null key/values.", Held.SPARK)
def test_spark_27494_null_keys_and_values(runs):
    topic = runs.world.topic()
    pairs: list[tuple[bytes | None, bytes | None]] = [
        *[(None, None)] * 5,
        *[(b"%d" % number, None) for number in range(1, 6)],
        *[(None, b"%d" % number) for number in range(6, 11)],
    ]
    level = "read_committed"
    with runs.query(
        subscribe=topic, startingOffsets="earliest", kafka__isolation__level=level
    ) as query:
        with runs.world.transaction(commit=True) as send:
            send(TopicPartition(topic, 0), [Record(value, key) for key, value in pairs])
        await_until(lambda: len(runs.pairs()) >= len(pairs) or not query.isActive, SECONDS)
        query.processAllAvailable()
    texts = [tuple(each and each.decode() for each in pair) for pair in pairs]
    assert runs.pairs() == texts


class ContinuousRun:
    """Queries that run one after another from one checkpoint."""

    def __init__(self, runs: Runs, options: Mapping[str, str]) -> None:
        self._runs = runs
        self._options = options
        self._stack = ExitStack()
        self._query: ContinuousQuery | None = None

    def start(self) -> None:
        self._query = self._stack.enter_context(self._runs.query(**self._options))

    def stop(self) -> None:
        self._stack.close()

    def settle(self) -> None:
        assert self._query is not None
        self._query.processAllAvailable()

    def await_numbers(self, wanted: Iterable[int]) -> None:
        assert self._query is not None
        self._runs.await_numbers(self._query, wanted)


@covers_all_starts(Held.LIBRARY)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("strategy", "client"),
    # Each client for each start; contract suites hold both to the same.
    list(zip(STRATEGIES, ["kafka-python", "confluent", "kafka-python"], strict=True)),
)
def test_a_query_starts_at_its_offsets_and_goes_on(in_threads, strategy, start):
    begin, world = STARTS[start], in_threads.world
    topic = filled(world, begin)
    # Both flags are alike where nothing is lost.
    options = {**STRATEGIES[strategy](topic), **begin.options(topic), "failOnDataLoss": "false"}
    run = ContinuousRun(in_threads, options)
    partitions = PARTITIONS if strategy == "assign" else 2 * PARTITIONS
    try:
        assert_all_is_read_once(run, world, topic, begin.first, partitions)
    finally:
        run.stop()


@peer(BASE, "bad source options", Held.LIBRARY)
@peer(BASE, "unsupported kafka configs", Held.LIBRARY)
@pytest.mark.parametrize("options", [*BAD_STRATEGIES, *LIMITS, *SETTINGS], ids=told)
def test_bad_source_options_are_refused_as_by_a_stream(options):
    given = {**NOBODY, **options}
    with pytest.raises(OptionsError) as caught:
        continuous.start(None, print, source=given, checkpointLocation="/never")
    assert refusal_of_source(QueryKind.STREAM, given)[1] == str(caught.value)
