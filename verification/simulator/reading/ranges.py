"""A query that plans ranges, as micro-batches do, whose tasks read them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa

from pyspark_kafka.adapters.kafka_python.record_reader import KafkaPythonRecordReader
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.application.reading.range_read import RangeRead
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.reading.data_loss import DataLoss
from pyspark_kafka.domain.reading.errors import DataLossError, OffsetOutOfRangeError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import RecordReader

from ..engine.outcome import ViolationError
from .faults import Fault
from .offsets import SimulatedOffsets
from .oracle import LOSSES, Oracle, Stretch
from .world import World

ME: Final = "task"
_COLUMNS: Final = (ALL_COLUMNS, Projection(("value", "offset", "timestamp")))
_PAUSE_MS: Final = 300
_NO_RANGE: Final = OffsetRange(TopicPartition("none", 0), 0, 0)


class CheckedReader(RecordReader):
    """The client's reader, of which everything that ``RangeRead`` sees is checked."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._reader = KafkaPythonRecordReader(world.options)
        self._whole = _NO_RANGE
        self._error: PysparkKafkaError | None = None
        self._reports = 0
        self.stretch: Stretch | None = None
        """The last records that were read of the range."""

        self.events = MemorySourceEvents()

    def begin(self, whole: OffsetRange) -> None:
        """Note which range is read next; it may take several calls of ``read``."""
        self._whole, self.stretch, self._error = whole, None, None

    def end(self) -> None:
        """Check that the range was read to its end, but for what was reported."""
        stretch, error, until = self.stretch, self._error, self._whole.until_offset
        if stretch is None:
            raise ViolationError("a range is not read", str(self._whole))
        if error is None:
            return
        self._require_report(stretch, until)
        is_shorter = isinstance(error, OffsetOutOfRangeError) and error.offset >= error.latest
        starts = [max(self._whole.from_offset, each) for each in stretch.resumes_at or ()]
        if starts and max(starts) < until and not is_shorter:
            raise ViolationError("the rest of a range is not read", f"{self._whole} from {starts}")

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        name, start = offset_range.partition, offset_range.from_offset
        if self.stretch is not None:
            self._require_report(self.stretch, start)
            self._oracle.check_resumed(self.stretch, start, self._whole.from_offset)
        stretch = self.stretch = Stretch(name, start, start)
        self._error, self._reports = None, len(self._losses)
        self._world.tell(ME, "reads", offset_range, None)
        try:
            for records in self._reader.read(offset_range, projection):
                self._check(stretch, records, offset_range.until_offset)
                yield records
        except PysparkKafkaError as error:
            self._error = error
            self._world.tell(ME, "fails", "", f"{type(error).__name__}: {error}")
            self._oracle.check_error(error, stretch)
            raise
        self._oracle.check_passed(stretch, offset_range.until_offset)

    def _check(self, stretch: Stretch, records: pa.RecordBatch, until: int) -> None:
        offsets = records.column("offset")
        last = offsets[-1].as_py()
        self._world.tell(ME, "gets", f"{stretch.name} from {offsets[0]} to {last}", None)
        if last >= until:
            raise ViolationError("beyond the range", f"{last} of {stretch.name} until {until}")
        self._oracle.check_records(stretch, records, last + 1)
        self._oracle.check_held(self._reader)

    @property
    def _losses(self) -> Sequence[tuple[object, ...]]:
        return self.events.named("data_lost")

    def _require_report(self, stretch: Stretch, resumed_at: int) -> None:
        """Check that the loss was reported after which a range is read on."""
        losses = self._losses[self._reports :]
        said = f"[{stretch.position}, {resumed_at})"
        is_exact = not isinstance(self._error, OffsetOutOfRangeError) or said in str(losses)
        if not losses or not is_exact:
            raise ViolationError("a loss is not reported", f"{said} of {stretch.name}: {losses}")

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        self._reader.expect(ranges)

    def take_skipped(self) -> Iterable[DataLoss]:
        return self._reader.take_skipped()

    def close(self) -> None:
        self._reader.close()


class RangeReader:
    """Reads the partitions batch after batch until everything is read."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._progress: dict[TopicPartition, int] = {}
        self._reader: CheckedReader | None = None
        self._is_refused = False

    def run(self) -> None:
        world = self._world
        while not world.is_done:
            planned = self._plan()
            if not planned and world.calm_since_ms is not None:
                world.is_done = world.on_complete()
            elif world.is_overdue:
                raise ViolationError("stuck", f"{planned[0]} is not read")
            elif planned:
                was_calm = world.calm_since_ms is not None
                self._read(planned)
                if not was_calm and world.calm_since_ms is not None:
                    # A plan that was made before may name partitions that are gone.
                    world.calm_since_ms = world.now_ms
            else:
                world.scheduler.sleep(_PAUSE_MS)
        self._end_task()

    def _plan(self) -> list[OffsetRange]:
        """Return what is new in each partition, some of it in parts."""
        planned: list[OffsetRange] = []
        for partition in self._world.cluster.all_partitions():
            name = partition.name
            start, end = self._progress.get(name, 0), self._world.last(name) or 0
            if end < start:
                # A driver reports that the log became shorter.
                start = self._progress[name] = 0
            start = max(start, partition.log.start)
            if start < end:
                middle = max(start, self._world.decisions.between("driver", start - end, end))
                ends = sorted({start, middle, end})
                is_old = not self._world.decisions.between("driver", 0, 3)
                planned += [OffsetRange(name, *each, is_old) for each in pairwise(ends)]
        if self._world.decisions.between("driver", 0, 1):
            # The ranges of several partitions take turns, those of one stay in order.
            planned.sort(key=lambda each: (each.from_offset, each.partition))
        return planned

    def _read(self, planned: list[OffsetRange]) -> None:
        """Run a task, which may fail or end; the next batch begins with what it has not read."""
        world = self._world
        reader = self._reader = self._reader or CheckedReader(world, self._oracle)
        try:
            self._read_all(reader, planned)
        except PysparkKafkaError as error:
            self._accept(reader, error)
            is_refused, self._is_refused = self._is_refused, isinstance(error, AuthenticationError)
            if is_refused or not self._is_refused:
                # Another attempt of the task has the same reader, which may not log in again.
                self._is_refused = False
                self._end_task()
            world.scheduler.sleep(_PAUSE_MS)
        else:
            if not world.decisions.between("driver", 0, 3):
                self._end_task()
            if not world.decisions.is_quiet:
                world.scheduler.sleep(world.decisions.between("driver", 100, 3_000))

    def _read_all(self, reader: CheckedReader, planned: list[OffsetRange]) -> None:
        world = self._world
        reader.events = MemorySourceEvents()
        read = RangeRead(reader, lambda: SimulatedOffsets(world), world.options, reader.events)
        columns = _COLUMNS[world.decisions.between("driver", 0, 1)]
        ranges = iter(planned)
        for _, batches in read.read_all(planned, columns):
            one = next(ranges)
            reader.begin(one)
            for _ in batches:
                if slow := world.decisions.has(ME, Fault.SLOW_FUNCTION, 0.3):
                    world.scheduler.sleep(slow.between(10, 4_000))
            reader.end()
            self._progress[one.partition] = one.until_offset

    def _accept(self, reader: CheckedReader, error: PysparkKafkaError) -> None:
        """Continue after a loss that has failed the query: its user accepts it."""
        stretch = reader.stretch
        if isinstance(error, (DataLossError, *LOSSES)) and stretch and stretch.resumes_at:
            self._progress[stretch.name] = stretch.resumes_at[0]

    def _end_task(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            self._oracle.require_no_sockets("after a reader was closed")
