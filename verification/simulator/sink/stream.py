"""The ports of a continuous query: its source, its tasks, and their client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.continuous.epochs import Output, OutputTracker
from pyspark_kafka.domain.errors import DriverLostError, PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.writing.group_seal import GroupOffset
from pyspark_kafka.ports.continuous import (
    DRIVER_TIMEOUT_S,
    ChannelAddress,
    EpochChannel,
    PolledRecords,
    StreamClient,
    TaskChannel,
    TaskRunner,
)

from .calls import DELAYS, LOG_WRITES
from .checkpoint import value_of
from .faults import Fault
from .ports import values_of
from .spark import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.domain.continuous.messages import TaskCommand, TaskId, TaskMessage
    from pyspark_kafka.domain.continuous.settings import ContinuousSettings
    from pyspark_kafka.domain.topic_partition import TopicPartition
    from pyspark_kafka.domain.writing.transaction import Transaction

    from ..engine.scheduler import Process
    from .application import Application
    from .ports import SimulatedUseCases
    from .world import World

_MAX_POLLED: Final = 2
_IDLE_MS: Final = 10_000
"""How long a task without records waits for commands, which takes longer than it asks for."""

_SOON_MS: Final = 20
_CANCEL_MS: Final = 500


class SimulatedStream:
    """Knows the partitions of the input, as ``KafkaContinuousStream`` does."""

    timeout_s = 60.0
    fails_on_data_loss = True

    def __init__(self, application: Application, use_cases: SimulatedUseCases) -> None:
        self._input = application.input
        self._initial = application.checkpoint.initial
        self._call = use_cases.kafka

    def initial_offset(self) -> PartitionOffsets:
        return self.plan_input_partitions(self._initial)

    def plan_input_partitions(self, start: PartitionOffsets) -> PartitionOffsets:
        return self._call(
            "partitions",
            "",
            lambda _: PartitionOffsets({each: start.get(each, 0) for each in self._input(start)}),
        )

    def latest_offset(self) -> PartitionOffsets:
        return PartitionOffsets(self._input(()))

    def commit(self, end: PartitionOffsets) -> None:
        """Called after an epoch."""


class SimulatedClient(StreamClient):
    """Commits what was written in the next ``poll``, a transaction for each partition."""

    def __init__(
        self,
        use_cases: SimulatedUseCases,
        settings: ContinuousSettings,
        tag: str,
        channel: SimulatedTaskChannel,
    ) -> None:
        self._call = use_cases.kafka
        self._channel = channel
        self._world = use_cases.kafka.world
        self._port = use_cases.transactions
        self._settings = settings
        self._tag = tag
        self._offsets: dict[TopicPartition, int] = {}
        self._transactions: dict[TopicPartition, Transaction] = {}
        self._uncommitted: dict[TopicPartition, list[Output]] = {}
        self._tracker = OutputTracker()
        self._is_revoked = False

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self._commit()
        for partition in offsets:
            self._tracker.forget(partition)
        committed = self._fence(offsets)
        again = offsets.restrict(self._offsets.keys())
        for partition, offset in again.items():
            self._end(partition, offset)
        assigned = {
            each: offset if each in again else max(offset, committed.get(each, 0))
            for each, offset in offsets.items()
        }
        self._offsets.update(assigned)
        return PartitionOffsets(assigned)

    def _fence(self, offsets: PartitionOffsets) -> Mapping[TopicPartition, int]:
        """Fence earlier tasks, and then look at the group."""
        group_id = self._settings.group_id
        for partition in offsets:
            name = self._settings.transactional_id(*partition)
            self._transactions[partition] = self._port.begin(name)
        found = self._port.committed(group_id, list(offsets))
        others = self._port.committed(group_id, None, is_stable=False)
        self._settings.require_unsealed([*others.values(), *found.values()])
        return {each: committed.offset for each, committed in found.items()}

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._is_revoked = True  # tasks that stop wait no longer
        for partition in partitions:
            self._offsets.pop(partition, None)

    def poll(
        self,
        timeout_s: float,  # noqa: ARG002
        *,
        takes_records: bool = True,
    ) -> Sequence[PolledRecords]:
        self._commit()
        polled = self._fetch() if takes_records else []
        if not polled and not self._tracker.has_acknowledged:
            self._channel.wait(_SOON_MS if self._is_revoked else _IDLE_MS)
        self._offsets.update((each.partition, each.next_offset) for each in polled)
        return polled

    def _fetch(self) -> list[PolledRecords]:
        found = []
        for partition, offset in self._offsets.items():
            end = min(self._world.input.get(partition, 0), offset + _MAX_POLLED)
            if end > offset:
                numbers = range(offset, end)
                values = [value_of(self._tag, partition.partition, each) for each in numbers]
                found.append(PolledRecords(partition, arrow(tuple(values)), end))
        return found

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        transaction, kafka = self._transactions[polled.partition], self._world.kafka
        values = [value for batch in outputs for value in values_of(batch)]
        if values:
            self._call("write", values, lambda _: kafka.write(transaction, values), LOG_WRITES)
        output = self._tracker.add(polled.partition, polled.next_offset, 1)
        self._uncommitted.setdefault(polled.partition, []).append(output)

    def _commit(self) -> None:
        for partition, outputs in list(self._uncommitted.items()):
            self._end(partition, outputs[-1].next_offset)
            del self._uncommitted[partition]
            for output in outputs:
                self._tracker.acknowledge(output, 1)

    def _end(self, partition: TopicPartition, offset: int) -> None:
        transaction, kafka = self._transactions[partition], self._world.kafka
        place, committed = (self._settings.group_id, partition), GroupOffset(offset)
        self._call(
            "offset",
            f"{partition} at {offset}",
            lambda _: kafka.add_offset(transaction, place, committed),
            LOG_WRITES,
        )
        self._call(
            "end",
            f"{partition} at {offset}",
            lambda by: kafka.commit_and_continue(transaction, by),
            LOG_WRITES,
        )

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._tracker.take_acknowledged()

    def is_settled(self) -> bool:
        return self._tracker.is_settled

    def close(self) -> None:
        """Leave open transactions to the next ``assign``."""


class SimulatedChannel(EpochChannel):
    """The driver's end: messages arrive at once."""

    def __init__(self, world: World, application: Application, use_cases: SimulatedUseCases):
        self.application = application
        self.scheduler = world.scheduler
        self.is_closed = False
        self.commands: dict[TaskId, list[TaskCommand]] = {}
        self.listening: dict[TaskId, Process] = {}
        """The tasks that wait for commands."""
        self._call = use_cases.kafka
        self._inbox: list[TaskMessage] = []
        self._waiting: Process | None = None

    @property
    def address(self) -> ChannelAddress:
        raise NotImplementedError

    @property
    def is_lost(self) -> bool:
        """Whether tasks notice that their driver is gone."""
        silent_ms = self.scheduler.now_ms - self.application.silent_since_ms
        return self.is_closed or silent_ms > 1_000 * DRIVER_TIMEOUT_S

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        if not self._inbox and timeout_s:
            self._waiting = self.scheduler.current
            self.scheduler.sleep(int(1_000 * timeout_s))
            self._waiting = None
        if self._inbox:
            self._call("hear", len(self._inbox), lambda _: None, DELAYS)
        taken, self._inbox = self._inbox, []
        return taken

    def send(self, task: TaskId, command: TaskCommand) -> None:
        if task in self.commands:
            self.commands[task].append(command)
        if task in self.listening:
            self.scheduler.wake(self.listening[task])

    def close(self) -> None:
        self.is_closed = True

    def deliver(self, message: TaskMessage) -> None:
        self.commands.setdefault(message.task, [])
        self._inbox.append(message)
        if self._waiting is not None:
            self.scheduler.wake(self._waiting)


class SimulatedTaskChannel(TaskChannel):
    def __init__(self, driver: SimulatedChannel, task: TaskId) -> None:
        self._driver = driver
        self._task = task
        self._require_driver()

    def send(self, message: TaskMessage) -> None:
        self._require_driver()
        self._driver.deliver(message)

    def wait(self, ms: int) -> None:
        """Wait for a command; a task looks for those that are there soon."""
        current = self._driver.scheduler.current
        assert current is not None
        self._driver.listening[self._task] = current
        self._driver.scheduler.sleep(_SOON_MS if self._driver.commands.get(self._task) else ms)
        del self._driver.listening[self._task]

    def receive(self) -> Sequence[TaskCommand]:
        commands = self._driver.commands.get(self._task, [])
        taken, commands[:] = list(commands), []
        if not taken:
            self._require_driver()
        return taken

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _require_driver(self) -> None:
        if self._driver.is_lost:
            raise DriverLostError("nothing was heard from it")


class SimulatedRunner(TaskRunner):
    """Runs tasks as Spark does: they fail and run again, get lost, or do not end when cancelled."""

    def __init__(self, world: World, application: Application) -> None:
        self._world = world
        self._application = application
        self._attempts = 0
        self._failures: list[str] = []
        self._failed: list[int] = []
        self._running: dict[str, int] = {}
        """The slots of tasks, by the names of their processes."""
        self._is_cancelled = False
        self._run: Callable[[int, str], None] = lambda *_: None

    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        self._run, self._is_cancelled = run, False
        self._failures, self._failed = [], [0] * tasks
        for slot in range(tasks):
            self._launch(slot)

    def _launch(self, slot: int) -> None:
        self._attempts += 1
        attempt, run = str(self._attempts), self._run
        name = f"task {self._application.number}.0 s{slot} a{attempt}"

        def body() -> None:
            failure = "Python worker exited unexpectedly"
            try:
                run(slot, attempt)
                failure = ""
            except PysparkKafkaError as error:
                failure = str(error)
                self._world.tell(name, "fails", "", error)
            finally:
                self._ended(name, failure)

        self._running[name] = slot
        process = self._application.spawn(name, body)
        if fired := self._world.decisions.has(name, Fault.LOST_EXECUTOR, 0.2):
            delay_ms = fired.between(1, 30_000)
            self._world.scheduler.at(delay_ms, lambda: self._lose(name, process))

    def _lose(self, name: str, process: Process) -> None:
        """Run a task again, while the one before still runs."""
        if not process.is_done and name in self._running and not self._is_cancelled:
            self._world.tell(name, "is on a lost executor", "", None)
            self._launch(self._running.pop(name))

    def _ended(self, name: str, failure: str) -> None:
        slot = self._running.pop(name, None)
        if slot is None or self._is_cancelled or not failure or self._application.is_over:
            return
        self._failed[slot] += 1
        if self._failed[slot] < self._world.settings.max_failures:
            self._launch(slot)
        else:
            self._failures.append(failure)

    def runs_failed_tasks_again(self) -> bool:
        return self._world.settings.max_failures > 1

    def is_running(self) -> bool:
        return bool(self._running)

    def failure(self) -> str | None:
        return next(iter(self._failures), None)

    def cancel(self, timeout_s: float) -> None:
        self._is_cancelled = True
        scheduler, decisions = self._world.scheduler, self._world.decisions
        for process in self._application.tasks():
            if process.name not in self._running:
                continue
            if fired := decisions.has(process.name, Fault.ORPHANS, 0.5):
                del self._running[process.name]
                scheduler.kill(process, fired.between(1, 3_600_000))
            elif fired := decisions.has(process.name, Fault.CANCELLED, 0.5):
                scheduler.kill(process, fired.between(1, 60_000))
            else:
                scheduler.kill(process, decisions.between(process.name, 1, _CANCEL_MS))
        until_ms = scheduler.now_ms + int(1_000 * timeout_s)
        while self._running and scheduler.now_ms < until_ms:
            scheduler.sleep(_CANCEL_MS)
