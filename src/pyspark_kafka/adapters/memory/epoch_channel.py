"""The channel between a driver and tasks that are threads of one process."""

from __future__ import annotations

import hmac
import secrets
import uuid
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.messages import TaskCommand, TaskMessage
from ...domain.errors import DriverLostError
from ...ports.continuous import ChannelAddress, EpochChannel, TaskChannel
from ..inbox import Inbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.continuous.messages import TaskId

MEMORY: Final = "memory"
"""The ``kind`` of this channel's address; its location is unique in the process."""

_KEY_BYTES: Final = 32
_channels: Final[dict[str, MemoryEpochChannel]] = {}


@final
class MemoryEpochChannel(EpochChannel):
    """Queues of this process."""

    def __init__(self) -> None:
        self._address = ChannelAddress(MEMORY, uuid.uuid4().hex, secrets.token_bytes(_KEY_BYTES))
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
