"""A continuous query whose tasks follow a script, in a time that passes only while it waits."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import time_ns
from types import SimpleNamespace
from typing import final

import pytest

from pyspark_kafka.adapters.call_deadline import within
from pyspark_kafka.application.continuous import epochs
from pyspark_kafka.application.continuous import execution as continuous_execution
from pyspark_kafka.application.continuous import progress as continuous_progress
from pyspark_kafka.application.continuous import stream as continuous_stream
from pyspark_kafka.application.continuous.epochs import EpochLog
from pyspark_kafka.application.continuous.execution import ContinuousExecution
from pyspark_kafka.application.continuous.progress import ProgressRecorder
from pyspark_kafka.bootstrap.container import short_attempts
from pyspark_kafka.domain.checkpoints.checkpoint_log import read_batch_end
from pyspark_kafka.domain.continuous.messages import (
    StopTask,
    TaskCommand,
    TaskDrained,
    TaskFailed,
    TaskId,
    TaskMessage,
    TaskReport,
    TaskStarted,
)
from pyspark_kafka.domain.continuous.progress import EpochProgress, QueryIdentity, TaskProgress
from pyspark_kafka.domain.continuous.settings import ExecutionLimits
from pyspark_kafka.domain.errors import BrokerUnreachableError, PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.ports import clock
from pyspark_kafka.ports.continuous import ChannelAddress, EpochChannel, TaskRunner

from .conftest import Kit, tp
from .passing import failing_log

MAX_S = 3_600.0
"""A query that has not ended after these virtual seconds never ends."""

Script = Iterator[float | None]
"""Yields the seconds for which nothing happens, or ``None`` for one turn of the driver."""


def task(slot: int, attempt: str = "a", run: int = 1) -> TaskId:
    return TaskId(run, slot, attempt)


def at(partition: int, offset: int) -> PartitionOffsets:
    return PartitionOffsets({tp(partition): offset})


@final
class VirtualTime:
    """Stands in for the module ``time``, but for the wall clock."""

    time_ns = staticmethod(time_ns)

    def __init__(self) -> None:
        self.seconds = 0.0
        self._calls: list[tuple[float, Callable[[], object]]] = []

    def monotonic(self) -> float:
        return 5_000 + self.seconds

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        self._calls.append((self.seconds + seconds, call))

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        assert self.seconds < MAX_S, "the query does not end"
        due = [call for at_s, call in self._calls if at_s <= self.seconds]
        self._calls = [each for each in self._calls if each[0] > self.seconds]
        for call in due:
            call()

    def event(self) -> threading.Event:
        """Return an event for which one thread waits, in this time."""
        return _VirtualEvent(self)


@final
class _VirtualEvent(threading.Event):
    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "no other thread sets it"
        if not self.is_set():
            self._time.advance(timeout)
        return self.is_set()


@final
@dataclass
class ScriptedRunner(TaskRunner):
    """Keeps what it is given; ``run`` reports only that a task has started."""

    time: VirtualTime
    slots: int | None = None
    """How many tasks can run at once."""

    runs_again: bool = False
    hangs: bool = False
    """Whether tasks do not end when they are cancelled."""

    starts_tasks: bool = True
    started: list[tuple[float, int]] = field(default_factory=list)
    """The times and the numbers of tasks of all jobs."""

    cancelled: list[float] = field(default_factory=list)
    """The time-outs of all cancellations."""

    reason: str | None = None
    is_active: bool = False

    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        self.started.append((round(self.time.seconds, 3), tasks))
        self.is_active, self.reason = True, None
        for slot in range(tasks if self.starts_tasks else 0):
            run(slot, "a")

    def end(self, reason: str | None = None) -> None:
        """End the job, for a reason if it failed."""
        self.is_active, self.reason = False, reason

    def available_slots(self) -> int | None:
        return self.slots

    def runs_failed_tasks_again(self) -> bool:
        return self.runs_again

    def is_running(self) -> bool:
        return self.is_active

    def failure(self) -> str | None:
        return self.reason

    def cancel(self, timeout_s: float) -> None:
        self.cancelled.append(timeout_s)
        self.is_active = self.is_active and self.hangs


@final
class ScriptedChannel(EpochChannel):
    """Returns what the script sends; time passes while there is nothing."""

    def __init__(self, time: VirtualTime) -> None:
        self.inbox: list[TaskMessage] = []
        self.sent: list[tuple[TaskId, TaskCommand]] = []
        self.drains = True
        """Whether tasks end when they are asked to."""

        self.is_closed = False
        self.script: Script = iter(())
        self.stop: Callable[[], None] = lambda: None
        self._time = time
        self._goes_on_at = 0.0

    @property
    def address(self) -> ChannelAddress:
        return ChannelAddress("scripted", "", b"")

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        assert timeout_s >= 0
        if timeout_s and not self.inbox:
            self._go_on(timeout_s)
        taken, self.inbox = self.inbox, []
        return taken

    def send(self, task: TaskId, command: TaskCommand) -> None:
        is_first = (task, command) not in self.sent
        self.sent.append((task, command))
        if self.drains and isinstance(command, StopTask) and is_first:
            self.inbox.append(TaskDrained(task))

    def close(self) -> None:
        self.is_closed = True

    def _go_on(self, timeout_s: float) -> None:
        left = self._goes_on_at - self._time.seconds
        if left > 0:
            self._time.advance(min(timeout_s, left))
            return
        try:
            pause_s = next(self.script)
        except StopIteration:
            self.stop()
            self._time.advance(timeout_s)
        else:
            self._goes_on_at = self._time.seconds + (pause_s or 0)


@final
class ScriptedQuery:
    """An execution over a cluster in memory, run by the thread that calls ``run``."""

    def __init__(
        self, kit: Kit, time: VirtualTime, limits: ExecutionLimits, options: Mapping[str, str]
    ) -> None:
        self.kit = kit
        self.time = time
        self.runner = ScriptedRunner(time)
        self.channel = ScriptedChannel(time)
        self.offset_log = failing_log(is_stored=False)
        self.commit_log = failing_log(is_stored=False)
        self.reports: list[EpochProgress] = []
        self.progress = ProgressRecorder(QueryIdentity("id", "run"), "sink", [self.reports.append])
        given = {"startingOffsets": "earliest", "fetchOffset.numRetries": "1", **options}
        self.execution = ContinuousExecution(
            kit.container(given).continuous_stream(),
            EpochLog(self.offset_log, self.commit_log, "run"),
            self.channel,
            self.runner,
            lambda generation, _: partial(self._run_task, generation),
            limits=limits,
            events=kit.events,
            progress=self.progress,
            attempt=short_attempts(),
        )
        self.channel.stop = self.execution.stop

    def run(self, script: Script = iter(())) -> None:  # noqa: B008  # it is empty, and stays so
        """Run the query as the script says, and then stop it."""
        self.channel.script = script
        self.execution.run()

    # What tasks do

    def start(self, started: TaskId) -> None:
        self.send(TaskStarted(started, "host", 1))

    def report(self, reporter: TaskId, acknowledged: PartitionOffsets, rows: int = 0) -> None:
        self.send(TaskReport(reporter, acknowledged, TaskProgress(rows, rows)))

    def fail(self, failed: TaskId, text: str = "it broke", *, is_permanent: bool = False) -> None:
        self.send(TaskFailed(failed, "KAFKA_X", text, is_permanent))

    def send(self, message: TaskMessage) -> None:
        self.channel.inbox.append(message)

    def drain(self, *, drains: bool) -> None:
        self.channel.drains = drains

    # What became of that

    @property
    def epochs(self) -> dict[int, PartitionOffsets]:
        """The epochs that are logged and committed."""
        ids = self.commit_log.batch_ids()
        return {number: read_batch_end(self.offset_log.get(number) or b"") for number in ids}

    def commands(self, receiver: TaskId) -> list[TaskCommand]:
        return [command for told, command in self.channel.sent if told == receiver]

    def stopped(self) -> set[TaskId]:
        return {told for told, command in self.channel.sent if command == StopTask()}

    # What brokers do

    def lose_brokers(self, error: PysparkKafkaError) -> None:
        vars(self.kit.cluster)["topics"] = partial(_raise, error)

    def slow_brokers(self, seconds: float, *requests: str) -> None:
        """Let brokers take so long for their answers to these requests."""
        for name in requests:
            answer = getattr(self.kit.cluster, name)
            vars(self.kit.cluster)[name] = partial(self._answer_late, answer, seconds)

    def find_brokers(self) -> None:
        del vars(self.kit.cluster)["topics"]

    def _answer_late(
        self, answer: Callable[..., object], seconds: float, *given: object, **named: object
    ) -> object:
        with within(30) as deadline:
            self.time.advance(min(seconds, deadline.remaining))
            if deadline.has_passed:
                raise BrokerUnreachableError("memory", 30)
        return answer(*given, **named)

    def _run_task(self, generation: int, slot: int, attempt: str) -> None:
        self.start(TaskId(generation, slot, attempt))


def virtual_time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """Return the time of all that an execution waits for."""
    time = VirtualTime()
    for module in (continuous_execution, continuous_progress, continuous_stream, epochs, clock):
        monkeypatch.setattr(module, "time", time)
    monkeypatch.setattr(continuous_execution, "threading", SimpleNamespace(Event=time.event))
    return time


def _raise(error: PysparkKafkaError) -> None:
    raise error
