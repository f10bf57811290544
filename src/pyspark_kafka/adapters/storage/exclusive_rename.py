"""Renames that fail if the new name exists."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path
from typing import Final

from ...domain.errors import UnsupportedFeatureError

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
