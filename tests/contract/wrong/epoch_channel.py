from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from pyspark_kafka.adapters.continuous.threads import MemoryEpochChannel, MemoryTaskChannel
from pyspark_kafka.domain.continuous.messages import TaskCommand, TaskId, TaskMessage, TaskReport
from pyspark_kafka.domain.errors import DriverLostError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.ports.continuous import ChannelAddress, EpochChannel, TaskChannel
from pyspark_kafka.testing import EpochChannelContract

from .adapter import Faults, PassesOn

DRIVER_TIMEOUT_S: Final = 0.2

_drivers: Final[dict[str, PassingDriver]] = {}


class PassingDriver(PassesOn, EpochChannel):
    """Passes every call to another driver's end, and can be silent."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__(MemoryEpochChannel())
        self.is_silent = is_silent
        self.received_at = time.monotonic()
        _drivers[self.inner.address.location] = self

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        self.received_at = time.monotonic()
        return self.inner.receive(timeout_s)


class PassingTask(PassesOn, TaskChannel):
    """Passes every call to another task's end, and loses a driver that is silent."""

    def __init__(self, address: ChannelAddress) -> None:
        super().__init__(MemoryTaskChannel(address))
        self.driver = _drivers[address.location]
        self.connected_at = time.monotonic()

    def is_lost(self) -> bool:
        return self.driver.is_silent and _has_passed(self.connected_at)

    def send(self, message: TaskMessage) -> None:
        self._raise_if_lost()
        self.inner.send(message)

    def receive(self) -> Sequence[TaskCommand]:
        self._raise_if_lost()
        return self.inner.receive()

    def _raise_if_lost(self) -> None:
        if self.is_lost():
            raise DriverLostError("nothing was heard from it")


def _close_once(channel: PassesOn) -> None:
    if channel.seen:
        raise RuntimeError("it is closed")
    channel.seen["is_closed"] = True
    channel.inner.close()


def _has_passed(since: float) -> bool:
    return time.monotonic() - since >= DRIVER_TIMEOUT_S


class _ChannelContract(EpochChannelContract):
    driver_timeout_s = DRIVER_TIMEOUT_S
    driver: Any = PassingDriver
    task_end: Any = PassingTask

    def open_channel(self) -> EpochChannel:
        return self.driver()

    def open_silent_channel(self) -> EpochChannel:
        return self.driver(is_silent=True)

    def connect(self, address: ChannelAddress, _task: TaskId) -> TaskChannel:
        return self.task_end(address)


def _suite_of_driver(driver: type) -> type:
    return type("EpochChannelContract", (_ChannelContract,), {"driver": driver})


def _suite_of_task(task: type) -> type:
    return type("EpochChannelContract", (_ChannelContract,), {"task_end": task})


_Suite = EpochChannelContract

wrong_driver: Final = Faults(PassingDriver, _suite_of_driver)
wrong_task: Final = Faults(PassingTask, _suite_of_task)


@wrong_driver(_Suite.test_every_message_arrives_as_it_was_sent, "receive")
def receives_messages_in_the_wrong_order(self, timeout_s):
    return PassingDriver.receive(self, timeout_s)[::-1]


@wrong_driver(_Suite.test_every_message_arrives_as_it_was_sent, "receive")
def receives_each_message_twice(self, timeout_s):
    return [
        each for message in PassingDriver.receive(self, timeout_s) for each in (message, message)
    ]


@wrong_driver(_Suite.test_every_message_arrives_as_it_was_sent, "receive")
def loses_all_but_one_of_the_messages_that_have_come(self, timeout_s):
    return PassingDriver.receive(self, timeout_s)[:1]


@wrong_driver(_Suite.test_every_message_arrives_as_it_was_sent, "receive")
def receives_reports_without_their_progress(self, timeout_s):
    return [
        TaskReport(each.task, each.offsets) if isinstance(each, TaskReport) else each
        for each in PassingDriver.receive(self, timeout_s)
    ]


@wrong_driver(_Suite.test_many_tasks_send_at_once, "receive")
def receives_only_the_last_message_of_each_task(self, timeout_s):
    return list(
        {message.task: message for message in PassingDriver.receive(self, timeout_s)}.values()
    )


@wrong_driver(_Suite.test_receiving_returns_when_something_comes, "receive")
def receives_only_when_its_time_is_up_also_if_messages_have_come(self, timeout_s):
    time.sleep(timeout_s)
    return PassingDriver.receive(self, 0)


@wrong_driver(_Suite.test_receiving_nothing_ends_in_time, "receive")
def receives_what_has_come_and_waits_for_nothing(self, timeout_s):
    return PassingDriver.receive(self, timeout_s / 100)


@wrong_driver(_Suite.test_every_command_arrives_as_it_was_sent, "send")
def sends_each_command_twice(self, task, command):
    self.inner.send(task, command)
    self.inner.send(task, command)


@wrong_driver(_Suite.test_each_task_gets_its_own_commands, "send")
def sends_each_command_to_every_task(self, _task, command):
    for each in self.inner._commands:
        self.inner.send(each, command)


@wrong_driver(_Suite.test_a_command_for_an_unknown_task_is_lost, "send")
def sends_a_command_to_any_attempt_of_a_slot(self, task, command):
    for each in self.inner._commands:
        if each.slot == task.slot:
            self.inner.send(each, command)


@wrong_driver(_Suite.test_a_command_for_an_unknown_task_is_lost, "send")
def fails_to_send_a_command_to_a_task_that_it_does_not_know(self, task, command):
    self.inner._commands[task].put(command)


@wrong_driver(_Suite.test_a_command_for_a_task_that_is_gone_is_lost)
class SendsLater(PassingDriver):
    """Keeps the commands of a task that is gone for the next attempt."""

    def send(self, task, command):
        if task not in self.inner._commands:
            self.seen.setdefault(task.slot, []).append(command)
        self.inner.send(task, command)

    def receive(self, timeout_s):
        received = super().receive(timeout_s)
        for message in received:
            for command in self.seen.get(message.task.slot, ()):
                self.inner.send(message.task, command)
        return received


@wrong_driver(_Suite.test_a_task_of_a_closed_channel_loses_its_driver, "close")
def does_not_disconnect_its_tasks_when_it_is_closed(self):
    pass


@wrong_driver(_Suite.test_a_closed_channel_cannot_be_joined, "close")
def lets_tasks_join_when_it_is_closed(self):
    self.inner._commands.clear()


@wrong_driver(_Suite.test_a_task_of_a_closed_channel_loses_its_driver, "close")
def fails_when_it_is_closed_again(self):
    _close_once(self)


@wrong_driver(_Suite.test_every_channel_has_its_own_key, "__init__")
def has_the_key_of_every_other_channel(self, *, is_silent=False):
    PassingDriver.__init__(self, is_silent=is_silent)
    self.inner._address = replace(self.inner.address, key=bytes(32))


@wrong_driver(_Suite.test_the_key_is_shown_nowhere, "__init__")
def has_a_key_that_can_be_guessed(self, *, is_silent=False):
    PassingDriver.__init__(self, is_silent=is_silent)
    self.inner._address = replace(self.inner.address, key=b"secret")


@wrong_driver(_Suite.test_the_key_is_shown_nowhere, "__repr__")
def shows_its_key(self):
    return f"ShowsItsKey({self.address.key.hex()})"


@wrong_driver(_Suite.test_nothing_is_left_after_closing, "__init__")
def leaves_a_thread_behind(self, *, is_silent=False):
    PassingDriver.__init__(self, is_silent=is_silent)
    threading.Thread(target=threading.Event().wait, daemon=True).start()


@wrong_driver(_Suite.test_nothing_is_left_after_closing, "__init__")
def leaves_a_file_open(self, *, is_silent=False):
    PassingDriver.__init__(self, is_silent=is_silent)
    os.open(os.devnull, os.O_RDONLY)


@wrong_task(_Suite.test_every_command_arrives_as_it_was_sent, "receive")
def receives_commands_in_the_wrong_order(self):
    return PassingTask.receive(self)[::-1]


@wrong_task(_Suite.test_every_command_arrives_as_it_was_sent, "receive")
def loses_all_but_one_of_the_commands_that_have_come(self):
    return PassingTask.receive(self)[:1]


@wrong_task(_Suite.test_a_task_does_not_wait, "receive")
def waits_until_a_command_comes(self):
    if commands := PassingTask.receive(self):
        return commands
    time.sleep(0.2)
    return PassingTask.receive(self)


@wrong_task(_Suite.test_a_task_does_not_wait, "send")
def waits_until_the_driver_has_received_a_message(self, message):
    PassingTask.send(self, message)
    time.sleep(0.2)


@wrong_task(_Suite.test_a_task_that_closes_sends_the_rest_first, "send")
def loses_what_was_not_sent_when_it_is_closed(self, message):
    unsent = self.seen.setdefault("unsent", [])
    unsent.append(message)
    while len(unsent) > 3:
        PassingTask.send(self, unsent.pop(0))


@wrong_task(_Suite.test_a_task_closes_in_time, "close")
def waits_when_it_is_closed_until_the_driver_has_received_everything(self):
    until = time.monotonic() + 3.5
    while time.monotonic() < until and not self.driver.inner._inbox._queue.empty():
        time.sleep(0.01)
    self.inner.close()


@wrong_task(_Suite.test_a_task_that_closes_sends_the_rest_first, "close")
def a_task_fails_when_it_is_closed_again(self):
    _close_once(self)


@wrong_task(_Suite.test_a_message_of_another_task_is_dropped, "send")
def sends_messages_of_other_tasks(self, message):
    self._raise_if_lost()
    self.driver.inner.deliver(message, self.inner._commands)


@wrong_task(_Suite.test_a_task_without_the_key_is_refused, "__init__")
def connects_without_the_key(self, address):
    PassingTask.__init__(self, replace(address, key=_drivers[address.location].address.key))


@wrong_task(_Suite.test_the_key_is_shown_nowhere, "__repr__")
def shows_the_key(self):
    return f"TaskShowsTheKey({self.driver.address.key.hex()})"


@wrong_task(_Suite.test_a_large_report_arrives, "send")
def sends_the_first_thousand_offsets_of_a_report(self, message):
    if isinstance(message, TaskReport):
        first = list(message.offsets.items())[:1_000]
        message = replace(message, offsets=PartitionOffsets(first))
    PassingTask.send(self, message)


@wrong_task(_Suite.test_a_large_report_arrives, "send")
def sends_a_report_of_many_partitions_as_two(self, message):
    if not isinstance(message, TaskReport) or len(message.offsets) < 1_000:
        PassingTask.send(self, message)
        return
    offsets = list(message.offsets.items())
    for part in (offsets[:1_000], offsets[1_000:]):
        PassingTask.send(self, replace(message, offsets=PartitionOffsets(part)))


@wrong_task(_Suite.test_a_silent_driver_is_lost, "is_lost")
def goes_on_without_its_driver_however_long_that_is_silent(self):
    return False


@wrong_task(_Suite.test_a_silent_driver_is_lost, "is_lost")
def loses_a_silent_driver_before_the_time_out(self):
    return self.driver.is_silent


@wrong_task(_Suite.test_a_busy_driver_keeps_its_tasks, "is_lost")
def loses_a_driver_that_does_not_receive(self):
    return PassingTask.is_lost(self) or _has_passed(self.driver.received_at)


@wrong_task(_Suite.test_a_busy_task_keeps_its_driver, "is_lost")
def loses_its_driver_if_it_does_not_look_at_its_channel(self):
    looked_at = self.seen.get("looked_at", self.connected_at)
    self.seen["looked_at"] = time.monotonic()
    return PassingTask.is_lost(self) or _has_passed(looked_at)


@wrong_task(_Suite.test_a_task_of_a_closed_channel_loses_its_driver)
class GoesOnAlone(PassingTask):
    """Continues when its driver has closed the channel."""

    def send(self, message):
        with suppress(DriverLostError):
            super().send(message)

    def receive(self):
        with suppress(DriverLostError):
            return super().receive()
        return ()
