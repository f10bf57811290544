"""A query that plans ranges, as micro-batches do, whose tasks read them."""

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Final

from pyspark_kafka.adapters.kafka_python.record_reader import KafkaPythonRecordReader
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.outcome import ViolationError
from .faults import Fault
from .oracle import LOSSES, Oracle, Stretch
from .world import World

ME: Final = "task"
_COLUMNS: Final = (ALL_COLUMNS, Projection(("value", "offset", "timestamp")))
_PAUSE_MS: Final = 300


class RangeReader:
    """Reads the partitions batch after batch until everything is read."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._progress: dict[TopicPartition, int] = {}
        self._stretches: dict[TopicPartition, Stretch] = {}
        self._reader: KafkaPythonRecordReader | None = None

    def run(self) -> None:
        world = self._world
        while not world.is_done:
            planned = self._plan()
            if not planned and world.calm_since_ms is not None:
                world.is_done = True
            elif world.is_overdue:
                raise ViolationError("stuck", f"{planned[0]} is not read")
            elif planned:
                self._read(planned)
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
                planned += [OffsetRange(name, *each) for each in pairwise(ends)]
        if self._world.decisions.between("driver", 0, 1):
            # The ranges of several partitions take turns, those of one stay in order.
            planned.sort(key=lambda each: (each.from_offset, each.partition))
        return planned

    def _read(self, planned: list[OffsetRange]) -> None:
        """Run a task, which may fail or end; the next batch begins with what it has not read."""
        world = self._world
        reader = self._reader = self._reader or self._new_reader()
        try:
            reader.expect(planned)
            for one in planned:
                self._read_range(reader, one)
                self._progress[one.partition] = one.until_offset
            reader.expect([])
        except PysparkKafkaError as error:
            world.tell(ME, "fails", "", f"{type(error).__name__}: {error}")
            stretch = self._stretches.get(getattr(error, "partition", None) or planned[0].partition)
            self._oracle.check_error(error, stretch)
            if isinstance(error, LOSSES) and stretch and stretch.resumes_at:
                self._progress[error.partition] = stretch.resumes_at[0]
            self._end_task()
            world.scheduler.sleep(_PAUSE_MS)
        else:
            if not world.decisions.between("driver", 0, 3):
                self._end_task()
            if not world.decisions.is_quiet:
                world.scheduler.sleep(world.decisions.between("driver", 100, 3_000))

    def _read_range(self, reader: KafkaPythonRecordReader, one: OffsetRange) -> None:
        world = self._world
        stretch = Stretch(one.partition, one.from_offset, one.from_offset)
        self._stretches[one.partition] = stretch
        columns = _COLUMNS[world.decisions.between("driver", 0, 1)]
        world.tell(ME, "reads", one, None)
        for records in self._each(reader, one, columns):
            offsets = records.column("offset")
            last = offsets[-1].as_py()
            world.tell(ME, "gets", f"{one.partition} from {offsets[0]} to {last}", None)
            if last >= one.until_offset:
                raise ViolationError("beyond the range", f"{last} of {one}")
            self._oracle.check_records(stretch, records, last + 1)
            if slow := world.decisions.has(ME, Fault.SLOW_FUNCTION, 0.3):
                world.scheduler.sleep(slow.between(10, 4_000))
        self._oracle.check_passed(stretch, one.until_offset)

    def _each(
        self, reader: KafkaPythonRecordReader, one: OffsetRange, columns: Projection
    ) -> Iterator:  # type: ignore[type-arg]
        """Yield batches, or fewer of them: a task may not need them all."""
        with closing(reader.read(one, columns)) as batches:  # type: ignore[type-var]
            yield from batches

    def _new_reader(self) -> KafkaPythonRecordReader:
        return KafkaPythonRecordReader(self._world.options)

    def _end_task(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            self._oracle.require_no_sockets("after a reader was closed")
