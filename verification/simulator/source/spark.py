"""Spark's driver of a micro-batch query, with the order of calls of ``MicroBatchExecution``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark_kafka.adapters.spark.stream_reader import (
    KafkaStreamReader,
    MicroBatchReader,
    OlderStreamReader,
)
from pyspark_kafka.application.checkpoints.logs import ConcurrentUpdateError
from pyspark_kafka.application.reading.micro_batch_execution import MicroBatchExecution
from pyspark_kafka.domain.checkpoints.checkpoint_log import read_batch_end
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange

from ..engine.decisions import Fired
from ..engine.scheduler import Killed
from .calls import WRITES
from .checkpoint import Checkpoint, Json, written
from .faults import Fault, Trigger, Version
from .plan import Plan
from .ports import SimulatedLog
from .tasks import Row, TaskDiedError, first_line, rows_of, run_tasks
from .use_cases import SimulatedUseCases

if TYPE_CHECKING:
    from .query import Query
    from .world import World

T = TypeVar("T")

IDLE_MS: Final = 300
"""How long a query waits that found nothing to do."""


@lru_cache(64)
def _parsed(query: Query) -> SourceOptions:
    return parse_source_options(query.options(is_batch=False), QueryKind.STREAM)


class SparkError(Exception):
    """An error of Spark's own."""


class Driver:
    """One run of the query: until it fails, dies, has nothing to do, or did enough triggers."""

    def __init__(
        self,
        world: World,
        number: int,
        query: Query,
        checkpoint: Checkpoint,
        triggers: int,
        *,
        until_done: bool,
    ) -> None:
        self.world = world
        self.query = query
        self.checkpoint = checkpoint
        self.error: BaseException | None = None
        self.is_over = False
        """Whether people think so."""
        self._triggers = triggers
        self._until_done = until_done
        self.use_cases = SimulatedUseCases(world, checkpoint.metadata, is_stream=True)
        self.plan = Plan(world, query, checkpoint, self.use_cases)
        self.use_cases.calls.die = self._die
        engine = {
            Version.WITHOUT_LIMITS: lambda: Engine(self, _OlderSource),
            Version.WITH_LIMITS: lambda: Engine(self, _Source),
            Version.OWN_ENGINE: lambda: _OwnEngine(self),
        }
        self.options = _parsed(query)
        self._engine: Any = engine[world.settings.version]()
        self.process = world.scheduler.spawn(f"driver {number}", self._run)

    def call(self, name: str, effect: Callable[[], T]) -> T:
        """Call the reader in the Python process of the driver."""
        fired = self._decide(name)
        if fired is not None:
            self._die(fired)
        return effect()

    def _decide(self, call: str) -> Fired | None:
        decisions, scheduler = self.world.decisions, self.world.scheduler
        scheduler.sleep(decisions.between(self.process.name, 0, 5))
        return decisions.one_of(self.process.name, call, (Fault.DRIVER_DIES,))

    def log(self, name: str, batch_id: int, add: Callable[[], bool]) -> None:
        """Write a file of the checkpoint; only the first writer of a file succeeds."""
        is_added = self.use_cases.calls(
            name, batch_id, add, WRITES, lambda: SparkError("the storage did not answer")
        )
        if not is_added:
            raise ConcurrentUpdateError(
                SimulatedLog(self.use_cases.calls, self.checkpoint.engine_offsets, name), batch_id
            )

    def _run(self) -> None:
        trigger = self.world.settings.trigger
        try:
            self._engine.begin()
            for _ in range(self._triggers):
                is_new = self._engine.trigger()
                if trigger is Trigger.ONCE:
                    break
                if not is_new:
                    is_done = self._until_done and self.plan.is_done()
                    if is_done or trigger is not Trigger.PROCESSING_TIME:
                        break
                    self.world.scheduler.sleep(IDLE_MS)
            self._engine.stop()
        except (SparkError, PysparkKafkaError, TaskDiedError) as error:
            self.error = error
            self.world.tell("fails", "", f"{type(error).__name__}: {first_line(error)}")
        self.is_over = True
        self.world.notify()

    def _die(self, fired: Fired) -> None:
        """Die, or only seem to: people start another driver, and this one wakes up."""
        world = self.world
        self.is_over = True
        world.notify()
        if world.decisions.has(f"{self.process.name} wakes", Fault.TWO_DRIVERS, 0.6):
            world.tell("stands still", "")
            world.scheduler.sleep(fired.between(10, 5_000))
            return
        world.tell("dies", "")
        world.scheduler.kill_current()
        raise Killed


class _Source:
    """A source of Spark 4.2 and newer: the trigger is known by the limit."""

    made = KafkaStreamReader

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        use_cases: Any = driver.use_cases
        self.reader: MicroBatchReader = self.made(
            use_cases, driver.options, driver.options.projection
        )
        self._limit: Any = None

    def prepare(self, trigger: Trigger) -> None:
        reader: Any = self.reader
        if trigger is Trigger.AVAILABLE_NOW:
            self.driver.call("prepare", reader.prepareForTriggerAvailableNow)
            self.driver.plan.stops_at_first_latest = True
        if trigger is Trigger.ONCE:
            from pyspark.sql.streaming.datasource import ReadAllAvailable

            self._limit = ReadAllAvailable()
        else:
            self._limit = self.driver.call("limit", reader.getDefaultReadLimit)

    def latest(self, start: Json | None) -> Json:
        reader: Any = self.reader
        if start is None:
            start = self.initial()
        plan, is_all = self.driver.plan, self.driver.world.settings.trigger is Trigger.ONCE
        with plan.latest(start, is_all=is_all) as returned:
            end: Json = self.driver.call(
                "latestOffset", lambda: reader.latestOffset(_copy(start), self._limit)
            )
            returned(end)
        return _copy(end)

    def initial(self) -> Json:
        with self.driver.plan.initial() as returned:
            found = self.driver.call("initialOffset", self.reader.initialOffset)
            returned(found)
        return _copy(found)

    def see(self, end: Json) -> None:
        """Inform a source where the query continues (``AcceptsLatestSeenOffset``)."""
        self.driver.call("plan", lambda: self.reader.partitions(_copy(end), _copy(end)))


class _OlderSource(_Source):
    """A source of Spark 4.0 and 4.1: it gets neither a start nor a limit."""

    made = OlderStreamReader  # type: ignore[assignment]

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._wrapped: Json | None = None
        self._start: Json | None = None

    def prepare(self, trigger: Trigger) -> None:
        if trigger is Trigger.WRAPPED_AVAILABLE_NOW:
            self._wrapped = self._latest()

    def latest(self, start: Json | None) -> Json:  # noqa: ARG002
        if self._wrapped is not None:
            return self._wrapped
        return self._latest()

    def _latest(self) -> Json:
        reader: Any = self.reader
        with self.driver.plan.latest(self._start, is_all=False) as returned:
            end: Json = self.driver.call("latestOffset", reader.latestOffset)
            returned(end)
        self._start = _copy(end)
        return _copy(end)

    def see(self, end: Json) -> None:
        super().see(end)
        self._start = end


class Engine:
    """``MicroBatchExecution`` of Spark."""

    def __init__(self, driver: Driver, source: Callable[[Driver], _Source]) -> None:
        self._driver = driver
        self._checkpoint = driver.checkpoint
        self._source = source(driver)
        self._batch_id = 0
        self._start: Json | None = None
        self._end: Json | None = None
        """The end of a batch that was logged and has not run."""

    def begin(self) -> None:
        """Make the plan, and continue where the logs end."""
        self._source.prepare(self._driver.world.settings.trigger)
        checkpoint = self._checkpoint
        planned = checkpoint.planned
        if planned < 0:
            return
        self._source.see(checkpoint.offsets[planned])
        if planned in checkpoint.commits:
            self._batch_id, self._start = planned + 1, checkpoint.offsets[planned]
            return
        self._batch_id, self._end = planned, checkpoint.offsets[planned]
        self._start = checkpoint.offsets[planned - 1] if planned else None

    def trigger(self) -> bool:
        """Run a batch; return whether there was one."""
        end = self._end
        if end is None:
            end = self._source.latest(self._start)
            if end == self._start:
                return False
            self._log(end)
        self._end = end
        self._run_batch(end)
        self._start, self._end = end, None
        self._batch_id += 1
        return True

    def stop(self) -> None:
        self._source.reader.stop()

    def _log(self, end: Json) -> None:
        driver, batch_id = self._driver, self._batch_id
        driver.log("log offsets", batch_id, lambda: driver.plan.log_offsets(batch_id, end))
        if batch_id:
            before = self._checkpoint.offsets[batch_id - 1]
            driver.call("commit", lambda: self._source.reader.commit(_copy(before)))

    def _run_batch(self, end: Json) -> None:
        driver, reader, batch_id = self._driver, self._source.reader, self._batch_id
        if end != self._start:
            start = self._start if self._start is not None else self._source.initial()
            with driver.plan.tasks(batch_id, start, end) as returned:
                tasks = driver.call("plan", lambda: reader.partitions(_copy(start), _copy(end)))
                returned([one for task in tasks for one in task.value])
            with driver.plan.rows(batch_id) as read:
                read(run_tasks(driver.world, driver.use_cases, reader, tasks))
        driver.log("log commit", batch_id, lambda: driver.plan.log_commit(batch_id))


class _OwnEngine:
    """The package's own ``MicroBatchExecution``, over its V1 source."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        calls, checkpoint = driver.use_cases.calls, driver.checkpoint
        offsets = SimulatedLog(calls, checkpoint.engine_offsets, "offsets", self._offsets_added)
        commits = SimulatedLog(
            calls,
            checkpoint.engine_commits,
            "commits",
            lambda each, _: self._committed(each),
        )
        self._source = _WatchedSource(driver)
        watched: Any = self._source
        self._execution = MicroBatchExecution[Sequence[OffsetRange]](
            watched, offsets, commits, self._process
        )

    def begin(self) -> None:
        if self._driver.world.settings.trigger is Trigger.AVAILABLE_NOW:
            self._source.source.prepare_for_trigger_available_now()
            self._driver.plan.stops_at_first_latest = True

    def trigger(self) -> bool:
        return self._driver.call("trigger", self._execution.run_batch)

    def stop(self) -> None:
        self._source.source.stop()

    def _offsets_added(self, batch_id: int, content: bytes) -> None:
        end = read_batch_end(content)
        self._driver.plan.log_offsets(batch_id, written(end))

    def _committed(self, batch_id: int) -> None:
        self._driver.plan.log_commit(batch_id)

    def _process(self, ranges: Sequence[OffsetRange], batch_id: int) -> None:
        driver = self._driver
        read = driver.use_cases.range_read(driver.options)
        with driver.plan.rows(batch_id) as returned:
            rows: list[Row] = []
            for _, batches in read.read_all(ranges, driver.options.projection):
                for batch in batches:
                    rows += rows_of(batch)
            returned(rows)


class _WatchedSource:
    """A ``KafkaSource`` whose answers are checked."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.source = driver.use_cases.kafka_source(driver.options, lambda ranges: ranges)

    @property
    def default_read_limit(self) -> Any:
        return self.source.default_read_limit

    def latest_offset(self, start: Any, limit: Any) -> Any:
        known = start if start is not None else self.source.current_partition_offsets
        given = None if known is None else known.to_dict()
        with self._driver.plan.latest(given, is_all=False) as returned:
            end = self.source.latest_offset(start, limit)
            returned({} if end is None else end.to_dict())
        return end

    def get_batch(self, start: Any, end: Any) -> Any:
        with self._driver.plan.initial() as found:
            initial = self.source.initial_partition_offsets
            found(initial.to_dict())
        begin = initial if start is None else start
        # Another driver may have committed the first batch meanwhile.
        batch_id = 0 if start is None else self._driver.checkpoint.committed + 1
        with self._driver.plan.tasks(batch_id, begin.to_dict(), end.to_dict()) as returned:
            ranges = self.source.get_batch(start, end)
            returned(ranges)
        return ranges

    def commit(self, end: Any) -> None:
        self.source.commit(end)


def _copy(offsets: Json) -> Json:
    """Return offsets as they come out of JSON."""
    copied: Json = json.loads(json.dumps(offsets))
    return copied
