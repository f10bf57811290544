"""The connection between the driver of a continuous query and its tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.continuous.messages import TaskCommand, TaskId, TaskMessage

DRIVER_TIMEOUT_S: Final = 15.0
"""How long a task that hears nothing from its driver goes on."""


@final
@dataclass(frozen=True, slots=True)
class ChannelAddress:
    """Where and how tasks connect; pickled to executors. ``key`` authenticates both sides."""

    kind: str
    location: str
    key: bytes = field(repr=False)
    options: str = field(default="{}", repr=False)


class EpochChannel(ABC):
    """The driver's end, for all tasks of a query. Used by one thread."""

    @property
    @abstractmethod
    def address(self) -> ChannelAddress:
        """What tasks need to connect."""

    @abstractmethod
    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        """Return messages in the order of each task as soon as there are any, or none in time.

        Each message is returned once. What is malformed, or not authenticated, is dropped.
        """

    @abstractmethod
    def send(self, task: TaskId, command: TaskCommand) -> None:
        """Send a command to a task that has sent a message; lost if the task is gone.

        Commands reach a task in the order in which they are sent, each once.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect all tasks, which then end. A second call does nothing."""


class TaskChannel(ABC):
    """A task's end. Used by one thread. Both methods return at once.

    :raises DriverLostError: if the driver has closed its end, or nothing was heard from it for
        ``DRIVER_TIMEOUT_S``. It is not raised while the driver's process lives and can be reached.
    """

    @abstractmethod
    def send(self, message: TaskMessage) -> None:
        """Send a message to the driver."""

    @abstractmethod
    def receive(self) -> Sequence[TaskCommand]:
        """Return the commands that have come since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Send what was not sent yet, for a second at most, and disconnect."""
