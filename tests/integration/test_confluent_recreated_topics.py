import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.reading.errors import TopicRecreatedError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record

COLUMNS: Final = Projection(("offset", "value"))
OLD: Final = b"o" * 500
NEW: Final = b"n" * 100

PREFETCHED: Final = {
    "kafka__queued__max__messages__kbytes": "1024",
    "kafka__queued__min__messages": "100",
    "kafka__fetch__message__max__bytes": "100000",
}
RECORDS: Final = 13_000
"""More than are read at once and fetched ahead, with these settings."""


@pytest.fixture
def client():
    return "confluent"


@pytest.fixture
def reader(world):
    options = world.options(
        QueryKind.BATCH,
        # As if the topic was known for half a minute: a deleted one is forgotten at once.
        kafka__topic__metadata__propagation__max__ms="0",
        **PREFETCHED,
    )
    made = ConfluentRecordReader(options)
    yield made
    made.close()


@pytest.fixture
def partition(world):
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, [Record(OLD)] * RECORDS)
    return partition


def values_of(batches: Iterator[pa.RecordBatch], values: list[bytes | None]) -> list[bytes | None]:
    for batch in batches:
        values += batch["value"].to_pylist()
    return values


def test_records_of_two_topics_are_not_mixed(world, reader, partition):
    batches = reader.read(OffsetRange(partition, 0, RECORDS), COLUMNS)
    values = next(batches)["value"].to_pylist()
    world.delete_topic(partition.topic)
    world.create(partition.topic)
    world.produce(partition, [Record(NEW)] * (RECORDS + 1))
    with pytest.raises(TopicRecreatedError) as caught:
        values_of(batches, values)
    assert set(values) == {OLD}
    error = caught.value
    assert (error.partition, error.offset, error.earliest) == (partition, len(values), 0)
    again = reader.read(OffsetRange(partition, 0, RECORDS), COLUMNS)
    assert values_of(again, []) == [NEW] * RECORDS


def test_a_range_is_continued_in_the_same_topic_only(world, partition):
    """The topic is created again while the consumer fetches another range."""
    reader = ConfluentRecordReader(world.options(QueryKind.BATCH, **PREFETCHED))
    batches = reader.read(OffsetRange(partition, 0, RECORDS), COLUMNS)
    position = next(batches).num_rows
    world.delete_topic(partition.topic)
    world.create(partition.topic)
    world.produce(partition, [Record(NEW)] * (RECORDS + 1))
    assert values_of(reader.read(OffsetRange(partition, 0, 9), COLUMNS), []) == [NEW] * 9
    with pytest.raises(TopicRecreatedError) as caught:
        values_of(batches, [])
    reader.close()
    assert caught.value.offset == position


def test_what_is_fetched_ahead_is_of_one_topic(world, reader, partition):
    """The topic is created again between two ranges that were expected together."""
    first = TopicPartition(world.topic(), 0)
    world.produce(first, [Record(OLD)] * 9)
    size = 1_000
    reader.expect([OffsetRange(first, 0, 9), OffsetRange(partition, 0, size)])
    assert values_of(reader.read(OffsetRange(first, 0, 9), COLUMNS), []) == [OLD] * 9
    world.delete_topic(partition.topic)
    world.create(partition.topic)
    world.produce(partition, [Record(NEW)] * size)
    values: list[bytes | None] = []
    with suppress(TopicRecreatedError):
        values_of(reader.read(OffsetRange(partition, 0, size), COLUMNS), values)
        assert len(values) == size
    assert len(set(values)) == 1
    again = reader.read(OffsetRange(partition, 0, size), COLUMNS)
    assert values_of(again, []) == [NEW] * size


@pytest.mark.parametrize(("given", "expected"), [({}, False), ({"kafka.debug": "conf"}, True)])
def test_lines_are_logged_that_the_user_asks_for(
    world, partition, caplog, capfd, given, *, expected
):
    options = world.options(QueryKind.BATCH, **given)
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG, logger="pyspark_kafka.librdkafka"):
        reader = ConfluentRecordReader(options)
        assert values_of(reader.read(OffsetRange(partition, 0, 9), COLUMNS), []) == [OLD] * 9
        reader.close()
    assert (logging.DEBUG in {record.levelno for record in caplog.records}) is expected
    assert ("fetch.wait.max.ms = " in caplog.text) is expected
    assert capfd.readouterr().err == ""
