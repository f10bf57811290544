"""Batch data frames: Spark plans a ``load()`` once, and uses the plan for all its actions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.spark.batch_reader import KafkaBatchReader
from pyspark_kafka.adapters.spark.data_source import KafkaDataSource
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.outcome import ViolationError
from . import model
from .checkpoint import Checkpoint
from .faults import Version
from .losses import losses_of
from .oracle import Oracle
from .tasks import Row, TaskDiedError, first_line, run_tasks
from .use_cases import SimulatedUseCases

if TYPE_CHECKING:
    from .kafka import View
    from .query import Query
    from .world import World

_INJECTED: Final = ("BrokerUnreachableError", "KafkaRequestError", "TaskDiedError")
_CHANGED: Final = (
    "UnknownTopicError",
    "KafkaRequestError",
    "DataLossError",
    "ResolvedOffsetsError",
    "NoOffsetForTimestampError",
    "NoCommittedOffsetError",
)
"""Errors that may come of topics that change while an action runs."""

_FILTERS: Final[Sequence[Sequence[int | None]]] = ([None], [None, None], [0], [0, 1])
"""The filters of the scans of an action: a count, a union with itself, and both with filters."""

_MISMATCHES: Final = ("OffsetsMismatchError", "TimestampsMismatchError")

Expected: TypeAlias = "dict[TopicPartition, model.Extent] | model.RefusedError"


class Frame:
    """A data frame: the source of one ``load()``, with the plan that Spark keeps in it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.use_cases = SimulatedUseCases(world, MemoryMetadataLog(), is_stream=False)
        source: Any = type("Source", (KafkaDataSource,), {"use_cases": self.use_cases})
        self._source = source(world.query.options(is_batch=True))
        self._schema = self._source.schema()
        self._read_info: tuple[DataSourceReader, Sequence[InputPartition]] | None = None
        self.planned: frozenset[TopicPartition] | None = None
        """The partitions of the plan."""

    def push(self, partition: int | None) -> bool:
        """Push a filter on the partition's number; return whether Spark has to apply it, too.

        ``PythonScanBuilder`` replaces the plan of the source, which every scan uses.
        """
        push = getattr(datasource.DataSourceReader, "pushFilters", None)
        if partition is None or push is None or KafkaBatchReader.pushFilters is push:
            return True
        reader: Any = self._source.reader(self._schema)
        left = [*reader.pushFilters([datasource.EqualTo(("partition",), partition)])]
        self._read_info = reader, reader.partitions()
        return bool(left)

    def scan(self) -> list[Row]:
        if self._read_info is None:
            reader = self._source.reader(self._schema)
            partitions = reader.partitions()
            self._read_info = reader, partitions
            self.planned = getattr(partitions[-1].value, "planned", frozenset())
        return run_tasks(self._world, self.use_cases, *self._read_info)


class Analysts:
    """People with data frames, which they use again and again."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.oracle = Oracle(world, Checkpoint())
        world.people = world.scheduler.spawn("people", self._run)

    def _run(self) -> None:
        world = self._world
        topics = world.scheduler.spawn("topics", world.topics.run)
        frames = [Frame(world) for _ in range(world.decisions.between("frames", 1, 2))]
        for _ in range(world.settings.runs):
            number = world.decisions.between("frames", 0, len(frames) - 1)
            self._act(frames[number])
            if world.decisions.between("frames", 0, 5) == 0:
                world.tell("load", "again")
                frames[number] = Frame(world)
            world.scheduler.sleep(world.decisions.between("frames", 1, 500))
        while not topics.is_done:
            world.scheduler.sleep(100)
        world.decisions.is_quiet = True
        world.topics.settle()
        world.tell("end of faults", "")
        for frame in frames:
            self._act(frame)

    def _act(self, frame: Frame) -> None:
        """Run an action with some scans of the data frame, each with a filter or none."""
        world = self._world
        shape = world.decisions.between("frames", 0, 3)
        filters = _FILTERS[shape]
        if world.settings.version is Version.WITHOUT_LIMITS:
            is_left = [True] * len(filters)
        else:
            check = Action(world, frame)
            try:
                is_left = [frame.push(each) for each in filters]
            except PysparkKafkaError as error:
                check.failed(error)
                return
        for partition, is_applied in zip(filters, is_left, strict=True):
            self._scan(frame, partition, is_applied=is_applied)

    def _scan(self, frame: Frame, partition: int | None, *, is_applied: bool) -> None:
        world, query = self._world, self._world.query
        check = Action(world, frame)
        world.tell("scan", "" if partition is None else f"partition {partition}")
        try:
            rows = frame.scan()
        except (PysparkKafkaError, TaskDiedError) as error:
            world.tell("fails", "", f"{type(error).__name__}: {first_line(error)}")
            check.failed(error)
            return
        if partition is not None and is_applied:
            rows = [row for row in rows if row.partition == partition]
        world.tell("rows", "", len(rows))
        check.returned(rows, partition, query)


class Action:
    """The rows that a scan should return, from the topics before and after it."""

    def __init__(self, world: World, frame: Frame) -> None:
        self._world = world
        self._frame = frame
        self._planned = frame.planned
        self._injected = frame.use_cases.calls.injected
        self._reported = len(frame.use_cases.events.losses)
        self._changes = world.changes
        self._before, self._expected = self._look()

    @property
    def _is_exact(self) -> bool:
        return self._changes == self._world.changes

    def failed(self, error: Exception) -> None:
        """Check that an error has a cause."""
        name = type(error).__name__
        if isinstance(error, DataLossError):
            self._world.oracle.check_loss(losses_of(error), failed=self._world.query)
        _, after = self._look()
        refused = [each for each in (self._expected, after) if isinstance(each, Exception)]
        allowed = {name for each in refused for name in each.names}
        allowed |= {*_INJECTED} if self._frame.use_cases.calls.injected > self._injected else set()
        allowed |= {*_CHANGED} if not self._is_exact or self._was_replaced() else set()
        allowed |= {*_MISMATCHES} if not self._is_exact and self._planned is None else set()
        if name not in allowed:
            raise ViolationError("an error without a cause", f"{name}: {error}")

    def returned(self, rows: Sequence[Row], partition: int | None, query: Query) -> None:
        """Check the rows of a scan, to which a filter was applied."""
        kafka, oracle = self._world.kafka, self._world.oracle
        everything = dict.fromkeys({*self._before, *self._look()[0]}, 1 << 62)
        gone = {
            TopicPartition(row.topic, row.partition): 1 << 62
            for row in rows
            if kafka.topic_id(TopicPartition(row.topic, row.partition)) is None
        }
        values = oracle.values(rows, {}, {**everything, **gone})
        found = self._frame.use_cases.events.losses[self._reported :]
        if self._is_exact:
            self._check_exactly(values, partition, query, has_losses=bool(found))
            return
        _, after = self._look()
        if isinstance(self._expected, Exception) or isinstance(after, Exception):
            return
        must = self._values(self._expected, partition) & self._values(after, partition)
        for value in sorted(must - values):
            record = kafka.written[value]
            if not oracle.is_reported(record.partition, record.offset, found):
                raise ViolationError("a batch lacks a record", oracle.name(value))

    def _check_exactly(
        self, values: Collection[bytes], partition: int | None, query: Query, *, has_losses: bool
    ) -> None:
        expected = self._expected
        is_kept = self._planned is not None
        if isinstance(expected, Exception):
            # A task of a kept plan does not ask for what it does not read.
            if expected.name == "UnknownTopicError" and is_kept:
                return
            # Parts of a kept plan report and skip what is gone, also if it is all of a partition.
            if expected.name == "ResolvedOffsetsError" and is_kept and has_losses:
                return
            if expected.name != "DataLossError" or not has_losses:
                raise ViolationError("no error", f"{expected.name} is missing")
            expected = self._extents(query.given(failOnDataLoss="false"))
        if isinstance(expected, Exception):
            return
        must = self._values(expected, partition)
        if must != values:
            lacking, extra = sorted(must - {*values}), sorted({*values} - must)
            name = self._world.oracle.name
            kind = "a batch lacks a record" if lacking else "a batch has a record of others"
            raise ViolationError(kind, name((lacking or extra)[0]))

    def _values(
        self, extents: dict[TopicPartition, model.Extent], partition: int | None
    ) -> frozenset[bytes]:
        chosen = {
            part: extent
            for part, extent in extents.items()
            if partition is None or part.partition == partition
        }
        return model.values_in(self._world.query, self._world.kafka, chosen)

    def _look(self) -> tuple[View, Expected]:
        query = self._world.query
        view = self._world.kafka.view(committed_only=query.committed_only)
        return view, self._extents(query)

    def _extents(self, query: Query) -> Expected:
        kafka = self._world.kafka
        view = kafka.view(committed_only=query.committed_only)
        try:
            return model.batch_extents(query, kafka, view, self._planned)
        except model.RefusedError as refused:
            return refused

    def _was_replaced(self) -> bool:
        """Return whether topics of the plan were created again since then."""
        oracle = self._world.oracle
        return any(map(oracle.was_replaced, self._planned or ()))
