"""A file system of a few megabytes, which tests fill."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

from tests.slowness import bound_s

_COMMAND_S: Final = bound_s(30)
_PAGE_BYTES: Final = 4_096
_PAGES_AT_ONCE: Final = 256
_BALLAST: Final = "ballast"


@final
@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A mounted file system in memory."""

    path: Path

    def fill(self, free_pages: int = 0) -> None:
        """Leave so many pages of 4 kB free."""
        # Others may write meanwhile.
        with suppress(OSError), (self.path / _BALLAST).open("ab", buffering=0) as ballast:
            while (left := self.free_pages() - free_pages) > 0:
                ballast.write(bytes(_PAGE_BYTES * min(left, _PAGES_AT_ONCE)))

    def make_room(self) -> None:
        (self.path / _BALLAST).unlink(missing_ok=True)

    def free_pages(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize // _PAGE_BYTES


@cache
def can_mount() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory(prefix="small-disk-") as directory:
        if not _run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory):
            return False
        return _run("umount", "--lazy", directory)


@contextmanager
def mounted_at(directory: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a small disk at an empty directory until the block ends; its files are lost then.

    :raises OSError: if this user may not.
    """
    size = f"size={megabytes}m"
    if not _run("mount", "-t", "tmpfs", "-o", size, "tmpfs", str(directory)):
        raise OSError(f"no file system can be mounted at {directory}")
    try:
        yield SmallDisk(directory)
    finally:
        _run("umount", "--lazy", str(directory))


def _run(*command: str) -> bool:
    """Return whether a command ended well."""
    return (
        subprocess.run(command, check=False, capture_output=True, timeout=_COMMAND_S).returncode
        == 0
    )
