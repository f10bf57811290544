"""Spark: the driver of a streaming query, and the attempts of its tasks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
from pyspark import TaskContext

from pyspark_kafka.adapters.spark.sink_writers import (
    BATCH_ID,
    RUN_ID,
    KafkaStreamWriter,
    TaskCommitMessage,
)
from pyspark_kafka.adapters.spark.tasks import QUERY_ID
from pyspark_kafka.domain.checkpoints.checkpoint_log import write_batch_end
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from ..engine.decisions import Fired
from ..engine.scheduler import Killed, Process
from .application import Application
from .checkpoint import Batch, Checkpoint
from .faults import Fault
from .world import World

_POLL_MS: Final = 5_000
"""How often a driver looks for new partitions."""

Messages: TypeAlias = list[TaskCommitMessage | None]


class SparkError(Exception):
    """An error of Spark's own, or of one of its Python processes."""


class JobFailedError(SparkError):
    """A task failed too often; ``messages`` has what the others returned."""

    def __init__(self, messages: Messages, cause: BaseException) -> None:
        super().__init__(f"a task failed too often: {cause}")
        self.messages = messages
        self.cause = cause


@dataclass(eq=False)
class Attempt:
    partition: int
    stage_attempt: int
    process: Process | None = None
    is_cancelled: bool = False
    is_lost: bool = False
    is_running: bool = True


_Event: TypeAlias = tuple[str, Attempt | None, Any]


class MicroBatchApplication(Application):
    """One run of a query in micro-batches."""

    def __init__(self, world: World, number: int, checkpoint: Checkpoint) -> None:
        super().__init__(world, number, checkpoint)
        self._options = world.options(checkpoint.prefix)
        self._next_attempt = world.settings.first_attempt
        self._attempts: list[Attempt] = []
        self._inbox: list[_Event] = []
        most = world.settings.partitions
        self._partitions = world.decisions.between(self.name, max(1, most - 1), most)
        self._driver = self.spawn(self.name, self._run)

    def _run(self) -> None:
        try:
            while (batch := self._plan()) is not None:
                self._run_batch(batch)
        except (SparkError, PysparkKafkaError) as error:
            self.error = error
            self._world.tell(self._driver.name, "fails", "", error)
        self._end()

    def _plan(self) -> Batch | None:
        self._step()
        checkpoint, world = self.checkpoint, self._world
        planned = checkpoint.planned()
        if planned is not None and not checkpoint.is_committed(planned.number):
            return planned
        start = planned.end if planned else checkpoint.initial
        while not checkpoint.is_done(world.input):
            if not checkpoint.is_done(self.input(start)):
                return self._plan_next(planned, start)
            world.scheduler.sleep(_POLL_MS)
        return None

    def _plan_next(self, planned: Batch | None, start: PartitionOffsets) -> Batch:
        checkpoint, world = self.checkpoint, self._world
        number, end = planned.number + 1 if planned else 0, self._next_end(start)
        self._step()
        content = write_batch_end(end, world.scheduler.now_ms)
        if not checkpoint.offsets.add(number, content):
            raise SparkError("Concurrent update to the offset log")
        batch = Batch(number, start, end)
        world.tell(self._driver.name, "plans", batch, None)
        return batch

    def _next_end(self, start: PartitionOffsets) -> PartitionOffsets:
        world, most = self._world, self._world.settings.batch_records
        known = self.input(start)
        if world.decisions.is_quiet:
            return PartitionOffsets(known)
        sizes = {each: world.decisions.between(self.name, 0, most) for each in known}
        return PartitionOffsets(
            {
                each: max(start.get(each, 0), min(end, start.get(each, 0) + sizes[each]))
                for each, end in known.items()
            }
        )

    def _run_batch(self, batch: Batch) -> None:
        writer = self._in_python("plan", batch, lambda writer: writer)
        self._step()
        try:
            messages = self._run_job(batch, writer)
            self._world.given[f"commit {self.number}.{batch.number}"] = tuple(
                each.written.transaction for each in messages if each and each.written.transaction
            )
            self._step()
            self._in_python(
                "commit", batch, lambda writer: writer.commit(cast("Any", messages), batch.number)
            )
        except (SparkError, PysparkKafkaError) as error:
            left = error.messages if isinstance(error, JobFailedError) else messages
            self._in_python(
                "abort", batch, lambda writer: writer.abort(cast("Any", left), batch.number), error
            )
            raise
        self._step()
        if not self.checkpoint.commit(batch.number, self._world.settings.retained):
            raise SparkError("Concurrent update to the commit log")
        self._world.remember(self.checkpoint)

    def _step(self) -> None:
        """Let time pass between two things that the driver does."""
        self._world.scheduler.sleep(self._world.decisions.between(self._driver.name, 1, 50))
        decisions, name, rate = self._world.decisions, self._driver.name, self._world.settings.rate
        if decisions.has(name, Fault.DRIVER_DIES, rate):
            self.die()
            raise Killed
        if fired := decisions.has(name, Fault.SUSPENDED_DRIVER, rate):
            self.suspend(fired)
            self._world.scheduler.sleep(1)

    def _in_python(
        self,
        what: str,
        batch: Batch,
        body: Callable[[KafkaStreamWriter], Any],
        before: BaseException | None = None,
    ) -> Any:
        """Run something with a new writer in a separate Python process, and wait for it."""
        returned: list[Any] = []
        failed: list[PysparkKafkaError] = []

        def run() -> None:
            self._world.planned_ms.setdefault(key, self._world.scheduler.now_ms)
            try:
                returned.append(body(KafkaStreamWriter(self._use_cases, self._options)))
            except PysparkKafkaError as error:
                failed.append(error)
                self._world.check_error(error, self.checkpoint, name)
            finally:
                self._world.scheduler.wake(self._driver)

        key = f"{self.number}.{batch.number}"
        name = f"{what} {key}"
        process = self.spawn(name, run)
        while not process.is_killed and not returned and not failed:
            self._world.scheduler.park()
        if returned:
            return returned[0]
        error = failed[0] if failed else SparkError("Python worker exited unexpectedly")
        if before is None:
            raise error
        return None

    def _run_job(self, batch: Batch, writer: KafkaStreamWriter) -> Messages:
        """Run tasks until each partition has a result, and return the first ones."""
        self._inbox.clear()
        self._attempts = []
        results: dict[int, TaskCommitMessage] = {}
        failures = [0] * self._partitions
        for partition in range(self._partitions):
            self._launch(batch, writer, partition, 0)
        self._may_lose_executor(1)
        while len(results) < self._partitions:
            kind, attempt, value = self._next_event()
            if kind == "lost":
                self._lose_executor(batch, writer, results, *value)
            elif attempt not in self._attempts or attempt.partition in results:
                continue  # of an earlier batch, or a loser
            elif attempt.is_lost:
                continue  # runs again already
            elif kind == "finished":
                results[attempt.partition] = value
                self._cancel_losers(attempt)
            elif kind == "slow":
                self._launch(batch, writer, attempt.partition, attempt.stage_attempt)
            else:
                failures[attempt.partition] += 1
                if failures[attempt.partition] >= self._world.settings.max_failures:
                    self._cancel(self._attempts)
                    messages = [results.get(each) for each in range(self._partitions)]
                    raise JobFailedError(messages, value)
                self._launch(batch, writer, attempt.partition, attempt.stage_attempt)
        return [results[partition] for partition in range(self._partitions)]

    def _launch(
        self, batch: Batch, writer: KafkaStreamWriter, partition: int, stage_attempt: int
    ) -> None:
        attempt = Attempt(partition, stage_attempt)
        number = sum(
            (each.partition, each.stage_attempt) == (partition, stage_attempt)
            for each in self._attempts
        )
        attempt_id = self._next_attempt
        properties = {
            QUERY_ID: self.checkpoint.query_id,
            RUN_ID: str(self.number),
            BATCH_ID: str(batch.number),
        }
        context: Any = SimpleNamespace(
            getLocalProperty=properties.get,
            partitionId=lambda: partition,
            attemptNumber=lambda: number,
            taskAttemptId=lambda: attempt_id,
        )
        name = f"task {self.number}.{batch.number} p{partition} a{attempt_id}"
        self._next_attempt += 1
        rows = batch.rows(partition, self._partitions, self.checkpoint.tag)

        def run() -> None:
            event: _Event = ("failed", attempt, SparkError("Python worker exited unexpectedly"))
            try:
                batches = self._batches(attempt, name, rows)
                TaskContext._taskContext = context
                event = ("finished", attempt, writer.write(batches))
            except (SparkError, PysparkKafkaError) as error:
                event = ("failed", attempt, error)
            finally:
                attempt.is_running = False
                self._send(event)

        attempt.process = self.spawn(name, run)
        self._attempts.append(attempt)
        if fired := self._world.decisions.has(name, Fault.SPECULATION, 0.4):
            delay_ms = fired.between(1, 2 * self._world.settings.work_ms)
            self._world.scheduler.at(delay_ms, lambda: self._send(("slow", attempt, None)))

    def _batches(
        self, attempt: Attempt, name: str, rows: Sequence[bytes]
    ) -> Iterator[pa.RecordBatch]:
        for values in (rows[:1], rows[1:])[: len(rows)]:
            self._world.scheduler.sleep(self._world.work_ms(name))
            if attempt.is_cancelled:
                raise SparkError("TaskKilled")
            yield arrow(tuple(values))

    def _may_lose_executor(self, stage_attempt: int) -> None:
        world = self._world
        if fired := world.decisions.has(self._driver.name, Fault.LOST_EXECUTOR, 0.5):
            event: _Event = ("lost", None, (stage_attempt, fired))
            delay_ms = fired.between(1, 3 * world.settings.work_ms)
            world.scheduler.at(delay_ms, lambda: self._send(event))

    def _lose_executor(
        self,
        batch: Batch,
        writer: KafkaStreamWriter,
        results: dict[int, TaskCommitMessage],
        stage_attempt: int,
        fired: Fired,
    ) -> None:
        """Kill some attempts, and run all missing partitions again next to the others."""
        world = self._world
        world.tell(self._driver.name, f"stage attempt {stage_attempt}", "", fired.kind.value)
        for attempt in self._attempts:
            assert attempt.process is not None
            if attempt.is_running and fired.between(0, 2) == 0:
                attempt.is_lost = True
                world.scheduler.kill(attempt.process)
        for partition in range(self._partitions):
            if partition not in results:
                self._launch(batch, writer, partition, stage_attempt)
        self._may_lose_executor(stage_attempt + 1)

    def _cancel_losers(self, winner: Attempt) -> None:
        self._cancel(
            each
            for each in self._attempts
            if (each.partition, each.stage_attempt) == (winner.partition, winner.stage_attempt)
        )

    def _cancel(self, attempts: Any) -> None:
        """Kill attempts, or let them notice that they are cancelled."""
        for attempt in attempts:
            if not attempt.is_running:
                continue
            if fired := self._world.decisions.has(attempt.process.name, Fault.CANCELLED, 0.5):
                self._world.scheduler.kill(attempt.process, fired.between(1, 5_000))
            else:
                attempt.is_cancelled = True

    def _send(self, event: _Event) -> None:
        self._inbox.append(event)
        self._world.scheduler.wake(self._driver)

    def _next_event(self) -> _Event:
        while not self._inbox:
            self._world.scheduler.park()
        return self._inbox.pop(0)


@cache
def arrow(values: tuple[bytes, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
