"""KafkaContinuousSinkSuite, with the tests that it inherits from KafkaSinkStreamingSuiteBase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..spark.sinks import Sinks
from .continuous_runs import SECONDS, Runs, numbered
from .one_client import one_client
from .peer import Held, peer

STREAMING = "KafkaSinkStreamingSuiteBase"


def written(name: str) -> pytest.MarkDecorator:
    return peer(STREAMING, f"streaming - {name}", Held.SPARK)


@pytest.fixture
def runs(spark, world, tmp_path):
    return Runs(spark, world, tmp_path)


@pytest.fixture
def sinks(spark, kafka, client, tmp_path):
    return Sinks(spark, kafka, client, tmp_path)


@dataclass(frozen=True, slots=True)
class Columns:
    """A function that returns texts as columns, by name; without one, the records' values."""

    constants: dict[str, str | int]
    value: str | None = "value"

    def __call__(self, records: pa.RecordBatch) -> pa.RecordBatch:
        columns: dict[str, pa.Array[Any]] = {
            name: pa.array([constant] * records.num_rows)
            for name, constant in self.constants.items()
        }
        if self.value is not None:
            columns[self.value] = records.column("value")
        return pa.RecordBatch.from_pydict(columns)


def write_twice(runs: Runs, sinks: Sinks, function: Columns, written: str, **sink: str) -> None:
    origin = runs.world.topic()
    part = TopicPartition(origin, 0)
    with runs.query(function, sink, subscribe=origin, startingOffsets="earliest") as query:
        for first, last in ((1, 5), (6, 10)):
            runs.world.produce(part, numbered(range(first, last + 1)))
            query.processAllAvailable()
            assert sinks.values(written) == sorted(str(number) for number in range(1, last + 1))


@pytest.mark.parametrize(
    ("column", "has_option"),
    [
        pytest.param("{}", False, marks=written("write to kafka with topic field")),
        pytest.param(None, True, marks=written("write w/o topic field, with topic option")),
        pytest.param("foo", True, marks=written("topic field and topic option")),
    ],
)
@one_client
def test_streaming_write_to_kafka(runs, sinks, column, has_option):
    topic = runs.world.topic()
    function = Columns({"topic": column.format(topic)} if column else {})
    write_twice(runs, sinks, function, topic, **({"topic": topic} if has_option else {}))


def failure(runs: Runs, function: Columns, **sink: str) -> str:
    origin = runs.world.topic()
    runs.world.produce(TopicPartition(origin, 0), numbered(range(1, 6)))
    with runs.query(function, sink, subscribe=origin, startingOffsets="earliest") as query:
        with pytest.raises(PysparkKafkaError) as caught:
            query.awaitTermination(SECONDS)
        assert query.exception() is caught.value
    return str(caught.value)


@peer(STREAMING, "streaming - write data with bad schema", Held.LIBRARY)
@peer(STREAMING, "streaming - write data with valid schema but wrong types", Held.LIBRARY)
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Columns({"key": "k"}), "topic option required when no 'topic' attribute is present"),
        (Columns({"topic": "t"}, "key"), "Required attribute 'value' not found"),
        (Columns({"topic": "t", "key": 1}), "key must be a(n) string or binary"),
    ],
    ids=["no topic", "no value", "wrong type"],
)
@one_client
def test_streaming_write_data_with_a_schema_of_no_records(world, tmp_path, function, words):
    assert words in failure(Runs(None, world, tmp_path), function)


def fifteen_thousand(records: pa.RecordBatch) -> pa.RecordBatch:
    values = [b"x" * 15_000] * 1_000 * records.num_rows
    return pa.RecordBatch.from_pydict({"value": values})


@peer("KafkaContinuousSinkSuite", "generic - write big data with small producer buffer", Held.SPARK)
def test_generic_write_big_data_with_small_producer_buffer(runs, sinks):
    topic, origin = runs.world.topic(), runs.world.topic()
    runs.world.produce(TopicPartition(origin, 0), numbered([1]))
    sink = {"topic": topic, "kafka.buffer.memory": "16384", "kafka.max.block.ms": "60000"}
    with runs.query(fifteen_thousand, sink, subscribe=origin, startingOffsets="earliest") as query:
        query.processAllAvailable()
    stored = sinks.stored(topic)
    assert len(stored) == 1_000
    assert {row.value for row in stored} == {b"x" * 15_000}
