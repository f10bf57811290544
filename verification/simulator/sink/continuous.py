"""A run of a continuous query: the package's code, with processes for its threads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark_kafka.application.continuous import (
    epochs,
    execution,
    query,
    stream,
    task,
)
from pyspark_kafka.application.continuous.epochs import EpochLog
from pyspark_kafka.application.continuous.exclusion import WriterExclusion
from pyspark_kafka.application.continuous.execution import ContinuousExecution
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.application.continuous.task import ContinuousTask
from pyspark_kafka.domain.continuous.messages import TaskId
from pyspark_kafka.domain.continuous.progress import QueryIdentity
from pyspark_kafka.domain.continuous.settings import (
    ContinuousSettings,
    ExecutionLimits,
    RestartLimits,
)
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.ports import clock
from pyspark_kafka.ports.clock import Deadline

from ..engine.simulator import Change
from .application import Application
from .faults import Fault
from .stream import (
    SimulatedChannel,
    SimulatedClient,
    SimulatedRunner,
    SimulatedStream,
    SimulatedTaskChannel,
)
from .threads import VirtualThreading, VirtualTime

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pyspark_kafka.application.continuous.progress import ProgressRecorder

    from .checkpoint import Checkpoint
    from .world import World

_SLOW_S: Final = 4.0
"""How long loops wait that need not be fast here."""

_REPORT_S: Final = 10.0
_USER_S: Final = 60.0

_CATCH_UP: Final = epochs._CatchUp
_LIMITS: Final = ExecutionLimits(
    epoch_s=5.0, stop_timeout_s=10.0, restarts=RestartLimits(max_restarts=3)
)
_MAX_RUN_MS: Final = 40_000
_MAX_WORK_MS: Final = 3_000


class _Progress:
    """Takes what a recorder of progress takes, and adds nothing up, which is slow."""

    tasks = 0
    is_processing = False

    def add(self, work: object) -> None:
        """Called for each report of a task."""

    def restarted(self) -> None:
        """Called when a task starts again."""

    def record(self, *_: object, is_final: bool) -> None:
        """Called after each epoch."""

    def ended(self) -> None:
        """Called at the end."""


class ContinuousApplication(Application):
    """A driver with a query, and what its user does: waits for all records, and stops it."""

    is_continuous = True

    def __init__(self, world: World, number: int, checkpoint: Checkpoint) -> None:
        super().__init__(world, number, checkpoint)
        self._options = world.options(checkpoint.prefix)
        self._channel = SimulatedChannel(world, self, self._use_cases)
        group_id = f"{checkpoint.prefix}-{checkpoint.query_id}"
        self._settings = ContinuousSettings(group_id, f"run-{number}")
        self.spawn(f"user {number}", self._run)

    def _run(self) -> None:
        try:
            running = self._query()
            self._let_run(running)
            running.stop()
            if (error := running.exception()) is not None:
                raise error
            self._world.stopped_ms[str(self.number)] = self._world.scheduler.now_ms
            self._world.tell(self.name, "stop returns", "", None)
            self._world.check_stop([each.name for each in self.tasks() if not each.is_done])
        except PysparkKafkaError as error:
            self.error = error
            self._world.tell(self.name, "fails", "", error)
            self._world.check_error(error, self.checkpoint, self.name)
        self._end()

    def _let_run(self, running: ContinuousQuery) -> None:
        decisions = self._world.decisions
        if decisions.is_quiet or decisions.between(self.name, 0, 1):
            running.processAllAvailable()
        else:
            self._world.scheduler.sleep(decisions.between(self.name, 1, _MAX_RUN_MS))

    def _query(self) -> ContinuousQuery:
        world, used = self._world, self._use_cases
        identity = QueryIdentity(self.checkpoint.query_id, self._settings.run_id, None)
        recorder = cast("ProgressRecorder", _Progress())
        sink = used.kafka_sink(self._options)

        def take_batch(batch_id: int) -> None:
            world.taken[str(self.number)] = batch_id
            sink.hand_over(batch_id)

        running = ContinuousExecution(
            cast("Any", SimulatedStream(self, used)),
            EpochLog(used.offsets, used.commits, self._settings.run_id, self._settings.group_id),
            self._channel,
            SimulatedRunner(world, self),
            self._program,
            limits=_LIMITS,
            events=cast("Any", None),
            progress=recorder,
            attempt=_attempt,
            exclusion=WriterExclusion(take_batch, lambda: used.transactions, self._settings),
        )
        return ContinuousQuery(identity, running, recorder, lambda: None)

    def _program(self, generation: int, first_epoch: int) -> Callable[[int, str], None]:
        settings = replace(self._settings, first_epoch=first_epoch)

        def run(slot: int, attempt: str) -> None:
            me = TaskId(generation, slot, attempt)
            end = SimulatedTaskChannel(self._channel, me)
            client = SimulatedClient(self._use_cases, settings, self.checkpoint.tag, end)
            options: Any = None
            running = ContinuousTask(
                me,
                client,
                end,
                self._function,
                options,
                sink=self._options,
                report_every_s=_REPORT_S,
            )
            running.run("host", slot)

        return run

    def _function(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records, after some time."""
        world = self._world
        assert world.scheduler.current is not None
        name = world.scheduler.current.name
        world.scheduler.sleep(min(world.work_ms(name), _MAX_WORK_MS))
        if fired := world.decisions.has(name, Fault.SLOW_FUNCTION, 0.1):
            longest = (20_000, 120_000, 3_600_000)[fired.between(0, 2)]
            world.tell(name, "calls the function", "", fired.kind.value)
            world.scheduler.sleep(fired.between(1_000, longest))
        return records


@contextmanager
def _attempt(_: str) -> Iterator[Deadline]:
    yield Deadline.after(4.0)


def virtual(world: World) -> Iterator[Change]:
    """Let the code of continuous queries run in virtual time."""
    time, threads = VirtualTime(world.scheduler), VirtualThreading(world)
    for module in (execution, epochs, stream, task, clock):
        yield Change(module, "time", time)
    for module in (execution, epochs, query):
        yield Change(module, "threading", threads)
    yield Change(epochs, "epoch_ms", lambda: world.scheduler.now_ms)
    yield Change(epochs, "_CatchUp", lambda: _CATCH_UP(cast("Any", threads.Event())))
    yield Change(execution, "_RECEIVE_S", _SLOW_S)
    yield Change(query, "_POLL_S", _USER_S)
    yield Change(logging.getLogger("pyspark_kafka"), "disabled", True)
