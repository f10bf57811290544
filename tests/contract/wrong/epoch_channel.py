"""Drivers' and tasks' ends that break a promise of ``EpochChannel`` and ``TaskChannel``."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark_kafka.adapters.continuous.threads import MemoryEpochChannel, MemoryTaskChannel
from pyspark_kafka.domain.continuous.messages import TaskReport
from pyspark_kafka.domain.errors import DriverLostError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.ports.continuous import ChannelAddress, EpochChannel, TaskChannel
from pyspark_kafka.testing import EpochChannelContract

from .adapter import PortFaults, WrongAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.domain.continuous.messages import TaskCommand, TaskId, TaskMessage

DRIVER_TIMEOUT_S: Final = 0.2

_drivers: Final[dict[str, PassingDriver]] = {}


class PassingDriver(EpochChannel):
    """Passes every call to another driver's end, and can be silent."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self.channel = MemoryEpochChannel()
        self.is_silent = is_silent
        self.received_at = time.monotonic()
        _drivers[self.channel.address.location] = self

    @property
    def address(self) -> ChannelAddress:
        return self.channel.address

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        self.received_at = time.monotonic()
        return self.channel.receive(timeout_s)

    def send(self, task: TaskId, command: TaskCommand) -> None:
        self.channel.send(task, command)

    def close(self) -> None:
        self.channel.close()


class PassingTask(TaskChannel):
    """Passes every call to another task's end, and loses a driver that is silent."""

    def __init__(self, address: ChannelAddress) -> None:
        self.task = MemoryTaskChannel(address)
        self.driver = _drivers[address.location]
        self.connected_at = time.monotonic()

    def is_lost(self) -> bool:
        """Return whether the driver was silent for too long."""
        return self.driver.is_silent and _has_passed(self.connected_at)

    def send(self, message: TaskMessage) -> None:
        self._raise_if_lost()
        self.task.send(message)

    def receive(self) -> Sequence[TaskCommand]:
        self._raise_if_lost()
        return self.task.receive()

    def close(self) -> None:
        self.task.close()

    def _raise_if_lost(self) -> None:
        if self.is_lost():
            raise DriverLostError("nothing was heard from it")


def _has_passed(since: float) -> bool:
    return time.monotonic() - since >= DRIVER_TIMEOUT_S


class LastMessageFirst(PassingDriver):
    """Receives messages in the wrong order."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return super().receive(timeout_s)[::-1]


class ReceivesTwice(PassingDriver):
    """Receives each message twice."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return [each for message in super().receive(timeout_s) for each in (message, message)]


class ReceivesOne(PassingDriver):
    """Loses all but one of the messages that have come."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return super().receive(timeout_s)[:1]


class OffsetsOnly(PassingDriver):
    """Receives reports without their progress."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return [
            TaskReport(each.task, each.offsets) if isinstance(each, TaskReport) else each
            for each in super().receive(timeout_s)
        ]


class LastOfEachTask(PassingDriver):
    """Receives only the last message of each task."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return list({message.task: message for message in super().receive(timeout_s)}.values())


class WaitsForItsTime(PassingDriver):
    """Receives only when its time is up, also if messages have come."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        time.sleep(timeout_s)
        return super().receive(0)


class DoesNotWait(PassingDriver):
    """Receives what has come, and waits for nothing."""

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return super().receive(timeout_s / 100)


class SendsTwice(PassingDriver):
    """Sends each command twice."""

    def send(self, task: TaskId, command: TaskCommand) -> None:
        self.channel.send(task, command)
        self.channel.send(task, command)


class SendsToAll(PassingDriver):
    """Sends each command to every task."""

    def send(self, _task: TaskId, command: TaskCommand) -> None:
        for each in self.channel._commands:
            self.channel.send(each, command)


class SendsToTheSlot(PassingDriver):
    """Sends a command to any attempt of a slot."""

    def send(self, task: TaskId, command: TaskCommand) -> None:
        for each in self.channel._commands:
            if each.slot == task.slot:
                self.channel.send(each, command)


class KnowsItsTasks(PassingDriver):
    """Fails to send a command to a task that it does not know."""

    def send(self, task: TaskId, command: TaskCommand) -> None:
        self.channel._commands[task].put(command)


class SendsLater(PassingDriver):
    """Keeps the commands of a task that is gone for the next attempt."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__(is_silent=is_silent)
        self.kept: list[tuple[int, TaskCommand]] = []

    def send(self, task: TaskId, command: TaskCommand) -> None:
        if task not in self.channel._commands:
            self.kept.append((task.slot, command))
        self.channel.send(task, command)

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        received = super().receive(timeout_s)
        for message in received:
            for slot, command in self.kept:
                if slot == message.task.slot:
                    self.channel.send(message.task, command)
        return received


class StaysOpen(PassingDriver):
    """Does not disconnect its tasks when it is closed."""

    def close(self) -> None:
        pass


class JoinableForever(PassingDriver):
    """Lets tasks join when it is closed."""

    def close(self) -> None:
        self.channel._commands.clear()


class ClosesOnce(PassingDriver):
    """Fails when it is closed again."""

    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True
        self.channel.close()


class _Keyed(PassingDriver):
    """Has a key of its own making."""

    key = bytes(32)

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__(is_silent=is_silent)
        self.channel._address = replace(self.channel.address, key=self.key)


class OneKey(_Keyed):
    """Has the key of every other channel."""


class ShortKey(_Keyed):
    """Has a key that can be guessed."""

    key = b"secret"


class ShowsItsKey(PassingDriver):
    """Shows its key."""

    def __repr__(self) -> str:
        return f"ShowsItsKey({self.address.key.hex()})"


class LeavesAThread(PassingDriver):
    """Leaves a thread behind."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__(is_silent=is_silent)
        threading.Thread(target=threading.Event().wait, daemon=True).start()


class LeavesAFile(PassingDriver):
    """Leaves a file open."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__(is_silent=is_silent)
        os.open(os.devnull, os.O_RDONLY)


class LastCommandFirst(PassingTask):
    """Receives commands in the wrong order."""

    def receive(self) -> Sequence[TaskCommand]:
        return super().receive()[::-1]


class FirstCommandOnly(PassingTask):
    """Loses all but one of the commands that have come."""

    def receive(self) -> Sequence[TaskCommand]:
        return super().receive()[:1]


class WaitsForCommands(PassingTask):
    """Waits until a command comes."""

    def receive(self) -> Sequence[TaskCommand]:
        if commands := super().receive():
            return commands
        time.sleep(0.2)
        return super().receive()


class WaitsForTheDriver(PassingTask):
    """Waits until the driver has received a message."""

    def send(self, message: TaskMessage) -> None:
        super().send(message)
        time.sleep(0.2)


class LosesTheRest(PassingTask):
    """Loses what was not sent when it is closed."""

    def __init__(self, address: ChannelAddress) -> None:
        super().__init__(address)
        self.unsent: list[TaskMessage] = []

    def send(self, message: TaskMessage) -> None:
        self.unsent.append(message)
        while len(self.unsent) > 3:
            super().send(self.unsent.pop(0))


class ClosesSlowly(PassingTask):
    """Waits when it is closed until the driver has received everything."""

    def close(self) -> None:
        until = time.monotonic() + 3.5
        while time.monotonic() < until and not self.driver.channel._inbox._queue.empty():
            time.sleep(0.01)
        super().close()


class TaskClosesOnce(PassingTask):
    """Fails when it is closed again."""

    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True
        super().close()


class SpeaksForOthers(PassingTask):
    """Sends messages of other tasks."""

    def send(self, message: TaskMessage) -> None:
        self._raise_if_lost()
        self.driver.channel.deliver(message, self.task._commands)


class IgnoresTheKey(PassingTask):
    """Connects without the key."""

    def __init__(self, address: ChannelAddress) -> None:
        super().__init__(replace(address, key=_drivers[address.location].address.key))


class TaskShowsTheKey(PassingTask):
    """Shows the key."""

    def __repr__(self) -> str:
        return f"TaskShowsTheKey({self.driver.address.key.hex()})"


class TruncatesReports(PassingTask):
    """Sends the first thousand offsets of a report."""

    def send(self, message: TaskMessage) -> None:
        if isinstance(message, TaskReport):
            first = list(message.offsets.items())[:1_000]
            message = replace(message, offsets=PartitionOffsets(first))
        super().send(message)


class SplitsReports(PassingTask):
    """Sends a report of many partitions as two."""

    def send(self, message: TaskMessage) -> None:
        if not isinstance(message, TaskReport) or len(message.offsets) < 1_000:
            super().send(message)
            return
        offsets = list(message.offsets.items())
        for part in (offsets[:1_000], offsets[1_000:]):
            super().send(replace(message, offsets=PartitionOffsets(part)))


class NeverLosesIt(PassingTask):
    """Goes on without its driver, however long that is silent."""

    def is_lost(self) -> bool:
        return False


class LosesItTooSoon(PassingTask):
    """Loses a silent driver before the time-out."""

    def is_lost(self) -> bool:
        return self.driver.is_silent


class LosesABusyDriver(PassingTask):
    """Loses a driver that does not receive."""

    def is_lost(self) -> bool:
        return super().is_lost() or _has_passed(self.driver.received_at)


class LosesItWhenBusy(PassingTask):
    """Loses its driver if it does not look at its channel."""

    def __init__(self, address: ChannelAddress) -> None:
        super().__init__(address)
        self.looked_at = time.monotonic()

    def is_lost(self) -> bool:
        looked_at, self.looked_at = self.looked_at, time.monotonic()
        return super().is_lost() or _has_passed(looked_at)


class GoesOnAlone(PassingTask):
    """Goes on when its driver has closed the channel."""

    def send(self, message: TaskMessage) -> None:
        with suppress(DriverLostError):
            super().send(message)

    def receive(self) -> Sequence[TaskCommand]:
        with suppress(DriverLostError):
            return super().receive()
        return ()


class _ChannelContract(EpochChannelContract):
    driver_timeout_s = DRIVER_TIMEOUT_S
    driver: type[PassingDriver] = PassingDriver
    task_end: type[PassingTask] = PassingTask

    def open_channel(self) -> EpochChannel:
        return self.driver()

    def open_silent_channel(self) -> EpochChannel:
        return self.driver(is_silent=True)

    def connect(self, address: ChannelAddress, _task: TaskId) -> TaskChannel:
        return self.task_end(address)


def _suite(**ends: type) -> type:
    return type("EpochChannelContract", (_ChannelContract,), ends)


def _drivers_of(
    caught_by: Callable[..., None], *adapters: type[PassingDriver]
) -> list[WrongAdapter]:
    return [WrongAdapter(each, _suite(driver=each), caught_by) for each in adapters]


def _tasks_of(caught_by: Callable[..., None], *adapters: type[PassingTask]) -> list[WrongAdapter]:
    return [WrongAdapter(each, _suite(task_end=each), caught_by) for each in adapters]


_Suite = EpochChannelContract

EPOCH_CHANNEL_FAULTS: Final = PortFaults(
    _suite(),
    (
        *_drivers_of(
            _Suite.test_every_message_arrives_as_it_was_sent,
            *(LastMessageFirst, ReceivesTwice, ReceivesOne, OffsetsOnly),
        ),
        *_drivers_of(_Suite.test_many_tasks_send_at_once, LastOfEachTask),
        *_drivers_of(_Suite.test_receiving_returns_when_something_comes, WaitsForItsTime),
        *_drivers_of(_Suite.test_receiving_nothing_ends_in_time, DoesNotWait),
        *_drivers_of(_Suite.test_every_command_arrives_as_it_was_sent, SendsTwice),
        *_drivers_of(_Suite.test_each_task_gets_its_own_commands, SendsToAll),
        *_drivers_of(
            _Suite.test_a_command_for_an_unknown_task_is_lost, SendsToTheSlot, KnowsItsTasks
        ),
        *_drivers_of(_Suite.test_a_command_for_a_task_that_is_gone_is_lost, SendsLater),
        *_drivers_of(
            _Suite.test_a_task_of_a_closed_channel_loses_its_driver, StaysOpen, ClosesOnce
        ),
        *_drivers_of(_Suite.test_a_closed_channel_cannot_be_joined, JoinableForever),
        *_drivers_of(_Suite.test_every_channel_has_its_own_key, OneKey),
        *_drivers_of(_Suite.test_the_key_is_shown_nowhere, ShortKey, ShowsItsKey),
        *_drivers_of(_Suite.test_nothing_is_left_after_closing, LeavesAThread, LeavesAFile),
    ),
)
TASK_CHANNEL_FAULTS: Final = PortFaults(
    _suite(),
    (
        *_tasks_of(
            _Suite.test_every_command_arrives_as_it_was_sent, LastCommandFirst, FirstCommandOnly
        ),
        *_tasks_of(_Suite.test_a_task_does_not_wait, WaitsForCommands, WaitsForTheDriver),
        *_tasks_of(
            _Suite.test_a_task_that_closes_sends_the_rest_first, LosesTheRest, TaskClosesOnce
        ),
        *_tasks_of(_Suite.test_a_task_closes_in_time, ClosesSlowly),
        *_tasks_of(_Suite.test_a_message_of_another_task_is_dropped, SpeaksForOthers),
        *_tasks_of(_Suite.test_a_task_without_the_key_is_refused, IgnoresTheKey),
        *_tasks_of(_Suite.test_the_key_is_shown_nowhere, TaskShowsTheKey),
        *_tasks_of(_Suite.test_a_large_report_arrives, TruncatesReports, SplitsReports),
        *_tasks_of(_Suite.test_a_silent_driver_is_lost, NeverLosesIt, LosesItTooSoon),
        *_tasks_of(_Suite.test_a_busy_driver_keeps_its_tasks, LosesABusyDriver),
        *_tasks_of(_Suite.test_a_busy_task_keeps_its_driver, LosesItWhenBusy),
        *_tasks_of(_Suite.test_a_task_of_a_closed_channel_loses_its_driver, GoesOnAlone),
    ),
)
