"""The objects of a bucket with a common prefix."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, final

from fsspec import AbstractFileSystem

from ...domain.errors import UnsupportedFeatureError
from .file_names import temporary_name
from .log_directory import MAX_FILE_BYTES, LogDirectory, LogFile, require_size

_MAX_CONFLICTS: Final = 20
_CONFLICT_SECONDS: Final = 0.05
_MODIFIED: Final = ("LastModified", "last_modified", "mtime")  # of s3fs, adlfs and gcsfs
_WRITER: Final = "writer"
_NO_RANGE: Final = 416  # HTTP, which gcsfs has as the code of its exception


@final
class ObjectDirectory(LogDirectory):
    """Objects that are put on the condition that they do not exist.

    Storages with S3's protocol may not support the condition, and then silently replace an object;
    so may older versions of their Python packages. Before the first object, a probe object is
    written twice, and the second write has to fail.
    """

    def __init__(self, filesystem: AbstractFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._is_exclusive = False

    def create(self, name: str, content: bytes) -> bool:
        self._check_exclusion()
        return self._put(name, content)

    def read(self, name: str) -> bytes | None:
        try:
            # One request, unlike asking for the size first.
            content: bytes = self._filesystem.cat_file(
                self._child(name), start=0, end=MAX_FILE_BYTES + 1
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
            found = self._filesystem.ls(self._path, detail=True)
        except FileNotFoundError as error:
            _check_bucket(error)
            return
        for info in found:
            if info["type"] == "file":
                yield LogFile(info["name"].rpartition("/")[2], _modified(info))

    def remove(self, names: Collection[str]) -> None:
        if names:
            with suppress(FileNotFoundError):
                self._filesystem.rm([self._child(name) for name in names])

    def _child(self, name: str) -> str:
        return f"{self._path}/{name}"

    def _check_exclusion(self) -> None:
        if self._is_exclusive:
            return
        probe = temporary_name("probe")
        self._put(probe, b"")
        try:
            if self._put(probe, b""):
                raise _no_exclusion("a conditional put replaces an existing object")
        finally:
            with suppress(OSError):
                self.remove([probe])
        self._is_exclusive = True

    def _put(self, name: str, content: bytes) -> bool:
        path, writer = self._child(name), uuid.uuid4().hex
        for _ in range(_MAX_CONFLICTS):
            try:
                self._filesystem.pipe_file(path, content, mode="create", **self._signed(writer))
            except FileExistsError:
                return self._is_signed(path, writer)
            except OSError as error:
                if _code(error) in {"PreconditionFailed", "412"}:
                    return self._is_signed(path, writer)
                if _code(error) not in {"ConditionalRequestConflict", "409"}:
                    raise
                # S3 asks to retry: the other request may still fail.
                time.sleep(_CONFLICT_SECONDS)
            else:
                return True
        raise OSError(f"S3 found another writer of '{name}' {_MAX_CONFLICTS} times, and no object")

    def _signed(self, writer: str) -> dict[str, Any]:
        return {"Metadata": {_WRITER: writer}} if self._is_s3() else {}

    def _is_signed(self, path: str, writer: str) -> bool:
        """Whether an existing object is from this writer.

        S3 clients retry a request whose response was lost, and then find their own object.
        """
        if not self._is_s3():
            return False
        try:
            return bool(self._filesystem.getxattr(path, _WRITER) == writer)
        except FileNotFoundError:
            return False

    def _is_s3(self) -> bool:
        return "s3" in self._filesystem.protocol


def _no_exclusion(reason: str) -> UnsupportedFeatureError:
    problem = f"be kept on a storage that cannot arbitrate between concurrent writers: {reason}"
    return UnsupportedFeatureError("A metadata log", problem)


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
