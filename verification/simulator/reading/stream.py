"""A continuous query: a driver, which logs progress, and tasks, one after another."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.application.continuous.task import ContinuousTask
from pyspark_kafka.domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskCommand,
    TaskId,
    TaskLostData,
    TaskMessage,
    TaskReport,
)
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.data_loss import DataLoss
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords, StreamClient, TaskChannel

from ..engine.outcome import ViolationError
from .faults import Fault
from .oracle import LOSSES, Oracle, Stretch
from .world import World

ME: Final = "task"
DRIVER: Final = "driver"
REPORT_S: Final = 0.2
COMMANDS_S: Final = 0.2
_PAUSE_MS: Final = 200
_SLOW_CALLS: Final = 8
"""How often the function is slow while nothing else is wrong."""


class ReaderDiedError(BaseException):  # nothing of the task may catch it
    """Raised in the task when its process ends."""


class CheckedClient(StreamClient):
    """The client, of which everything that a task sees is checked."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._client = KafkaPythonStreamClient(world.options, None, ContinuousSettings("g"))
        self._world = world
        self._oracle = oracle
        self.stretches: dict[TopicPartition, Stretch] = {}
        self.written: dict[TopicPartition, int] = {}
        self.error: PysparkKafkaError | None = None

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        for name, offset in offsets.items():
            before = self.stretches.get(name)
            if before is not None:
                self._oracle.check_resumed(before, offset)
            self.stretches[name] = Stretch(name, offset, offset)
            self.written[name] = offset
        self._world.tell(ME, "is assigned", offsets, None)
        return self._client.assign(offsets)

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self._client.revoke(partitions)
        self._world.tell(ME, "reads no more", list(partitions), None)
        for name in partitions:
            self.stretches.pop(name, None)
            self.written.pop(name, None)

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        began_ms = self._world.now_ms
        self.error = None  # its traceback holds the response that it is about
        try:
            polled = self._client.poll(timeout_s, takes_records=takes_records)
            self._oracle.check_duration(self._world.now_ms - began_ms, timeout_s)
        except PysparkKafkaError as error:
            self.error = error
            self._world.tell(ME, "fails", "", f"{type(error).__name__}: {error}")
            name = getattr(error, "partition", None)
            self._oracle.check_error(error, name and self.stretches.get(name))
            raise
        for one in polled:
            self._check(one)
        return polled

    def _check(self, polled: PolledRecords) -> None:
        name, records = polled.partition, polled.records
        stretch = self.stretches.get(name)
        if stretch is None:
            raise ViolationError("records of what is not assigned", str(name))
        rows = "no records" if records is None else f"{records.num_rows} records"
        self._world.tell(
            ME, "gets", f"{name} from {stretch.position} to {polled.next_offset}", rows
        )
        self._oracle.check_records(stretch, records, polled.next_offset)

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self._client.write(polled, outputs)
        self.written[polled.partition] = polled.next_offset

    def take_skipped(self) -> Iterable[DataLoss]:
        return self._client.take_skipped()

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._client.acknowledged()

    def is_settled(self) -> bool:
        return self._client.is_settled()

    def close(self) -> None:
        self._client.close()


class Driver(TaskChannel):
    """The driver's end of the channel, which is called when the task looks or reports."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self.progress: dict[TopicPartition, int] = {}
        self._client: CheckedClient | None = None
        self._assigned: set[TopicPartition] = set()
        self._is_stopping = False

    def begin(self, client: CheckedClient) -> None:
        self._client = client
        self._assigned = set()
        self._is_stopping = False

    def close(self) -> None:
        """Have nothing open."""

    def send(self, message: TaskMessage) -> None:
        self._world.die_if_due()
        if isinstance(message, TaskReport):
            for name, offset in message.offsets.items():
                self._log(name, offset)
        elif isinstance(message, TaskLostData):
            self._world.tell(ME, "reports", "", message.loss.reason)

    def _log(self, name: TopicPartition, offset: int) -> None:
        assert self._client is not None
        written = self._client.written.get(name)
        if written is None:
            return
        if offset > written:
            raise ViolationError(
                "progress is ahead", f"{name}: {offset} is reported, {written} is delivered"
            )
        self.progress[name] = offset

    def receive(self) -> Sequence[TaskCommand]:
        self._world.die_if_due()
        if self._is_stopping:
            return ()
        assert self._client is not None
        names = {each.name for each in self._world.cluster.all_partitions()}
        commands: list[TaskCommand] = []
        if gone := sorted(self._assigned - names):
            self._assigned -= set(gone)
            commands.append(RevokePartitions(self._offsets(gone)))
        if new := sorted(names - self._assigned):
            self._assigned |= set(new)
            commands.append(AssignPartitions(self._offsets(new)))
        elif self._assigned:
            commands += self._reassigned()
        if self._is_complete(names) and self._world.on_complete():
            self._is_stopping = self._world.is_done = True
            commands.append(StopTask())
        elif self._world.is_overdue:
            raise ViolationError("stuck", self._backlog(names))
        return commands

    def _reassigned(self) -> list[TaskCommand]:
        fired = self._world.decisions.has(DRIVER, Fault.REASSIGNED, 0.2)
        if not fired:
            return []
        names = sorted(self._assigned)
        name = names[fired.between(0, len(names) - 1)]
        if fired.between(0, 1):
            self._assigned.discard(name)
            return [RevokePartitions(self._offsets([name]))]
        return [AssignPartitions(self._offsets([name]))]

    def _offsets(self, names: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets({each: self.progress.get(each, 0) for each in names})

    def _is_complete(self, names: Collection[TopicPartition]) -> bool:
        assert self._client is not None
        stretches = self._client.stretches
        return self._world.calm_since_ms is not None and all(
            self._oracle.is_complete(each, stretches.get(each), self.progress.get(each, 0))
            for each in names
        )

    def _backlog(self, names: Collection[TopicPartition]) -> str:
        texts = [
            f"{each} is at {self.progress.get(each, 0)} of {self._world.last(each)}"
            for each in sorted(names)
        ]
        return "; ".join(texts)


class StreamReader:
    """Runs tasks one after another, each from the progress of the last."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._driver = Driver(world, oracle)
        self._lives = 0
        self._slow_calls = 0

    def run(self) -> None:
        world = self._world
        while not world.is_done:
            self._live()
            if world.is_overdue and not world.is_done:
                raise ViolationError("stuck", "tasks fail again and again")
            world.scheduler.sleep(_PAUSE_MS)

    def _live(self) -> None:
        world = self._world
        self._lives += 1
        client = CheckedClient(world, self._oracle)
        self._driver.begin(client)
        task = ContinuousTask(
            TaskId(1, 0, str(self._lives)),
            client,
            self._driver,
            self._function,
            world.options,
            sink=None,
            report_every_s=REPORT_S,
        )
        world.plan_death(f"life {self._lives}")
        try:
            task.run("host", 1)
        except ReaderDiedError:
            world.tell(ME, "dies", "", None)
            world.network.close_all()
        except PysparkKafkaError as error:
            self._end(client, error)
        else:
            client.close()
            self._oracle.require_no_sockets("after a client was closed")

    def _end(self, client: CheckedClient, error: PysparkKafkaError) -> None:
        """End a task that failed; a loss that fails the query is accepted by its user."""
        client.close()
        self._oracle.require_no_sockets("after a client was closed")
        lost = client.error
        if isinstance(error, DataLossError) and isinstance(lost, LOSSES):
            stretch = client.stretches.get(lost.partition)
            if stretch is not None and stretch.resumes_at:
                self._driver.progress[lost.partition] = stretch.resumes_at[0]

    def _function(self, _: pa.RecordBatch) -> None:
        world = self._world
        world.die_if_due()
        if world.is_peaceful:
            self._slow_calls += 1
            if self._slow_calls <= _SLOW_CALLS:
                world.scheduler.sleep(world.settings.function_ms)
        elif slow := world.decisions.has("function", Fault.SLOW_FUNCTION, 0.3):
            world.scheduler.sleep(slow.between(1, 3_000))
        elif world.settings.function_ms and not world.decisions.is_quiet:
            world.scheduler.sleep(
                world.decisions.between("function", 1, world.settings.function_ms)
            )
