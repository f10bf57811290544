"""A directory of fsspec's filesystem in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import final

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from .log_directory import LogDirectory, LogFile, require_size


@final
class MemoryDirectory(LogDirectory):
    """Files in the dictionary that all ``memory://`` filesystems of a process share.

    fsspec's own calls are not atomic, and its readers share one position in a file. The
    dictionary's ``setdefault`` is atomic.
    """

    def __init__(self, filesystem: MemoryFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._prefix = f"{path}/"

    def create(self, name: str, content: bytes) -> bool:
        path = self._prefix + name
        file = MemoryFile(self._filesystem, path, content)
        return self._filesystem.store.setdefault(path, file) is file

    def replace(self, name: str, content: bytes) -> None:
        path = self._prefix + name
        self._filesystem.store[path] = MemoryFile(self._filesystem, path, content)

    def read(self, name: str) -> bytes | None:
        file = self._filesystem.store.get(self._prefix + name)
        return None if file is None else require_size(bytes(file.getvalue()))

    def files(self) -> Iterator[LogFile]:
        for path in tuple(self._filesystem.store):
            name = path.removeprefix(self._prefix)
            if name != path and "/" not in name:
                yield LogFile(name, None)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self._filesystem.store.pop(self._prefix + name, None)
