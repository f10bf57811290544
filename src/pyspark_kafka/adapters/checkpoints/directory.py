"""A directory of a log, which each storage implements, and the names of its files."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from ...domain.options.option import INT64_MAX

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""The largest file that is read: the offsets of about two million partitions."""

OPERATION_S: Final = 60.0
"""How long an operation on one file may take, on a storage that is reached by a network."""


class OversizedFileError(OSError):
    """A file is larger than ``MAX_FILE_BYTES``, so it is none of ours and none of Spark's."""

    def __init__(self) -> None:
        super().__init__(
            f"The file is larger than {MAX_FILE_BYTES // 2**20} MiB, so that no query wrote it. "
            "Find out which program can write to the directory, and delete the file"
        )


class LogFile(NamedTuple):
    """A file, and its modification time in seconds since the epoch, if known."""

    name: str
    modified: float | None


class LogDirectory(ABC):
    """A directory that may not exist yet. Methods raise the errors of the storage.

    They raise ``TimeoutError`` if a remote storage does not end an operation in ``OPERATION_S``.
    """

    @abstractmethod
    def create(self, name: str, content: bytes) -> bool:
        """Create a file atomically; return ``False`` if it exists already."""

    @abstractmethod
    def replace(self, name: str, content: bytes) -> None:
        """Create a file or replace its content atomically: readers see all of one or the other."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or ``None`` if it does not exist.

        :raises OversizedFileError: if it is larger than ``MAX_FILE_BYTES``, which are not read.
        """

    @abstractmethod
    def files(self) -> Iterable[LogFile]:
        """Return the files that the storage lists now, without directories."""

    @abstractmethod
    def remove(self, names: Collection[str]) -> None:
        """Delete files; ignore those that do not exist."""


def require_size(content: bytes) -> bytes:
    """Return what was read; ``MAX_FILE_BYTES`` + 1 bytes are enough to refuse a file.

    :raises OversizedFileError: if that is more than ``MAX_FILE_BYTES``.
    """
    if len(content) > MAX_FILE_BYTES:
        raise OversizedFileError
    return content


_SUFFIX: Final = ".pyspark-kafka.tmp"
_BATCH: Final = re.compile(r"0|[1-9][0-9]{0,18}")


def file_name(batch_id: int) -> str:
    """Return the name of a batch's file.

    :raises ValueError: if the id is negative.
    """
    if batch_id < 0:
        raise ValueError(f"a batch id must not be negative, got {batch_id}")
    return str(batch_id)


def batch_id_of(name: str) -> int | None:
    """Return the batch of a file, or ``None`` for any other file."""
    batch_id = int(name) if _BATCH.fullmatch(name) else None
    # Spark's ids are Java's longs.
    return batch_id if batch_id is not None and batch_id <= INT64_MAX else None


def temporary_name(purpose: str) -> str:
    """Return a unique name that readers do not mistake for a batch."""
    return f".{purpose}.{uuid.uuid4().hex}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Whether a name is from ``temporary_name``. Spark's own temporary files have other names."""
    return name.startswith(".") and name.endswith(_SUFFIX)
