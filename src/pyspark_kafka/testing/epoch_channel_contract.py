"""The contract suite of ``EpochChannel`` and ``TaskChannel``."""

from __future__ import annotations

import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

import pytest

from ..domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskDrained,
    TaskFailed,
    TaskId,
    TaskLostData,
    TaskReport,
    TaskStarted,
)
from ..domain.continuous.progress import LatencyHistogram, TaskProgress
from ..domain.errors import DriverLostError
from ..domain.partition_offsets import PartitionOffsets
from ..domain.reading.data_loss import DataLoss
from ..domain.topic_partition import TopicPartition
from .world import PATIENCE_S, await_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..domain.continuous.messages import TaskCommand, TaskMessage
    from ..ports.continuous import ChannelAddress, EpochChannel, TaskChannel

TASKS: Final = 20


class EpochChannelContract:
    """The contract of an ``EpochChannel`` and its ``TaskChannel``.

    A subclass overrides ``open_channel`` and ``connect``, and ``open_silent_channel`` unless a
    driver that lives is always heard.
    """

    driver_timeout_s: ClassVar[float] = 3.0
    """The time-out of the ends that ``connect`` returns, more than that between heartbeats."""

    can_be_silent: ClassVar[bool] = True
    """Whether a task may hear nothing of a driver that lives, as on a network."""

    def open_channel(self) -> EpochChannel:
        """Return the driver's end of a new channel."""
        raise NotImplementedError(f"{type(self).__name__} must override 'open_channel'")

    def connect(self, address: ChannelAddress, task: TaskId) -> TaskChannel:
        """Return a task's end that waits ``driver_timeout_s`` to hear from the driver."""
        raise NotImplementedError(f"{type(self).__name__} must override 'connect'")

    def open_silent_channel(self) -> EpochChannel:
        """Return the driver's end of a channel that authenticates tasks, and then is silent."""
        raise NotImplementedError(f"{type(self).__name__} must override 'open_silent_channel'")

    @pytest.fixture
    def channel(self) -> Iterator[EpochChannel]:
        """Return the driver's end of a new channel, and close it after the test."""
        channel = self.open_channel()
        yield channel
        channel.close()

    @pytest.fixture
    def task(self, channel: EpochChannel) -> Iterator[TaskChannel]:
        """Return the end of task 0, and close it after the test."""
        task = self.connect(channel.address, task_id())
        yield task
        task.close()

    def test_every_message_arrives_as_it_was_sent(
        self, channel: EpochChannel, task: TaskChannel
    ) -> None:
        """All kinds of messages arrive with their content, in order, once each."""
        for message in MESSAGES:
            task.send(message)
        assert receive(channel, len(MESSAGES)) == list(MESSAGES)
        assert list(channel.receive(0.3)) == []

    def test_every_command_arrives_as_it_was_sent(
        self, channel: EpochChannel, task: TaskChannel
    ) -> None:
        """All kinds of commands arrive with their content, in order, once each."""
        start(channel, task)
        for _ in range(3):
            for command in COMMANDS:
                channel.send(task_id(), command)
        assert commands_of(task, 3 * len(COMMANDS)) == 3 * list(COMMANDS)
        assert list(task.receive()) == []

    def test_many_tasks_send_at_once(self, channel: EpochChannel) -> None:
        """Each task's messages arrive in its order, once each, while others send."""
        sent = {task_id(slot): [report(slot, offset) for offset in range(20)] for slot in SLOTS}
        with ThreadPoolExecutor(TASKS) as pool:
            ends = list(pool.map(lambda each: self.connect(channel.address, each), sent))
            for _ in pool.map(send_all, ends, sent.values()):
                pass
            received = receive(channel, TASKS * 20)
            # Closing waits for the driver to read the rest.
            list(pool.map(lambda end: end.close(), ends))
        for task, messages in sent.items():
            assert [message for message in received if message.task == task] == messages

    def test_each_task_gets_its_own_commands(self, channel: EpochChannel) -> None:
        """A command reaches the task that it is for, and no other."""
        ends = {task_id(slot): self.connect(channel.address, task_id(slot)) for slot in range(3)}
        for task, end in ends.items():
            end.send(TaskDrained(task))
        receive(channel, 3)
        for task in ends:
            channel.send(task, assign(task.slot))
        for task, end in ends.items():
            assert commands_of(end, 1) == [assign(task.slot)]
            assert list(end.receive()) == []
            end.close()

    def test_receiving_returns_when_something_comes(
        self, channel: EpochChannel, task: TaskChannel
    ) -> None:
        """The driver does not wait for its time-out when a message has come."""
        with ThreadPoolExecutor(1) as pool:
            began = time.monotonic()
            received = pool.submit(channel.receive, PATIENCE_S)
            task.send(MESSAGES[0])
            assert list(received.result()) == [MESSAGES[0]]
        assert time.monotonic() - began < PATIENCE_S / 2

    def test_receiving_nothing_ends_in_time(self, channel: EpochChannel) -> None:
        """Without a message, the driver waits for its time-out."""
        began = time.monotonic()
        assert list(channel.receive(0.2)) == []
        assert 0.15 < time.monotonic() - began < PATIENCE_S / 2
        assert list(channel.receive(0)) == []

    def test_a_command_for_an_unknown_task_is_lost(
        self, channel: EpochChannel, task: TaskChannel
    ) -> None:
        """Neither the driver nor another task notices the command."""
        start(channel, task)
        channel.send(task_id(7), StopTask())
        channel.send(replace(task_id(), attempt="another"), StopTask())
        channel.send(task_id(), assign(1))
        assert commands_of(task, 1) == [assign(1)]

    def test_a_command_for_a_task_that_is_gone_is_lost(self, channel: EpochChannel) -> None:
        """The driver can continue, and other tasks can connect."""
        gone = self.connect(channel.address, task_id(1))
        gone.send(TaskDrained(task_id(1)))
        gone.close()
        assert receive(channel, 1) == [TaskDrained(task_id(1))]
        for _ in range(3):
            channel.send(task_id(1), StopTask())
        for task in (replace(task_id(1), attempt="another"), task_id(2)):
            end = self.connect(channel.address, task)
            end.send(TaskDrained(task))
            assert receive(channel, 1) == [TaskDrained(task)]
            channel.send(task, assign(1))
            assert commands_of(end, 1) == [assign(1)]
            end.close()

    def test_a_task_does_not_wait(self, task: TaskChannel) -> None:
        """Sending and receiving return at once, though the driver does neither."""
        began = time.monotonic()
        for number in range(100):
            task.send(report(0, number))
            assert list(task.receive()) == []
            assert time.monotonic() - began < PATIENCE_S / 3

    def test_a_task_closes_in_time(self, channel: EpochChannel) -> None:
        """Closing takes a second at most, though the driver receives nothing."""
        end = self.connect(channel.address, task_id())
        for _ in range(3):
            end.send(large_report())
        began = time.monotonic()
        end.close()
        assert time.monotonic() - began < PATIENCE_S / 3

    def test_a_task_that_closes_sends_the_rest_first(self, channel: EpochChannel) -> None:
        """Nothing that was sent before is lost."""
        reports = [report(1, offset) for offset in range(50)]
        end = self.connect(channel.address, task_id(1))
        send_all(end, reports)
        end.close()
        end.close()
        assert receive(channel, len(reports)) == reports

    def test_a_task_of_a_closed_channel_loses_its_driver(self) -> None:
        """The task's next calls raise, soon after the driver has closed its end."""
        channel = self.open_channel()
        end = self.connect(channel.address, task_id())
        start(channel, end)
        channel.close()
        channel.close()
        await_until(lambda: has_lost_driver(end), PATIENCE_S)
        with pytest.raises(DriverLostError):
            end.send(report(0, 1))
        with pytest.raises(DriverLostError):
            end.receive()
        end.close()

    def test_a_closed_channel_cannot_be_joined(self) -> None:
        """A task that comes too late raises at once."""
        channel = self.open_channel()
        channel.close()
        channel.send(task_id(), StopTask())
        with pytest.raises(DriverLostError):
            self.connect(channel.address, task_id())

    def test_a_silent_driver_is_lost(self) -> None:
        """A task ends after the time-out, and not before."""
        if not self.can_be_silent:
            pytest.skip(f"{type(self).__name__} declares that a driver that lives is never silent")
        channel = self.open_silent_channel()
        began = time.monotonic()
        end = self.connect(channel.address, task_id())
        end.send(report(0, 1))
        await_until(lambda: has_lost_driver(end), PATIENCE_S)
        assert self.driver_timeout_s * 0.9 < time.monotonic() - began < PATIENCE_S / 2
        end.close()
        channel.close()

    def test_a_busy_driver_keeps_its_tasks(self, channel: EpochChannel, task: TaskChannel) -> None:
        """A driver that does not receive for longer than the time-out is not lost."""
        until = time.monotonic() + 1.5 * self.driver_timeout_s
        sent: list[TaskMessage] = []
        while time.monotonic() < until:
            sent.append(report(0, len(sent)))
            task.send(sent[-1])
            assert list(task.receive()) == []
            time.sleep(0.05)
        assert receive(channel, len(sent)) == sent

    def test_a_busy_task_keeps_its_driver(self, channel: EpochChannel, task: TaskChannel) -> None:
        """A task that looks at its channel after the time-out has not lost the driver."""
        start(channel, task)
        time.sleep(1.3 * self.driver_timeout_s)
        assert list(task.receive()) == []
        task.send(report(0, 1))
        assert receive(channel, 1) == [report(0, 1)]

    def test_a_task_without_the_key_is_refused(
        self, channel: EpochChannel, task: TaskChannel
    ) -> None:
        """The task cannot connect, and its driver continues."""
        with pytest.raises(DriverLostError):
            self.connect(replace(channel.address, key=bytes(32)), task_id(1))
        task.send(report(0, 1))
        assert receive(channel, 1) == [report(0, 1)]
        assert list(channel.receive(0.2)) == []

    def test_a_message_of_another_task_is_dropped(
        self, channel: EpochChannel, task: TaskChannel
    ) -> None:
        """A task cannot speak for another."""
        task.send(report(0, 1))
        task.send(report(1, 2))
        task.send(report(0, 3))
        assert receive(channel, 2) == [report(0, 1), report(0, 3)]

    def test_a_large_report_arrives(self, channel: EpochChannel, task: TaskChannel) -> None:
        """A report of 10,000 partitions arrives, even if every topic has the longest name."""
        large = large_report()
        task.send(large)
        task.send(report(0, 1))
        received: list[TaskMessage] = []
        until = time.monotonic() + PATIENCE_S
        while len(received) < 2 and time.monotonic() < until:
            assert list(task.receive()) == []  # which sends the rest
            received += channel.receive(0.01)
        assert received == [large, report(0, 1)]
        channel.send(task_id(), AssignPartitions(large.offsets))
        assert commands_of(task, 1) == [AssignPartitions(large.offsets)]

    def test_nothing_is_left_after_closing(self) -> None:
        """No thread and no file descriptor of a closed channel remains."""
        self._run_to_the_end()  # resources that the process keeps from the first run on
        before = resources()
        self._run_to_the_end()
        await_until(lambda: resources() == before, PATIENCE_S)

    def _run_to_the_end(self) -> None:
        channel = self.open_channel()
        ends = [self.connect(channel.address, task_id(slot)) for slot in range(3)]
        for slot, end in enumerate(ends):
            end.send(report(slot, 1))
        receive(channel, 3)
        ends.pop().close()
        channel.close()
        for end in ends:
            end.close()

    def test_the_key_is_shown_nowhere(self, channel: EpochChannel, task: TaskChannel) -> None:
        """Neither string of an end or an address has the key, which has 32 bytes at least."""
        key = channel.address.key
        assert len(key) >= 32
        for shown in (channel, channel.address, task):
            for text in (str(shown), repr(shown)):
                assert key.hex() not in text
                assert repr(key)[2:-1] not in text

    def test_every_channel_has_its_own_key(self, channel: EpochChannel) -> None:
        """A task of one channel cannot join another."""
        other = self.open_channel()
        assert other.address.key != channel.address.key
        other.close()


def task_id(slot: int = 0) -> TaskId:
    """Return the first attempt of a slot."""
    return TaskId(1, slot, f"{slot}.0")


def report(slot: int, offset: int) -> TaskReport:
    """Return a report of one partition."""
    return TaskReport(task_id(slot), offsets_of(slot, offset))


def large_report() -> TaskReport:
    """Return a report of task 0 with 10,000 partitions, each topic with the longest name."""
    offsets = {TopicPartition(f"{n:0249d}", n): 2**62 + n for n in range(10_000)}
    return TaskReport(task_id(), PartitionOffsets(offsets))


def assign(slot: int) -> AssignPartitions:
    """Return a command with a partition that no other slot has."""
    return AssignPartitions(offsets_of(slot, 5))


def offsets_of(partition: int, offset: int) -> PartitionOffsets:
    """Return the offset of one partition."""
    return PartitionOffsets({TopicPartition("topic", partition): offset})


def start(channel: EpochChannel, end: TaskChannel) -> None:
    """Send the first message of task 0, and receive it."""
    end.send(MESSAGES[0])
    assert receive(channel, 1) == [MESSAGES[0]]


def send_all(end: TaskChannel, messages: Sequence[TaskMessage]) -> None:
    """Send messages."""
    for message in messages:
        end.send(message)


def receive(channel: EpochChannel, messages: int) -> list[TaskMessage]:
    """Return that many messages."""
    received: list[TaskMessage] = []
    until = time.monotonic() + PATIENCE_S
    while len(received) < messages and (left_s := until - time.monotonic()) > 0:
        received += channel.receive(left_s)
    return received


def commands_of(end: TaskChannel, commands: int) -> list[TaskCommand]:
    """Return that many commands."""
    received: list[TaskCommand] = []

    def has_all() -> bool:
        received.extend(end.receive())
        return len(received) >= commands

    await_until(has_all, PATIENCE_S)
    return received


def has_lost_driver(end: TaskChannel) -> bool:
    """Return whether a task's end raises."""
    try:
        end.receive()
    except DriverLostError:
        return True
    return False


def resources() -> tuple[int, int]:
    """Return how many threads and file descriptors this process has."""
    gc.collect()
    return threading.active_count(), len(os.listdir("/dev/fd"))


SLOTS: Final = range(TASKS)
MESSAGES: Final[Sequence[TaskMessage]] = (
    TaskStarted(task_id(), "host", 4_711),
    report(0, 1),
    TaskReport(
        task_id(),
        PartitionOffsets({TopicPartition("a", 0): 1, TopicPartition("ä", 3): 2**62}),
        TaskProgress(5, 7, LatencyHistogram({0: 3, 12: 2})),
    ),
    TaskLostData(task_id(), DataLoss("CONDITION", "reason", "warning")),
    TaskFailed(task_id(), "KAFKA_DATA_LOSS", "two\nlines and a “quote”", is_permanent=True),
    TaskDrained(task_id()),
)
COMMANDS: Final[Sequence[TaskCommand]] = (
    AssignPartitions(offsets_of(0, 5)),
    RevokePartitions(offsets_of(0, 5)),
    StopTask(),
)
