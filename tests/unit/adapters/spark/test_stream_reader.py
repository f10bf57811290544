"""The stream's reader as Spark's Python runner calls it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_kafka.adapters.spark.stream_reader import KafkaStreamReader
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import admission as read_limits
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
    end = reader.latestOffset(START.to_dict(), ReadAllAvailable())
    reader.partitions(START.to_dict(), through_json(end))
    reader.commit(through_json(end))
    later = reader.latestOffset(through_json(end), ReadAllAvailable())
    reader.partitions(through_json(end), through_json(later))
    start = stream.given[0]
    assert start == START
    expected = [start, start, END, END, END, END, LATER]
    assert list(map(id, stream.given)) == list(map(id, expected))


def test_other_offsets_are_read():
    stream = RecordingStream()
    reader = reader_of(stream)
    reader.latestOffset(END.to_dict(), ReadAllAvailable())
    reader.commit(LATER.to_dict())
    assert stream.given == [END, LATER]
