"""The directory of a metadata log or a channel, independent of the storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import NamedTuple


class LogFile(NamedTuple):
    """A file, and its modification time in seconds since the epoch, if known."""

    name: str
    modified: float | None


class LogDirectory(ABC):
    """A directory that may not exist yet. Methods raise the errors of the storage."""

    @abstractmethod
    def create(self, name: str, content: bytes) -> bool:
        """Create a file atomically; return ``False`` if it exists already."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or ``None`` if it does not exist."""

    @abstractmethod
    def files(self) -> Iterable[LogFile]:
        """Return the files that the storage lists now, without directories."""

    @abstractmethod
    def remove(self, names: Collection[str]) -> None:
        """Delete files; ignore those that do not exist."""
