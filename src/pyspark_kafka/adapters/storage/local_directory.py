"""A directory on this machine's filesystems."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from .exclusive_rename import link_or_rename
from .file_names import temporary_name
from .log_directory import MAX_FILE_BYTES, LogDirectory, LogFile, require_size

_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)  # not on Windows


@final
class LocalDirectory(LogDirectory):
    """Files that are written and synced under temporary names, and then hard-linked.

    A writer that finds the name taken syncs the directory too, since it continues with that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self, name: str, content: bytes) -> bool:
        target = self._path / name
        if os.path.lexists(target):
            _sync(self._path)
            return False
        _make_directory(self._path)
        temporary = self._path / temporary_name(name)
        try:
            _write(temporary, content)
            self._remove_checksum(name)
            return link_or_rename(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
            _sync(self._path)

    def replace(self, name: str, content: bytes) -> None:
        _make_directory(self._path)
        temporary = self._path / temporary_name(name)
        try:
            _write(temporary, content)
            _copy_mode(self._path / name, temporary)
            self._remove_checksum(name)
            temporary.replace(self._path / name)
        finally:
            temporary.unlink(missing_ok=True)
            _sync(self._path)

    def read(self, name: str) -> bytes | None:
        try:
            # Opening a named pipe would wait for a writer otherwise.
            descriptor = os.open(self._path / name, os.O_RDONLY | _NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            return _read(descriptor)
        finally:
            os.close(descriptor)

    def files(self) -> Iterator[LogFile]:
        try:
            found = os.scandir(self._path)
        except FileNotFoundError:
            return
        with found:
            for entry in found:
                try:
                    if entry.is_file():
                        yield LogFile(entry.name, entry.stat().st_mtime)
                except FileNotFoundError:
                    continue  # deleted since the directory was read

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self._remove_checksum(name)
            (self._path / name).unlink(missing_ok=True)

    def _remove_checksum(self, name: str) -> None:
        # Hadoop keeps the checksums of `0` in `.0.crc`, and verifies any file named `0` with them:
        # delete them before their file is deleted or another gets its name.
        (self._path / f".{name}.crc").unlink(missing_ok=True)


def _make_directory(path: Path) -> None:
    if not path.is_dir():
        _make_directory(path.parent)
        path.mkdir(exist_ok=True)
        _give_away(path)
        _sync(path.parent)


def _read(descriptor: int) -> bytes | None:
    """Return the content of a file, ``None`` for a directory."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        raise OSError("it is not a regular file")
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return require_size(file.read(MAX_FILE_BYTES + 1))


def _write(path: Path, content: bytes) -> None:
    # With open(2), so that the umask applies: tempfile's files are private to their owner, and the
    # JVM may run as another user.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        _give_away(path)
        os.fsync(descriptor)


def _copy_mode(replaced: Path, path: Path) -> None:
    with suppress(FileNotFoundError):
        path.chmod(stat.S_IMODE(replaced.stat().st_mode))


def _give_away(path: Path) -> None:
    """Let what root has made belong to the owner of its directory, whose query reads it."""
    if sys.platform != "win32" and os.geteuid() == 0:
        owner = path.parent.stat()
        with suppress(PermissionError):  # a network filesystem may not trust this root
            os.chown(path, owner.st_uid, owner.st_gid)


def _sync(directory: Path) -> None:
    if os.name == "nt":
        return  # Windows opens no directories
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
