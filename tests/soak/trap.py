"""A place at which a driver is killed or held, armed by another process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, final

from pyspark_kafka.ports.deadline import Deadline

from .processes import kill_session

if TYPE_CHECKING:
    import enum
    from pathlib import Path

_POLL_S: Final = 0.01


@final
class Trap:
    """Whether a driver is to be killed at a point, in a file that others can see."""

    def __init__(self, directory: Path) -> None:
        """Take a directory that exists."""
        self._armed = directory / "armed"
        self._sprung = directory / "sprung"

    def arm(self, point: enum.Enum) -> None:
        """Have the next driver killed that comes there."""
        self._sprung.write_text(point.name)
        self._sprung.replace(self._armed)

    @property
    def is_armed(self) -> bool:
        """Whether no process has come there yet."""
        return self._armed.exists()

    def disarm(self) -> None:
        """Let all processes pass."""
        self._armed.unlink(missing_ok=True)

    def reach(self, point: enum.Enum) -> None:
        """Kill this process's whole session, if it is to be killed here."""
        if self.spring(point):
            kill_session(os.getsid(0))

    def spring(self, point: enum.Enum) -> bool:
        """Return whether this is the first process or thread that comes to an armed point."""
        try:
            if self._armed.read_text() != point.name:
                return False
            self._armed.replace(self._sprung)
        except FileNotFoundError:
            return False
        return True

    def hold(self, point: enum.Enum, seconds: float) -> None:
        """Wait for ``release``, if this is the first that comes to an armed point."""
        if self.spring(point):
            Deadline.after(seconds).poll(lambda: not self._sprung.exists(), _POLL_S)

    def release(self) -> None:
        """Let those go on that are held."""
        self._armed.unlink(missing_ok=True)
        self._sprung.unlink(missing_ok=True)
