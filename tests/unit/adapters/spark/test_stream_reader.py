"""The stream's reader as Spark's Python runner calls it."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.streaming import datasource as spark

from pyspark_kafka.adapters.spark.stream_reader import (
    KafkaStreamReader,
    MicroBatchReader,
    OlderStreamReader,
    from_spark,
    to_spark,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.domain.reading.records import Projection

from ...application.conftest import Kit
from ..options import source_of

ALL = ReadAllAvailable()

START = PartitionOffsets.from_dict({"t": {"0": 1, "1": 2}})
END = PartitionOffsets.from_dict({"t": {"0": 5, "1": 6}})
LATER = END.merge(PartitionOffsets.from_dict({"t": {"1": 7}}))


def reader_of(given: list[PartitionOffsets]) -> KafkaStreamReader:
    """Return a reader whose stream remembers which offsets it was given."""

    def latest_offset(start: PartitionOffsets, _limit: object) -> PartitionOffsets:
        given.append(start)
        return LATER if start is END else END

    def plan_tasks(*ends: PartitionOffsets, **_: bool) -> tuple[()]:
        given.extend(ends)
        return ()

    stream = MagicMock(default_read_limit=ALL, latest_offset=latest_offset, commit=given.append)
    stream.plan_tasks = plan_tasks
    stream.driver.return_value.__enter__.return_value.micro_batch_stream.return_value = stream
    return KafkaStreamReader(stream, source_of("memory"), Projection(("value",)))


def through_json(content: object) -> Any:
    return json.loads(json.dumps(content))


def test_returned_offsets_are_not_read_again():
    given: list[PartitionOffsets] = []
    reader = reader_of(given)
    # Of the checkpoint: read once.
    end = reader.latestOffset(START.to_dict(), spark.ReadAllAvailable())
    reader.partitions(START.to_dict(), through_json(end))
    reader.commit(through_json(end))
    later = reader.latestOffset(through_json(end), spark.ReadAllAvailable())
    reader.partitions(through_json(end), through_json(later))
    start = given[0]
    assert start == START
    expected = [start, start, END, END, END, END, LATER]
    assert list(map(id, given)) == list(map(id, expected))


def test_other_offsets_are_read():
    given: list[PartitionOffsets] = []
    reader = reader_of(given)
    reader.latestOffset(END.to_dict(), spark.ReadAllAvailable())
    reader.commit(LATER.to_dict())
    assert given == [END, LATER]


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


JSON_STARTS = ["latest", '{"t":{"0":2}}']


def reader_in(kit: Kit, kind: type[MicroBatchReader], starting: str) -> Any:
    """Return a reader of a new process."""
    use_cases = MagicMock()
    container = kit.container({"startingOffsets": starting})
    use_cases.driver.return_value.__enter__.return_value = container
    return kind(use_cases, source_of("memory"), Projection(("value",)))


@pytest.fixture
def kit():
    """Return a kit whose topic has five records in its only partition."""
    made = Kit()
    made.cluster.create_topic("t", 1)
    made.produce(5)
    return made


@pytest.mark.parametrize("starting", JSON_STARTS)
@pytest.mark.parametrize("is_limited", [True, False])
def test_a_logged_first_batch_runs_again_after_changes(kit, starting, is_limited):
    """Older releases pass the end before they ask for the start (``setLatestSeenOffset``)."""
    kind = KafkaStreamReader if is_limited else OlderStreamReader
    reader = reader_in(kit, kind, starting)
    limit = (spark.ReadAllAvailable(),) if is_limited else ()
    start = through_json(reader.initialOffset())
    end = through_json(reader.latestOffset(*((start, *limit) if is_limited else ())))
    kit.produce(3)
    kit.cluster.add_partitions("t", 2)
    reader = reader_in(kit, kind, starting)
    if not is_limited:
        assert reader.partitions(end, end) == []
    first = reader.partitions(through_json(reader.initialOffset()), end)
    then = through_json(reader.latestOffset(*((end, *limit) if is_limited else ())))
    second = reader.partitions(end, then)
    assert then == {"t": {"0": 8, "1": 0}}
    read = [one for task in (*first, *second) for one in task.value if one.size]
    expected = [(5, 8)] if starting == "latest" else [(2, 5), (5, 8)]
    assert [(one.from_offset, one.until_offset) for one in read] == expected
