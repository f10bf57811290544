"""The ports of the source, whose every call takes time and may fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, TypeVar, cast

import pyarrow as pa

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher, MemoryRecordReader
from pyspark_kafka.application.reading.batch_binding import BatchBinding
from pyspark_kafka.application.reading.kafka_source import KafkaSource, verified_start
from pyspark_kafka.application.reading.offsets import InitialOffsets, KafkaOffsetReader
from pyspark_kafka.application.reading.planner import KafkaBatch, RangePlanner, TaskPlanner
from pyspark_kafka.application.reading.range_read import RangeRead
from pyspark_kafka.application.reading.stream import (
    Admission,
    KafkaMicroBatchStream,
    ProgressReports,
    RecordSizes,
)
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    MetadataLogError,
    PysparkKafkaError,
)
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.data_loss import legacy_partition_offset_changed
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.policy import DEFAULT_POLICY, OptionPolicy
from pyspark_kafka.domain.subscription import Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.checkpoints import MetadataLog
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.ports.reading import OffsetFetcher, RecordReader

from ..engine.decisions import Fired
from ..engine.scheduler import Killed
from .events import SimulatedEvents
from .faults import Fault, Trigger

if TYPE_CHECKING:
    from pyspark_kafka.application.use_cases import DriverUseCases, TaskUseCases
    from pyspark_kafka.domain.reading.ranges import OffsetRange as Range

    from .world import World

T = TypeVar("T")

TIMEOUT_MS: Final = 30_000
READS: Final = (Fault.SLOW, Fault.DRIVER_DIES, Fault.LOST_REQUEST)
_KAFKA: Final = (*READS, Fault.REFUSED)
WRITES: Final = (*READS, Fault.LOST_ANSWER)


class StorageError(MetadataLogError):
    """The storage did not answer in time."""


class Calls:
    """Lets the calls of one driver and of its tasks take effect, or not."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.die: Callable[[Fired], None] = lambda _: world.scheduler.kill_current()
        self.injected = 0
        """How many calls failed."""

    def __call__(
        self,
        call: str,
        subject: object,
        effect: Callable[[], T],
        kinds: Sequence[Fault] = READS,
        error: Callable[[], Exception] = lambda: BrokerUnreachableError("memory", 30.0),
    ) -> T:
        world = self.world
        scheduler, current = world.scheduler, world.scheduler.current
        assert current is not None
        fired = world.decisions.one_of(current.name, call, kinds)
        scheduler.sleep(world.decisions.between(current.name, 1, 20))
        if fired is None:
            return self._effect(call, subject, effect)
        world.tell(call, subject, fired.kind.value)
        late_ms = fired.between(10, TIMEOUT_MS)
        if fired.kind is Fault.DRIVER_DIES:
            if fired.between(0, 1) and kinds is WRITES:
                self._effect(call, subject, effect)
            self.die(fired)
            if scheduler.is_killed:
                raise Killed
        elif fired.kind is Fault.REFUSED:
            self.injected += 1
            raise KafkaRequestError("a request", "the broker is busy")
        elif fired.kind in (Fault.SLOW, Fault.LOST_REQUEST, Fault.LOST_ANSWER):
            if fired.kind is Fault.LOST_ANSWER:
                self._effect(call, subject, effect)
            scheduler.sleep(fired.between(1, 1_000) if late_ms % 2 else late_ms)
            if fired.kind is not Fault.SLOW:
                self.injected += 1
                raise error()
        return self._effect(call, subject, effect)

    def _effect(self, call: str, subject: object, effect: Callable[[], T]) -> T:
        try:
            result = effect()
        except PysparkKafkaError as error:
            self.world.tell(call, subject, type(error).__name__)
            raise
        self.world.tell(call, subject, _in_order(result))
        return result


def _in_order(result: object) -> object:
    """Return an answer in an order that is the same in each process: that of a set is not."""
    if isinstance(result, frozenset):
        return sorted(result)
    return dict(sorted(result.items())) if type(result) is dict else result


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
            self._stale = 0
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
        return self._calls(call, subject, effect, _KAFKA)


class SimulatedReader(RecordReader):
    """Reads from the cluster; each fetch takes time."""

    def __init__(self, calls: Calls, options: SourceOptions) -> None:
        self._calls = calls
        self._reader = MemoryRecordReader(calls.world.kafka.cluster, options)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        found = self._reader.read(offset_range, projection)
        while True:
            batch = self._calls("fetch", offset_range, lambda: next(found, None), _KAFKA)
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


class SimulatedUseCases:
    """The use cases of one driver and of its tasks: wired as in ``bootstrap.container``."""

    def __init__(self, world: World, metadata: MemoryMetadataLog, *, is_stream: bool) -> None:
        self.calls = Calls(world)
        self.clock = SimulatedClock(world)
        self.events = SimulatedEvents(world)
        self._metadata = metadata
        self._is_stream = is_stream
        self._number = len(world.use_cases)
        world.use_cases.append(self)
        _LIVE[:] = world.use_cases

    def __reduce__(self) -> tuple[Callable[[int], SimulatedUseCases], tuple[int]]:
        return _live, (self._number,)

    def option_policy(self) -> OptionPolicy:
        return DEFAULT_POLICY

    def check_client(self, _: object) -> None:
        """Do nothing: every option is one of the memory's."""

    @contextmanager
    def driver(self, options: SourceOptions) -> Iterator[DriverUseCases]:
        offset_reader, task_planner = self._offset_reader(options), self._task_planner(options)
        made = SimpleNamespace(
            batch=lambda: KafkaBatch(offset_reader, options, task_planner),
            micro_batch_stream=lambda: self._stream(options, offset_reader),
        )
        yield cast("DriverUseCases", made)

    @contextmanager
    def task(self, options: SourceOptions) -> Iterator[TaskUseCases]:
        fetcher = SimulatedFetcher(self.calls, options, may_lag=False)
        offset_reader = KafkaOffsetReader(fetcher, options, self.clock, self.events)
        reader = SimulatedReader(self.calls, options)
        made = SimpleNamespace(
            batch_binding=lambda: BatchBinding(offset_reader, options, self.events),
            range_read=lambda: RangeRead(reader, lambda: fetcher, options, self.events),
        )
        yield cast("TaskUseCases", made)

    def kafka_source(
        self, options: SourceOptions, load: Callable[[Sequence[Range]], T]
    ) -> KafkaSource[T]:
        """Return the source of ``MicroBatchExecution``."""
        offset_reader = self._offset_reader(options)
        planner = RangePlanner(offset_reader, options, self.events, legacy_partition_offset_changed)
        initial = InitialOffsets(
            self._metadata_log(options),
            self.events,
            lambda: verified_start(offset_reader, options, planner),
        )
        stream = self._stream(options, offset_reader, planner, initial)
        return KafkaSource(stream, offset_reader, load)

    def range_read(self, options: SourceOptions) -> RangeRead:
        fetcher = SimulatedFetcher(self.calls, options, may_lag=False)
        reader = SimulatedReader(self.calls, options)
        return RangeRead(reader, lambda: fetcher, options, self.events)

    def _stream(
        self,
        options: SourceOptions,
        offset_reader: KafkaOffsetReader,
        planner: RangePlanner | None = None,
        initial: InitialOffsets | None = None,
    ) -> KafkaMicroBatchStream:
        sizes = RecordSizes(lambda: SimulatedReader(self.calls, options))
        progress = ProgressReports(
            lambda: SimulatedFetcher(self.calls, options, may_lag=False),
            options.commit_offsets_to_group,
            self.clock,
            self.events,
            lambda _: nullcontext(),
        )
        return KafkaMicroBatchStream(
            offset_reader,
            Admission(offset_reader, self.clock, sizes),
            planner=planner or RangePlanner(offset_reader, options, self.events),
            initial_offsets=initial
            or InitialOffsets(
                self._metadata_log(options), self.events, offset_reader.start_of_stream
            ),
            progress=progress,
            task_planner=self._task_planner(options),
            options=options,
        )

    def _offset_reader(self, options: SourceOptions) -> KafkaOffsetReader:
        fetcher = SimulatedFetcher(self.calls, options, may_lag=self._is_stream)
        return KafkaOffsetReader(fetcher, options, self.clock, self.events)

    def _task_planner(self, options: SourceOptions) -> TaskPlanner:
        return TaskPlanner(options, self.events)

    def _metadata_log(self, options: SourceOptions) -> MetadataLog | None:
        if options.metadata_path is None:
            return None
        return SimulatedLog(self.calls, self._metadata, "sources/0")


_LIVE: Final[list[SimulatedUseCases]] = []
"""Those of the schedule that runs: what is pickled finds them again."""


def _live(number: int) -> SimulatedUseCases:
    return _LIVE[number]
