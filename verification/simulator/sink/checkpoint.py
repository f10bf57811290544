"""A streaming query's checkpoint, and its micro-batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.checkpoints.checkpoint_log import COMMITTED, read_batch_end
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

SOURCE: Final = "in"

_ends_of = lru_cache(1 << 12)(read_batch_end)


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, and the offsets between which it reads."""

    number: int
    start: PartitionOffsets
    end: PartitionOffsets

    def __str__(self) -> str:
        read = [f"{p.partition}: {self.start.get(p, 0)}-{end}" for p, end in self.end.items()]
        return f"batch {self.number} ({', '.join(read)})"

    def rows(self, task: int, tasks: int, tag: str) -> list[bytes]:
        """Return the outputs of a task."""
        return [
            value_of(tag, partition.partition, offset)
            for partition, end in self.end.items()
            if partition.partition % tasks == task
            for offset in range(self.start.get(partition, 0), end)
        ]


def value_of(tag: str, partition: int, offset: int) -> bytes:
    """Return the output of an input record in the query with a checkpoint."""
    return b"%s%d.%d" % (tag.encode(), partition, offset)


def part(number: int) -> TopicPartition:
    """Return a partition of the input."""
    return TopicPartition(SOURCE, number)


def between(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> Iterator[tuple[int, int]]:
    """Yield the partitions and offsets of the records in between."""
    for partition, last in end.items():
        for offset in range(start.get(partition, 0), last):
            yield partition.partition, offset


@dataclass
class Checkpoint:
    """A checkpoint; its query has to write the records from ``first`` on, up to ``last``."""

    tag: str
    query_id: str
    place: str
    """Where its sink's log is."""
    prefix: str
    """The query's ``transactionalIdPrefix``."""
    initial: PartitionOffsets = field(default_factory=PartitionOffsets)
    first: PartitionOffsets = field(default_factory=PartitionOffsets)
    """Where another checkpoint's query has ended, from which this one was made."""
    last: PartitionOffsets | None = None
    """Where another checkpoint's query continues."""
    offsets: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    commits: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    sinks: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    backups: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)

    def copy(self, tag: str, prefix: str | None = None) -> "Checkpoint":
        """Return a copy, whose query continues after the planned batch."""
        planned = self.planned()
        first = planned.end if planned else self.first
        copied = Checkpoint(
            tag, self.query_id, tag, prefix or self.prefix, self.initial, first, self.last
        )
        copied.overwrite(self, with_sinks=True)
        return copied

    def planned(self) -> Batch | None:
        latest = self.offsets.latest()
        return None if latest is None else self._batch(*latest)

    def _batch(self, number: int, content: bytes) -> Batch:
        before = self.offsets.get(number - 1)
        start = self.initial if before is None else _ends_of(before)
        return Batch(number, start, _ends_of(content))

    def done(self) -> PartitionOffsets:
        """Return where the last committed batch ends."""
        numbers = self.commits.batch_ids()
        content = self.offsets.get(numbers[-1]) if numbers else None
        return self.initial if content is None else _ends_of(content)

    def is_done(self, end: Mapping[TopicPartition, int]) -> bool:
        """Return whether all records are written up to an end, or to where another one begins."""
        done, last = self.done(), self.last
        return all(
            done.get(partition, 0) >= (offset if last is None else last.get(partition, 0))
            for partition, offset in end.items()
        )

    def newest_entry(self) -> tuple[int, SinkLogEntry]:
        latest = self.sinks.latest()
        if latest is None:
            return -1, SinkLogEntry(-1, BatchState.COMMITTED)
        return latest[0], SinkLogEntry.from_bytes(latest[1])

    def values(self, number: int) -> list[bytes]:
        content = self.offsets.get(number)
        return [] if content is None else self._batch(number, content).rows(0, 1, self.tag)

    def overwrite(self, other: "Checkpoint", *, with_sinks: bool) -> None:
        _overwrite(self.offsets, other.offsets)
        _overwrite(self.commits, other.commits)
        _overwrite(self.backups, other.backups)
        if with_sinks:
            _overwrite(self.sinks, other.sinks)

    def delete_sink_log(self) -> None:
        _overwrite(self.sinks, MemoryMetadataLog())

    def is_committed(self, number: int) -> bool:
        return self.commits.get(number) is not None

    def commit(self, number: int, retained: int) -> bool:
        """Let Spark note that a batch is committed; it keeps the files of some batches."""
        if not self.commits.add(number, COMMITTED):
            return False
        self.offsets.purge(number + 1 - retained)
        self.commits.purge(number + 1 - retained)
        return True


def _overwrite(log: MemoryMetadataLog, other: MemoryMetadataLog) -> None:
    for number in log.batch_ids():
        log.remove(number)
    for number in other.batch_ids():
        log.add(number, other.get(number) or b"")
