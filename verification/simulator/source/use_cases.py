"""The use cases of a driver and of its tasks, over simulated ports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
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
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.reading.data_loss import legacy_partition_offset_changed
from pyspark_kafka.domain.security.policy import DEFAULT_POLICY, OptionPolicy
from pyspark_kafka.ports.checkpoints import MetadataLog

from .calls import Calls
from .events import SimulatedEvents
from .ports import SimulatedClock, SimulatedFetcher, SimulatedLog, SimulatedReader

if TYPE_CHECKING:
    from pyspark_kafka.application.use_cases import DriverUseCases, TaskUseCases
    from pyspark_kafka.domain.reading.ranges import OffsetRange as Range

    from .world import World

T = TypeVar("T")


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
