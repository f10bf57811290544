"""A directory of HDFS, over WebHDFS or HttpFS."""

from __future__ import annotations

import getpass
import math
import os
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar, final
from urllib.parse import quote

from requests.exceptions import ChunkedEncodingError, SSLError
from requests.exceptions import ConnectionError as LostConnectionError

from ..bounded_session import bound_session
from ..http import within
from .directory import (
    MAX_FILE_BYTES,
    OPERATION_S,
    LogDirectory,
    LogFile,
    SafeModeError,
    require_size,
    temporary_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from fsspec.implementations.webhdfs import WebHDFS
    from requests import Response

    from ...ports.clock import Deadline

T = TypeVar("T")

_PORT: Final = 9870  # of a NameNode's HTTP server since Hadoop 3; fsspec's default is from Hadoop 2
_CHUNK_BYTES: Final = 1024 * 1024
_KINDS: Final[dict[str, type[OSError]]] = {
    "AccessControlException": PermissionError,
    "SecurityException": PermissionError,
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
}
_KEEP: Final = "NONE"
_OVERWRITE: Final = "OVERWRITE"
_BUSY: Final = frozenset({"RetriableException", "StandbyException"})

_SAFE_MODE: Final = "safe mode"
"""What is in the text of a ``SafeModeException``, and of the ``RetriableException`` in whose place
an active NameNode sends it while it starts (``FSNamesystem.checkNameNodeSafeMode``)."""

_SAFE_MODE_PAUSE_S: Final = 1.0
_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
"""Between the attempts of a request; there are five attempts, as in S3's client."""


class ServerError(OSError):
    """A server failed, is busy or is not the active one: the request may succeed later."""


def webhdfs_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with the defaults of Hadoop's clients: the port, and this process's user."""
    completed = {"port": _PORT, **options}
    if not completed.keys() & {"user", "token", "kerberos"}:
        completed["user"] = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return completed


@final
class HdfsDirectory(LogDirectory):
    """Files that are written under temporary names, and renamed unless the name exists.

    What fails for a reason that may pass is repeated. A rename may have been carried out though its
    response was lost: then its source is gone, whose name no other writer knows.

    fsspec creates the authenticated session, and this class sends its own requests: fsspec's ``mv``
    drops the server's response, its ``cat_file`` returns error bodies as content, and its calls
    have no timeout. An operation on a file ends within ``OPERATION_S``.
    """

    def __init__(self, filesystem: WebHDFS, path: str) -> None:
        bound_session(filesystem.session)
        self._filesystem = filesystem
        self._path = path.rstrip("/")

    def create(self, name: str, content: bytes) -> bool:
        with within(OPERATION_S) as deadline:
            if _repeated(lambda: self._exists(name), deadline):
                return False
            return self._put(name, content, deadline, _KEEP)

    def replace(self, name: str, content: bytes) -> None:
        with within(OPERATION_S) as deadline:
            is_replaced = self._put(name, content, deadline, _OVERWRITE)
        if not is_replaced:
            raise OSError(f"the server cannot replace '{name}' atomically; HttpFS cannot")

    def read(self, name: str) -> bytes | None:
        with within(OPERATION_S) as deadline:
            return _repeated(lambda: self._read(name), deadline)

    def files(self) -> Iterator[LogFile]:
        with within(OPERATION_S) as deadline:
            statuses = _repeated(self._statuses, deadline)
        for status in statuses:
            if status["type"] == "FILE":
                yield LogFile(status["pathSuffix"], status["modificationTime"] / 1000)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            with within(OPERATION_S) as deadline:
                _repeated(partial(self._delete, name), deadline)

    def _put(self, name: str, content: bytes, deadline: Deadline, options: str) -> bool:
        temporary = _repeated(lambda: self._write_temporary(name, content), deadline)
        is_renamed = False
        try:
            is_renamed = self._rename_surely(temporary, name, deadline, options)
        finally:
            if not is_renamed:
                self._discard(temporary)
        return is_renamed

    def _write_temporary(self, name: str, content: bytes) -> str:
        """Write a file under a new name, which is returned: half a file may be under another."""
        temporary = temporary_name(name)
        try:
            created = self._ask("PUT", "CREATE", temporary, overwrite="false")
            self._follow("PUT", created, content)
        except OSError:
            self._discard(temporary)
            raise
        return temporary

    def _discard(self, name: str) -> None:
        with suppress(OSError):
            self._delete(name)

    def _rename_surely(self, source: str, target: str, deadline: Deadline, options: str) -> bool:
        """Rename a file, as the options of HDFS say; return whether this call did it."""
        attempts = 0

        def attempt() -> bool:
            nonlocal attempts
            attempts += 1
            try:
                if self._rename(source, target, options):
                    return True
            except FileNotFoundError:
                if attempts == 1:
                    raise
            return attempts > 1 and not self._exists(source) and self._exists(target)

        return _repeated(attempt, deadline)

    def _read(self, name: str) -> bytes | None:
        try:
            response = self._ask("GET", "OPEN", name, stream=True)
            if "Location" in response.headers:
                response.close()
                response = self._follow("GET", response, stream=True)
        except FileNotFoundError:
            return None
        with response:
            return _content(response)

    def _statuses(self) -> Sequence[Mapping[str, Any]]:
        try:
            response = self._ask("GET", "LISTSTATUS", "")
        except FileNotFoundError:
            return ()
        found: Sequence[Mapping[str, Any]] = response.json()["FileStatuses"]["FileStatus"]
        return found

    def _exists(self, name: str) -> bool:
        try:
            self._ask("GET", "GETFILESTATUS", name)
        except FileNotFoundError:
            return False
        return True

    def _rename(self, source: str, target: str, options: str) -> bool:
        destination = f"{self._path}/{target}"
        try:
            # With options this is FileContext's rename, which Spark uses; without them HDFS would
            # move the file into a directory of that name. HttpFS ignores the options.
            response = self._ask(
                "PUT", "RENAME", source, destination=destination, renameoptions=options
            )
        except FileExistsError:
            return False
        if not response.content or response.json().get("boolean", True):
            return True
        if self._exists(target):
            return False
        raise OSError(f"HDFS did not rename '{source}' to '{target}', and gave no reason")

    def _delete(self, name: str) -> None:
        self._ask("DELETE", "DELETE", name)

    def _ask(
        self, method: str, operation: str, name: str, *, stream: bool = False, **parameters: str
    ) -> Response:
        path = f"{self._path}/{name}" if name else self._path or "/"
        url = f"{self._filesystem.url}{quote(path)}"
        parameters = {"op": operation, **parameters, **self._filesystem.pars}
        return self._send(method, url, params=parameters, stream=stream)

    def _follow(
        self, method: str, response: Response, content: bytes | None = None, *, stream: bool = False
    ) -> Response:
        """Follow the NameNode's redirect to a DataNode."""
        headers = {"Content-Type": "application/octet-stream"}
        url = response.headers["Location"]
        return self._send(method, url, data=content, headers=headers, stream=stream)

    def _send(self, method: str, url: str, **request: Any) -> Response:
        url = self._filesystem._apply_proxy(url)  # noqa: SLF001 - for the option data_proxy
        response: Response = self._filesystem.session.request(
            method, url, allow_redirects=False, timeout=OPERATION_S, **request
        )
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise _failure(response)
        return response


def _repeated(call: Callable[[], T], deadline: Deadline) -> T:
    """Return what a call returns, which is repeated while its errors may pass and there is time.

    A safe mode is waited for until the deadline: it lasts while DataNodes start.
    """
    pauses_s = iter(_PAUSES_S)
    while True:
        try:
            return call()
        except SafeModeError:
            pause_s = _SAFE_MODE_PAUSE_S
            # The deadline would cut off the next request, whose error said nothing of safe mode.
            if deadline.remaining < 2 * pause_s:
                raise
        except (ServerError, LostConnectionError, ChunkedEncodingError) as error:
            pause_s = next(pauses_s, math.inf)
            if isinstance(error, SSLError) or deadline.remaining < pause_s:
                raise
        time.sleep(pause_s)


def _content(response: Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_FILE_BYTES:
            break
    return require_size(bytes(content))


def _failure(response: Response) -> OSError:
    """Return the exception that Hadoop's server sent as JSON, or else the HTTP status."""
    try:
        remote = response.json()["RemoteException"]
        name, message = remote["exception"], remote["message"]
    except (ValueError, KeyError, TypeError):
        name, message = "", f"HTTP {response.status_code} {response.reason}"
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return PermissionError(message)
    if name == "SafeModeException" or (name in _BUSY and _SAFE_MODE in message):
        return SafeModeError(message)
    kind = _KINDS.get(name)
    if kind:
        return kind(message)
    may_pass = response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or name in _BUSY
    return (ServerError if may_pass else OSError)(f"{name}: {message}" if name else message)
