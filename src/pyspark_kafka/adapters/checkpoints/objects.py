"""The objects of a bucket with a common prefix."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, final

from fsspec.asyn import AsyncFileSystem, sync
from fsspec.exceptions import FSTimeoutError

from ...domain.errors import UnsupportedFeatureError
from ...ports.clock import Deadline
from .directory import (
    MAX_FILE_BYTES,
    OPERATION_S,
    LogDirectory,
    LogFile,
    require_size,
    temporary_name,
)

_MAX_CONFLICTS: Final = 20
_CONFLICT_SECONDS: Final = 0.05
_MIN_S: Final = 0.001  # fsspec takes 0 for no time-out
_MODIFIED: Final = ("LastModified", "last_modified", "mtime")  # of s3fs, adlfs and gcsfs
_WRITER: Final = "writer"
_NO_RANGE: Final = 416  # a status of HTTP, which is the code of gcsfs' exception


@final
class ObjectDirectory(LogDirectory):
    """Objects that are put on the condition that they do not exist.

    Storages with S3's protocol may not support the condition, and then silently replace an object;
    so may older versions of their Python packages. Before the first object, a probe object is
    written twice, and the second write has to fail.

    The packages retry requests, with a time-out for each byte of each attempt: the methods limit
    the time of all attempts together.
    """

    def __init__(self, filesystem: AsyncFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._is_exclusive = False

    def create(self, name: str, content: bytes) -> bool:
        deadline = Deadline.after(OPERATION_S)
        self._check_exclusion(deadline)
        return self._put(name, content, deadline)

    def replace(self, name: str, content: bytes) -> None:
        self._ask("_pipe_file", self._child(name), content)

    def read(self, name: str) -> bytes | None:
        try:
            # This is one request; asking for the size first would be another.
            content: bytes = self._ask(
                "_cat_file", self._child(name), start=0, end=MAX_FILE_BYTES + 1
            )
        except FileNotFoundError as error:
            _check_bucket(error)
            return None
        except Exception as error:
            if _is_empty(error):
                return b""
            raise
        return require_size(content)

    def files(self) -> Iterator[LogFile]:
        try:
            found = self._ask("_ls", self._path, detail=True)
        except FileNotFoundError as error:
            _check_bucket(error)
            return
        for info in found:
            if info["type"] == "file":
                yield LogFile(info["name"].rpartition("/")[2], _modified(info))

    def remove(self, names: Collection[str]) -> None:
        self._remove(names, Deadline.after(OPERATION_S))

    def _child(self, name: str) -> str:
        return f"{self._path}/{name}"

    def _ask(self, method: str, *args: Any, deadline: Deadline | None = None, **named: Any) -> Any:
        """Call an asynchronous method of the filesystem, which tries requests again.

        :raises TimeoutError: if it does not end in time.
        """
        timeout_s = OPERATION_S if deadline is None else max(_MIN_S, deadline.remaining)
        call = getattr(self._filesystem, method)
        try:
            return sync(self._filesystem.loop, call, *args, timeout=timeout_s, **named)
        except FSTimeoutError as error:
            raise TimeoutError("its response was not complete in time") from error

    def _remove(self, names: Collection[str], deadline: Deadline) -> None:
        if names:
            with suppress(FileNotFoundError):
                self._ask("_rm", [self._child(name) for name in names], deadline=deadline)

    def _check_exclusion(self, deadline: Deadline) -> None:
        if self._is_exclusive:
            return
        probe = temporary_name("probe")
        self._put(probe, b"", deadline)
        try:
            if self._put(probe, b"", deadline):
                raise _no_exclusion("a conditional put replaces an existing object")
        finally:
            with suppress(OSError):
                self._remove([probe], deadline)
        self._is_exclusive = True

    def _put(self, name: str, content: bytes, deadline: Deadline) -> bool:
        path, writer = self._child(name), uuid.uuid4().hex
        for _ in range(_MAX_CONFLICTS):
            try:
                self._put_new(path, content, writer, deadline)
            except FileExistsError:
                return self._is_signed(path, writer, deadline)
            except OSError as error:
                if _code(error) in {"PreconditionFailed", "412"}:
                    return self._is_signed(path, writer, deadline)
                if _code(error) not in {"ConditionalRequestConflict", "409"}:
                    raise
                # S3 asks to retry: the other request may still fail.
                time.sleep(_CONFLICT_SECONDS)
            else:
                return True
        raise OSError(f"S3 found another writer of '{name}' {_MAX_CONFLICTS} times, and no object")

    def _put_new(self, path: str, content: bytes, writer: str, deadline: Deadline) -> None:
        if not self._is_s3():
            # adlfs passes other metadata, and Azure's client adds the metadata of headers.
            is_google = "gs" in self._filesystem.protocol
            signed = (
                {"metadata": {_WRITER: writer}}
                if is_google
                else {"headers": {f"x-ms-meta-{_WRITER}": writer}}
            )
            self._ask("_pipe_file", path, content, deadline=deadline, mode="create", **signed)
            return
        bucket, key, _ = self._filesystem.split_path(path)
        # Older releases of s3fs ignore `mode`. All leave out parameters that their botocore does
        # not know.
        self._ask(
            "_call_s3",
            "put_object",
            Bucket=bucket,
            Key=key,
            Body=content,
            IfNoneMatch="*",
            Metadata={_WRITER: writer},
            deadline=deadline,
        )

    def _is_signed(self, path: str, writer: str, deadline: Deadline) -> bool:
        """Whether an existing object is from this writer.

        Clients retry a request whose response was lost, and then find their own object.
        """
        try:
            if self._is_s3():
                return bool(self._ask("_getxattr", path, _WRITER, deadline=deadline) == writer)
            metadata = self._ask("_info", path, deadline=deadline).get("metadata") or {}
            return bool(metadata.get(_WRITER) == writer)
        except FileNotFoundError:
            return False

    def _is_s3(self) -> bool:
        return "s3" in self._filesystem.protocol


def _no_exclusion(reason: str) -> UnsupportedFeatureError:
    problem = f"be kept on a storage that cannot arbitrate between concurrent writers: {reason}"
    return UnsupportedFeatureError("A metadata log", f"{problem}. Choose another storage")


def _check_bucket(error: FileNotFoundError) -> None:
    if _code(error) == "NoSuchBucket":
        raise error


def _is_empty(error: Exception) -> bool:
    """Whether an object has no byte, so that a storage cannot satisfy any range (RFC 9110)."""
    return _code(error) in {"InvalidRange", "416"} or getattr(error, "code", None) == _NO_RANGE


def _code(error: Exception) -> str:
    """Return S3's error code, which s3fs keeps in the cause."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, dict) else ""


def _modified(info: dict[str, Any]) -> float | None:
    for name in _MODIFIED:
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
    return None
