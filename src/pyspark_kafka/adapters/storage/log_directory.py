"""What a metadata log needs of a directory, whatever the storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


class LogFile(NamedTuple):
    """A file of a directory, and when it was written: seconds since the epoch, if known."""

    name: str
    modified: float | None


class LogDirectory(ABC):
    """A directory that may not exist yet. Each means raises the errors of its own storage."""

    @abstractmethod
    def create(self, name: str, content: bytes) -> bool:
        """Make a file, whole and once: ``False`` if there is one of that name already."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Give the content of a file, or ``None`` if there is none of that name."""

    @abstractmethod
    def files(self) -> Iterable[LogFile]:
        """Give what the storage lists at this moment, without directories."""

    @abstractmethod
    def remove(self, names: Collection[str]) -> None:
        """Delete files. Those that are not there are passed over."""
