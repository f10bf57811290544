"""Tasks of a continuous query in threads of this process, and the channel to their driver."""

from __future__ import annotations

import hmac
import threading
import uuid
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ...domain.continuous.messages import TaskCommand, TaskMessage
from ...domain.errors import DriverLostError
from ...domain.text import describe_error
from ...ports.clock import Deadline
from ...ports.continuous import ChannelAddress, EpochChannel, TaskChannel, TaskRunner
from .frames import new_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...domain.continuous.messages import TaskId

T = TypeVar("T")


@final
class Inbox(Generic[T]):
    """A queue whose content is taken at once."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: SimpleQueue[T] = SimpleQueue()

    def put(self, message: T) -> None:
        """Append a message."""
        self._queue.put(message)

    def take(self, timeout_s: float = 0.0) -> Sequence[T]:
        """Return all messages in order as soon as there are any, or none in time."""
        taken: list[T] = []
        with suppress(Empty):
            # A negative time-out is a ValueError.
            taken.append(self._queue.get(timeout=max(0.0, timeout_s)))
            while True:
                taken.append(self._queue.get_nowait())
        return taken


MEMORY: Final = "memory"
"""The ``kind`` of this channel's address; its location is unique in the process."""

_channels: Final[dict[str, MemoryEpochChannel]] = {}


@final
class MemoryEpochChannel(EpochChannel):
    """Queues of this process."""

    def __init__(self) -> None:
        self._address = ChannelAddress(MEMORY, uuid.uuid4().hex, new_key())
        self._inbox: Inbox[TaskMessage] = Inbox()
        self._commands: dict[TaskId, Inbox[TaskCommand]] = {}
        _channels[self._address.location] = self

    @property
    def address(self) -> ChannelAddress:
        return self._address

    @property
    def is_closed(self) -> bool:
        """Whether the driver has closed its end."""
        return self._address.location not in _channels

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return self._inbox.take(timeout_s)

    def send(self, task: TaskId, command: TaskCommand) -> None:
        commands = self._commands.get(task)
        if commands is not None:
            commands.put(command)

    def close(self) -> None:
        _channels.pop(self._address.location, None)
        self._commands.clear()

    def deliver(self, message: TaskMessage, commands: Inbox[TaskCommand]) -> None:
        """Take a message of a task, which waits for commands in that inbox."""
        self._commands[message.task] = commands
        self._inbox.put(message)

    def forget(self, task: TaskId) -> None:
        """Drop the commands of a task that has disconnected."""
        self._commands.pop(task, None)


@final
class MemoryTaskChannel(TaskChannel):
    """A task's end, for a thread of the driver's process.

    :raises DriverLostError: if the process has no such channel, or it has another key.
    """

    def __init__(self, address: ChannelAddress) -> None:
        driver = _channels.get(address.location)
        if driver is None:
            raise DriverLostError("it has closed the channel, or is another process")
        if not hmac.compare_digest(driver.address.key, address.key):
            raise DriverLostError("it does not hold the key")
        self._driver = driver
        self._commands: Inbox[TaskCommand] = Inbox()
        self._task: TaskId | None = None
        self._is_closed = False

    def send(self, message: TaskMessage) -> None:
        self._raise_if_lost()
        if self._task is None:
            self._task = message.task
        if self._task == message.task:
            self._driver.deliver(message, self._commands)

    def receive(self) -> Sequence[TaskCommand]:
        commands = self._commands.take()
        if not commands:
            self._raise_if_lost()
        return commands

    def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._driver.forget(self._task)

    def _raise_if_lost(self) -> None:
        if self._is_closed or self._driver.is_closed:
            raise DriverLostError("the connection is closed")


@final
class ThreadTaskRunner(TaskRunner):
    """Runs each task in a daemon thread: without Spark, and without pickling ``run``.

    Python cannot end a thread. Tasks have to return by themselves, as they do when the driver
    closes its channel, before or during ``cancel``; until then the job is running.
    """

    def __init__(self) -> None:
        self._threads: tuple[threading.Thread, ...] = ()
        self._failures: list[str] = []
        self._is_cancelled = False

    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        if self.is_running():
            raise RuntimeError("The last job is still running.")
        self._failures = []
        self._is_cancelled = False
        self._threads = tuple(
            threading.Thread(
                target=self._run, args=(run, slot), name=f"pyspark_kafka task {slot}", daemon=True
            )
            for slot in range(tasks)
        )
        for thread in self._threads:
            thread.start()

    def is_running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def failure(self) -> str | None:
        return next(iter(self._failures), None)

    def cancel(self, timeout_s: float) -> None:
        self._is_cancelled = self.is_running()
        deadline = Deadline.after(timeout_s)
        for thread in self._threads:
            thread.join(deadline.remaining)

    def _run(self, run: Callable[[int, str], None], slot: int) -> None:
        try:
            run(slot, uuid.uuid4().hex)
        except BaseException as error:  # noqa: BLE001 - a thread has no caller to raise it to
            if not self._is_cancelled:
                self._failures.append(describe_error(error))
