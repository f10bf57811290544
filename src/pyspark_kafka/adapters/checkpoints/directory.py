"""A directory of a log, which each storage implements: the names of its files, and its failures."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MetadataLogError, PysparkKafkaError
from ...domain.options.option import INT64_MAX
from ...domain.security.secrets import PORT_OR_PASSWORD, URL_LOGIN, hide, without_secrets

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""The largest file that is read: the offsets of about two million partitions."""

OPERATION_S: Final = 60.0
"""How long an operation on one file may take, on a storage that is reached by a network."""


class SafeModeError(OSError):
    """A NameNode is in safe mode, in which it changes no file."""


class UnexpectedResponseError(OSError):
    """A server has sent a response that does not belong to the operation, such as a login page."""


class OversizedFileError(OSError):
    """A file is larger than ``MAX_FILE_BYTES``, so neither this library nor Spark wrote it."""

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

    Methods raise ``TimeoutError`` if a remote storage does not end an operation in ``OPERATION_S``.
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

        :raises OversizedFileError: if it is larger than ``MAX_FILE_BYTES``; it is then not read.
        """

    @abstractmethod
    def files(self) -> Iterable[LogFile]:
        """Return the files that the storage lists now, without directories."""

    @abstractmethod
    def remove(self, names: Collection[str]) -> None:
        """Delete files; ignore those that do not exist."""


def require_size(content: bytes) -> bytes:
    """Return a file's content; ``MAX_FILE_BYTES`` + 1 bytes are enough to refuse the file.

    :raises OversizedFileError: if the content is more than ``MAX_FILE_BYTES``.
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


_LENGTH: Final = 240
# The address of a storage may be shown; any other option may be a secret.
_PUBLIC: Final = frozenset({"endpoint_url", "region_name", "host", "port", "user"})
_QUERY: Final = re.compile(r"\?[^\s'\")]*")
_SEPARATOR: Final = re.compile("[/?#]")
"""The end of a URL's host, for libraries that split a URL whose password is not encoded."""


@contextmanager
def failures_of(path: StoragePath) -> Iterator[None]:
    """Raise any error of a storage as a ``MetadataLogError`` that names the path."""
    try:
        yield
    except PysparkKafkaError:
        raise
    except Exception as error:  # noqa: BLE001 - the storages' exceptions have no common base
        # The storage's own exception is not chained, since it may contain a token.
        raise MetadataLogError(str(path), problem_of(error, path)) from None


def problem_of(error: Exception, path: StoragePath) -> str:
    """Return the meaning of a storage's exception in one line, with what to check."""
    if isinstance(error, OversizedFileError):
        return str(error)
    reason = _one_line(error, path)
    if isinstance(error, UnexpectedResponseError):
        return (
            f"The server does not respond as WebHDFS does: {reason}. A gateway may need a new "
            "login, or https (storage option 'use_https'), or the address is another server's"
        )
    return _meaning(error, reason)


def _meaning(error: Exception, reason: str) -> str:
    if isinstance(error, SafeModeError):
        return (
            f"The NameNode is in safe mode: {reason}. Ask it with 'hdfs dfsadmin -safemode get'. "
            "Its logs say whether DataNodes or space are missing, or an administrator turned it on"
        )
    if isinstance(error, PermissionError) or _is_a(error, "Credentials"):
        return (
            f"The storage refuses access: {reason}. Check the credentials in the storage options, "
            "or in the environment, and the permissions of the directory"
        )
    if isinstance(error, ImportError):
        return f"The storage's package cannot be imported: {reason}. Install it again"
    if isinstance(error, FileNotFoundError):
        return f"The bucket or directory does not exist: {reason}. Check its name"
    if isinstance(error, ConnectionError | TimeoutError) or _is_a(error, "Connection", "Timeout"):
        return f"The storage does not answer: {reason}. Check its address, and that it is running"
    return f"The storage failed: {reason}. Check that it has free space, and see its logs"


def _is_a(error: Exception, *words: str) -> bool:
    """Whether a class of the exception has such a name; vendors' packages are optional."""
    return any(word in kind.__name__ for kind in type(error).__mro__ for word in words)


def _one_line(error: Exception, path: StoragePath) -> str:
    # Hadoop's servers append their stack trace to the first line.
    lines = str(error).strip().splitlines() or ["no reason given"]
    text = " ".join(lines[0].split())
    secrets = (*_texts(path.options), *_user_information(path.url))
    text = without_secrets(_QUERY.sub("", hide(text, secrets))).rstrip(".")
    shown = text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."
    return f"{type(error).__name__}: {shown}"


def _texts(options: Any) -> Iterator[str]:
    if isinstance(options, dict):
        for name, value in options.items():
            public = name in _PUBLIC and isinstance(value, str)
            yield from _user_information(value) if public else _texts(value)
    elif isinstance(options, list):
        for value in options:
            yield from _texts(value)
    elif isinstance(options, str):
        yield options


def _user_information(url: str) -> Iterator[str]:
    """Yield ``user:password`` of a URL, the password, and the password's parts between slashes."""
    login = URL_LOGIN.search(url)
    found = login or PORT_OR_PASSWORD.search(url)
    user = found[0].lstrip("/").removesuffix("@") if found else url.rpartition("@")[0]
    password = user.partition(":")[2]
    yield from (user, password, unquote(password))
    if login is not None:
        yield from _SEPARATOR.split(password)
