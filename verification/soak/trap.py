"""A place at which a driver is killed or held, or fails, armed by another process."""

import enum
import os
from pathlib import Path
from typing import Final

from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.ports.clock import Deadline

from .processes import kill_session

_POLL_S: Final = 0.01
_HELD_S: Final = 60.0


class Reaction(enum.Enum):
    """A trap's effect on the first process that reaches its point."""

    KILL = "kill its session"
    HOLD = "hold it until the trap is released"
    FAIL = "raise an error of brokers"


class Trap:
    """Whether something is to happen to a driver at a point, in a file that others can see."""

    def __init__(self, directory: Path) -> None:
        self._armed = directory / "armed"
        self._sprung = directory / "sprung"

    def arm(self, point: enum.Enum, reaction: Reaction = Reaction.KILL) -> None:
        """Have the next driver killed that comes there, or another reaction."""
        self._sprung.write_text(f"{point.name} {reaction.name}")
        self._sprung.replace(self._armed)

    @property
    def is_armed(self) -> bool:
        """Whether no process has come there yet."""
        return self._armed.exists()

    def disarm(self) -> None:
        self._armed.unlink(missing_ok=True)

    def reach(self, point: enum.Enum) -> None:
        """Do what is armed for this point, if anything is."""
        match self.spring(point):
            case Reaction.KILL:
                kill_session(os.getsid(0))
            case Reaction.HOLD:
                Deadline.after(_HELD_S).poll(lambda: not self._sprung.exists(), _POLL_S)
            case Reaction.FAIL:
                raise BrokerUnreachableError("a trap", 0.0)

    def spring(self, point: enum.Enum) -> Reaction | None:
        """Return the reaction for the first process or thread that comes to an armed point."""
        try:
            armed, reaction = self._armed.read_text().split()
            if armed != point.name:
                return None
            self._armed.replace(self._sprung)
        except FileNotFoundError:
            return None
        return Reaction[reaction]

    def release(self) -> None:
        self._armed.unlink(missing_ok=True)
        self._sprung.unlink(missing_ok=True)
