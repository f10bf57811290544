"""The ports of the source, whose calls take time and may fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher, MemoryRecordReader
from pyspark_kafka.domain.errors import (
    MetadataLogError,
)
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.subscription import Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.checkpoints import MetadataLog
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.ports.reading import OffsetFetcher, RecordReader

from .calls import KAFKA, READS, WRITES, Calls, StorageError
from .faults import Fault, Trigger

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")


class SimulatedFetcher(OffsetFetcher):
    """Fetches offsets of the cluster; brokers that lag answer less often than it asks."""

    def __init__(self, calls: Calls, options: SourceOptions, *, may_lag: bool) -> None:
        self._calls = calls
        self._fetcher = MemoryOffsetFetcher(calls.world.kafka.cluster, options)
        self._most_stale = options.fetch_attempts - 1 if may_lag else 0
        self._stale = 0

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        return self._call("partitions", "", lambda: self._fetcher.partitions(subscription))

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._call("earliest", "", lambda: self._fetcher.earliest(partitions))

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        found = self._call("latest", "", lambda: self._fetcher.latest(partitions))
        world = self._calls.world
        current = world.scheduler.current
        assert current is not None
        fired = world.decisions.has(f"{current.name} lags", Fault.STALE, 0.2)
        if not (fired and found and self._is_noticed()) or self._stale >= self._most_stale:
            given = dict(world.query.start.each)
            is_short = any(given.get(part, 0) > end for part, end in found.items())
            # A start beyond the end is asked for a few times, whoever answers.
            self._stale = self._stale + 1 if is_short else 0
            return found
        self._stale += 1
        world.stale += 1
        lagging = sorted(found)[fired.between(0, len(found) - 1)]
        world.tell("latest", lagging, fired.kind.value)
        if fired.between(0, 1):
            return found.restrict(found.keys() - {lagging})
        [earliest] = self._fetcher.earliest([lagging]).values()
        return found.merge({lagging: max(earliest, found[lagging] - fired.between(1, 5))})

    def _is_noticed(self) -> bool:
        """Return whether the source can know that an answer is old, and asks again.

        It cannot if a deleted partition is missing as well, or if it does not know the last end.
        """
        world = self._calls.world
        is_wrapped = world.settings.trigger is Trigger.WRAPPED_AVAILABLE_NOW
        return not world.kafka.deleted and not is_wrapped

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return self._call("for_timestamps", "", lambda: self._fetcher.for_timestamps(timestamps))

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return self._call("committed", "", lambda: self._fetcher.committed(group_id, partitions))

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        def commit() -> None:
            self._calls.world.oracle.group_commits(offsets)
            self._fetcher.commit(group_id, offsets)

        self._calls("commit_group", offsets, commit, WRITES)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _call(self, call: str, subject: object, effect: Callable[[], T]) -> T:
        return self._calls(call, subject, effect, KAFKA)


class SimulatedReader(RecordReader):
    """Reads from the cluster; each fetch takes time."""

    def __init__(self, calls: Calls, options: SourceOptions) -> None:
        self._calls = calls
        self._reader = MemoryRecordReader(calls.world.kafka.cluster, options)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        found = self._reader.read(offset_range, projection)
        while True:
            batch = self._calls("fetch", offset_range, lambda: next(found, None), KAFKA)
            if batch is None:
                return
            yield batch

    def close(self) -> None:
        """Do nothing: there is no connection."""


class SimulatedLog(MetadataLog):
    """A log in a storage that may fail; ``added`` is called with what is stored."""

    def __init__(
        self,
        calls: Calls,
        log: MemoryMetadataLog,
        name: str,
        added: Callable[[int, bytes], None] = lambda *_: None,
    ) -> None:
        self._calls = calls
        self._log = log
        self._name = name
        self._added = added

    def __str__(self) -> str:
        return self._name

    def add(self, batch_id: int, metadata: bytes) -> bool:
        def add() -> bool:
            is_added = self._log.add(batch_id, metadata)
            if is_added:
                self._added(batch_id, metadata)
            return is_added

        return self._calls("add", f"{self._name}/{batch_id}", add, WRITES, self._error)

    def get(self, batch_id: int) -> bytes | None:
        return self._read("get", lambda: self._log.get(batch_id))

    def latest(self) -> tuple[int, bytes] | None:
        return self._read("get", self._log.latest)

    def batch_ids(self) -> Sequence[int]:
        return self._read("get", self._log.batch_ids)

    def purge(self, threshold: int) -> None:
        """Keep everything: a schedule has few batches."""

    def _read(self, call: str, effect: Callable[[], T]) -> T:
        return self._calls(call, self._name, effect, READS, self._error)

    def _error(self) -> MetadataLogError:
        return StorageError(self._name, "The storage did not answer")


class SimulatedClock(Clock):
    """The virtual time, and when it was last read."""

    def __init__(self, world: World) -> None:
        self._scheduler = world.scheduler
        self.read_ms = 0

    def now_ms(self) -> int:
        self.read_ms = self._scheduler.now_ms
        return self.read_ms

    def sleep_ms(self, milliseconds: int) -> None:
        self._scheduler.sleep(milliseconds)
