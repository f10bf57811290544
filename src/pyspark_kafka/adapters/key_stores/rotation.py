"""What is made from files that are replaced while a client runs: certificates and keys expire."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, final

from ...domain.errors import PysparkKafkaError
from ...domain.security.secret_names import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

T = TypeVar("T")

FileVersion: TypeAlias = tuple[int, int, int, int] | None
"""The device, inode, size and time (ns) of a file; ``None`` if there is none."""

log = logging.getLogger("pyspark_kafka")


@final
class Rotating(Generic[T]):
    """A value made from files, and made again once one of them has changed.

    Files are not replaced all at once: while they cannot be used, or do not belong together, the
    last value stays.
    """

    def __init__(self, files: Collection[str], make: Callable[[], T]) -> None:
        """Make the value; raise what ``make`` raises.

        ``make`` raises ``ValueError`` or ``PysparkKafkaError`` if the files cannot be used.
        """
        self._files = tuple(files)
        self._make = make
        # Before they are read, so that no later change is missed.
        self._versions = self._logged = self._found()
        self._value = make()

    def current(self) -> T:
        """Return the value of the current files, or the last one if they cannot be used yet."""
        found = self._found()
        if found != self._versions:
            try:
                self._value = self._make()
            except (ValueError, PysparkKafkaError) as error:
                self._log(found, error)
            else:
                self._versions = found
        return self._value

    def _found(self) -> tuple[FileVersion, ...]:
        return tuple(map(file_version, self._files))

    def _log(self, found: tuple[FileVersion, ...], error: Exception) -> None:
        if found != self._logged:
            self._logged = found
            log.warning(
                "The files of TLS have changed and cannot be used; new connections use what was "
                "read before until they are changed again: %s",
                without_secrets(str(error)),
            )


def file_version(path: str) -> FileVersion:
    """Return what tells a file's content from an earlier one; links are followed."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
