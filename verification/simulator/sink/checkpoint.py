"""A streaming query's checkpoint, and its micro-batches."""

import json
import sys
from dataclasses import dataclass, field
from typing import Self

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, and the range of records that it reads."""

    number: int
    start: int
    end: int

    @classmethod
    def of(cls, entry: tuple[int, bytes]) -> Self:
        content = json.loads(entry[1])
        return cls(entry[0], content["start"], content["end"])

    def to_bytes(self, now_ms: int) -> bytes:
        content = {"batchTimestampMs": now_ms, "start": self.start, "end": self.end}
        return json.dumps(content).encode()

    def rows(self, partition: int, partitions: int, tag: str) -> list[bytes]:
        numbers = range(self.start, self.end)
        return [value_of(tag, each) for each in numbers if each % partitions == partition]


def value_of(tag: str, number: int) -> bytes:
    """Return the output of an input record in the query with a checkpoint."""
    return f"{tag}{number}".encode()


@dataclass
class Checkpoint:
    """A checkpoint; its query has to write the records of ``[first, last)``."""

    tag: str
    query_id: str
    place: str
    """Where its sink's log is."""
    first: int = 0
    last: int = sys.maxsize
    offsets: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    commits: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    sinks: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)

    def copy(self, tag: str) -> "Checkpoint":
        planned = self.planned()
        copied = Checkpoint(
            tag, self.query_id, tag, planned.end if planned else self.first, self.last
        )
        copied.overwrite(self, with_sinks=True)
        return copied

    def planned(self) -> Batch | None:
        latest = self.offsets.latest()
        return None if latest is None else Batch.of(latest)

    def newest_entry(self) -> tuple[int, SinkLogEntry]:
        latest = self.sinks.latest()
        if latest is None:
            return -1, SinkLogEntry(-1, BatchState.COMMITTED)
        return latest[0], SinkLogEntry.from_bytes(latest[1])

    def values(self, number: int) -> list[bytes]:
        content = self.offsets.get(number)
        return [] if content is None else Batch.of((number, content)).rows(0, 1, self.tag)

    def overwrite(self, other: Self, *, with_sinks: bool) -> None:
        _overwrite(self.offsets, other.offsets)
        _overwrite(self.commits, other.commits)
        if with_sinks:
            _overwrite(self.sinks, other.sinks)

    def delete_sink_log(self) -> None:
        _overwrite(self.sinks, MemoryMetadataLog())

    def is_committed(self, batch: Batch) -> bool:
        return self.commits.get(batch.number) is not None


def _overwrite(log: MemoryMetadataLog, other: MemoryMetadataLog) -> None:
    for number in log.batch_ids():
        log.remove(number)
    for number in other.batch_ids():
        log.add(number, other.get(number) or b"")
