"""The stream's reader as the Python runner of Spark 4.0 and 4.1 calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from pyspark_kafka.adapters.spark.stream_reader import OlderStreamReader
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.admission import ReadMaxRows
from pyspark_kafka.domain.reading.records import Projection

from ..options import source_of

if TYPE_CHECKING:
    from pyspark_kafka.domain.reading.admission import ReadLimit

LATEST = 1_000
LIMITED = {"maxOffsetsPerTrigger": "300"}


def at(offset: int) -> dict[str, dict[str, int]]:
    return {"t": {"0": offset}}


def reader_of(given: dict[str, str]) -> tuple[OlderStreamReader, Any]:
    """Return a reader of one partition, and the stream that plans its batches."""

    def latest_offset(start: PartitionOffsets, limit: ReadLimit) -> PartitionOffsets:
        [offset] = start.values()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else LATEST
        return PartitionOffsets.from_dict(at(min(offset + most, LATEST)))

    options = source_of("memory", given)
    stream = MagicMock(default_read_limit=options.read_limit, latest_offset=latest_offset)
    stream.initial_offset.return_value = PartitionOffsets.from_dict(at(0))
    stream.plan_tasks.return_value = ()
    stream.driver.return_value.__enter__.return_value.micro_batch_stream.return_value = stream
    return OlderStreamReader(stream, options, Projection(("value",))), stream


def planned(stream: Any) -> list[tuple[object, object]]:
    return [
        (start.to_dict(), end.to_dict()) for (start, end), _ in stream.plan_tasks.call_args_list
    ]


def test_batches_of_a_new_query_follow_each_other():
    reader, stream = reader_of(LIMITED)
    assert reader.latestOffset() == at(300)
    assert reader.initialOffset() == at(0)
    reader.partitions(at(0), at(300))
    assert reader.latestOffset() == at(600)
    # Spark's optimizer removed the scan.
    assert reader.latestOffset() == at(900)
    reader.partitions(at(600), at(900))
    assert [reader.latestOffset() for _ in range(2)] == [at(1_000)] * 2
    assert planned(stream) == [(at(0), at(300)), (at(600), at(900))]


def test_an_empty_batch_is_planned_if_the_log_has_the_offsets_in_another_text():
    """Spark compares texts, and the JVM connector writes other ones: ``{"t":{"0":1000}}``."""
    reader, stream = reader_of(LIMITED)
    assert reader.partitions(at(LATEST), at(LATEST)) == []
    assert reader.latestOffset() == at(LATEST)
    assert reader.partitions(at(LATEST), at(LATEST)) == []
    assert planned(stream) == []


def test_an_empty_first_batch_has_no_partitions():
    reader, stream = reader_of({"maxOffsetsPerTrigger": "1"})
    reader.latestOffset()
    reader.initialOffset()
    assert reader.partitions(at(0), at(0)) == []
    assert reader.latestOffset() == at(1)
    assert planned(stream) == []


def test_after_a_restart_spark_tells_where_the_log_ends():
    reader, stream = reader_of(LIMITED)
    assert reader.partitions(at(600), at(600)) == []
    reader.partitions(at(300), at(600))
    assert planned(stream) == [(at(300), at(600))]
    assert reader.latestOffset() == at(900)


@pytest.mark.parametrize("seen", [300, 600])
def test_a_limited_end_from_before_the_start_is_refused(seen):
    """Spark's wrapper for AvailableNow would go back, or take a limited end for the last one."""
    reader, stream = reader_of(LIMITED)
    reader.latestOffset()
    with pytest.raises(OptionsError, match=r"triggerAvailableNowWrapper\.enabled' is 'true'"):
        reader.partitions(at(seen), at(seen))
    assert planned(stream) == []


def test_an_end_without_limits_may_come_first():
    reader, stream = reader_of({})
    assert reader.latestOffset() == at(LATEST)
    assert reader.partitions(at(600), at(600)) == []
    reader.partitions(at(600), at(LATEST))
    assert planned(stream) == [(at(600), at(LATEST))]
