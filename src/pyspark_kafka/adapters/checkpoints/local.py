"""A directory of a local filesystem, without fsspec."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from ...domain.errors import UnsupportedFeatureError
from .directory import MAX_FILE_BYTES, LogDirectory, LogFile, require_size, temporary_name

_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NO_EXCLUSION: Final = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_AT_FDCWD: Final = -100  # fcntl.h
_RENAME_NOREPLACE: Final = 1  # linux/fs.h
_RENAME_EXCL: Final = 4  # stdio.h of macOS


def link_or_rename(source: Path, target: Path) -> bool:
    """Link or rename ``source`` to ``target`` unless that exists; return whether it did not.

    ``source`` may still exist afterwards.

    :raises UnsupportedFeatureError: if the filesystem has neither links nor exclusive renames.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        # An NFS server may answer so to a retried request whose first response was lost: open(2),
        # under O_EXCL.
        return source.stat().st_nlink > 1
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return rename_exclusively(source, target)
    return True


def rename_exclusively(source: Path, target: Path) -> bool:
    """Rename a file unless the new name exists; return whether it did not.

    :raises UnsupportedFeatureError: if the system or the filesystem has no such rename.
    """
    number = _rename(os.fsencode(source), os.fsencode(target))
    if number == errno.EEXIST:
        return False
    if number in _NO_EXCLUSION:
        raise UnsupportedFeatureError(
            "A metadata log",
            "be kept on a filesystem with neither hard links nor exclusive renames: choose a "
            "directory of another one",
        )
    if number:
        raise OSError(number, os.strerror(number), str(source), None, str(target))
    return True


def _rename(source: bytes, target: bytes) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(source, target, _RENAME_EXCL)
        else:
            failed = library.renameat2(_AT_FDCWD, source, _AT_FDCWD, target, _RENAME_NOREPLACE)
    except AttributeError:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0


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
    """Give files that root has made to the owner of their directory, whose query reads them."""
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
