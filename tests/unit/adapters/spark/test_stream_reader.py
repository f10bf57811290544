"""The stream's reader as Spark's Python runner calls it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import pytest
from pyspark.sql.streaming import datasource as spark

from pyspark_kafka.adapters.spark.stream_reader import KafkaStreamReader, from_spark, to_spark
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import admission as read_limits
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.domain.reading.records import Projection

from ..options import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator

START = PartitionOffsets.from_dict({"t": {"0": 1, "1": 2}})
END = PartitionOffsets.from_dict({"t": {"0": 5, "1": 6}})
LATER = END.merge(PartitionOffsets.from_dict({"t": {"1": 7}}))


@final
class RecordingStream:
    """Remembers which offsets it was given."""

    default_read_limit = read_limits.ReadAllAvailable()

    def __init__(self) -> None:
        self.given: list[PartitionOffsets] = []

    def latest_offset(self, start: PartitionOffsets, _limit: object) -> PartitionOffsets:
        self.given.append(start)
        return LATER if start is END else END

    def plan_tasks(self, start: PartitionOffsets, end: PartitionOffsets) -> tuple[()]:
        self.given += [start, end]
        return ()

    def commit(self, end: PartitionOffsets) -> None:
        self.given.append(end)

    @contextmanager
    def driver(self, _options: object) -> Iterator[RecordingStream]:
        yield self

    def micro_batch_stream(self) -> RecordingStream:
        return self


def reader_of(stream: Any) -> KafkaStreamReader:
    return KafkaStreamReader(stream, source_of("memory"), Projection(("value",)))


def through_json(content: object) -> Any:
    return json.loads(json.dumps(content))


def test_returned_offsets_are_not_read_again():
    stream = RecordingStream()
    reader = reader_of(stream)
    # Of the checkpoint: read once.
    end = reader.latestOffset(START.to_dict(), spark.ReadAllAvailable())
    reader.partitions(START.to_dict(), through_json(end))
    reader.commit(through_json(end))
    later = reader.latestOffset(through_json(end), spark.ReadAllAvailable())
    reader.partitions(through_json(end), through_json(later))
    start = stream.given[0]
    assert start == START
    expected = [start, start, END, END, END, END, LATER]
    assert list(map(id, stream.given)) == list(map(id, expected))


def test_other_offsets_are_read():
    stream = RecordingStream()
    reader = reader_of(stream)
    reader.latestOffset(END.to_dict(), spark.ReadAllAvailable())
    reader.commit(LATER.to_dict())
    assert stream.given == [END, LATER]


ALL = ReadAllAvailable()
AT_LEAST = ReadMinRows(15, 5_000)
AT_MOST = ReadMaxRows(20)
BYTES = ReadMaxBytes(99)

LIMITS = pytest.mark.parametrize(
    ("limit", "theirs"),
    [
        (ALL, spark.ReadAllAvailable()),
        (AT_LEAST, spark.ReadMinRows(15)),
        (AT_MOST, spark.ReadMaxRows(20)),
        (BYTES, spark.ReadMaxBytes(99)),
        (CompositeReadLimit((AT_LEAST, AT_MOST)), spark.ReadMinRows(15)),
        (CompositeReadLimit((AT_MOST, BYTES)), spark.ReadMaxRows(20)),
        (CompositeReadLimit((AT_LEAST, AT_MOST, BYTES)), spark.ReadMinRows(15)),
    ],
)


@LIMITS
def test_spark_gets_one_of_its_own_limits(limit, theirs):
    assert to_spark(limit) == theirs


@LIMITS
def test_sparks_limit_is_replaced_by_all_limits_of_the_options(limit, theirs):
    assert from_spark(theirs, limit) == limit


@pytest.mark.parametrize("asked_for", [ALL, AT_LEAST, AT_MOST, BYTES])
def test_trigger_once_reads_everything_and_ignores_the_options(asked_for):
    assert from_spark(spark.ReadAllAvailable(), asked_for) == ALL
