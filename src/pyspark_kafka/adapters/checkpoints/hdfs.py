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
from urllib.parse import quote, urljoin, urlsplit

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
    UnexpectedResponseError,
    require_size,
    temporary_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from fsspec.implementations.webhdfs import WebHDFS
    from requests import PreparedRequest, Response

    from ...ports.clock import Deadline

T = TypeVar("T")

_OK: Final = (HTTPStatus.OK,)
_REDIRECT: Final = (HTTPStatus.TEMPORARY_REDIRECT,)

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
        completed["user"] = os.environ.get("HADOOP_USER_NAME") or _process_user()
    return completed


def _process_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        # The system has no name for the number, as in a container that runs as some user id.
        raise OSError("this process's user has no name: set HADOOP_USER_NAME") from error


@final
class HdfsDirectory(LogDirectory):
    """Files that are written under temporary names, and renamed unless the name exists.

    What fails for a reason that may pass is repeated. A rename may have been carried out though its
    response was lost: then its source is gone, whose name no other writer knows.

    fsspec creates the authenticated session, and this class sends its own requests: fsspec's ``mv``
    drops the server's response, its ``cat_file`` returns error bodies as content, and its calls
    have no timeout. An operation on a file ends within ``OPERATION_S``.

    As in Hadoop's ``WebHdfsFileSystem.validateResponse``, an operation succeeds with its own status
    only: gateways redirect to login pages, and to TLS. Credentials are sent to the server of the
    options, and to no other one that it redirects to: DataNodes need none.
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
            created = self._ask("PUT", "CREATE", temporary, _REDIRECT, overwrite="false")
            self._follow("PUT", created, HTTPStatus.CREATED, data=content)
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
            # HttpFS sends the content itself.
            response = self._ask("GET", "OPEN", name, (*_OK, *_REDIRECT), stream=True)
            if response.status_code in _REDIRECT:
                response.close()
                response = self._follow("GET", response, HTTPStatus.OK, stream=True)
        except FileNotFoundError:
            return None
        with response:
            return _content(response)

    def _statuses(self) -> Sequence[Mapping[str, Any]]:
        try:
            response = self._ask("GET", "LISTSTATUS", "")
        except FileNotFoundError:
            return ()
        found: Sequence[Mapping[str, Any]] = _field(response, "FileStatuses", dict)["FileStatus"]
        return found

    def _exists(self, name: str) -> bool:
        try:
            response = self._ask("GET", "GETFILESTATUS", name)
        except FileNotFoundError:
            return False
        _field(response, "FileStatus", dict)
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
        if not response.content or _field(response, "boolean", bool):
            return True
        if self._exists(target):
            return False
        raise OSError(f"HDFS did not rename '{source}' to '{target}', and gave no reason")

    def _delete(self, name: str) -> None:
        _field(self._ask("DELETE", "DELETE", name), "boolean", bool)

    def _ask(
        self,
        method: str,
        operation: str,
        name: str,
        expected: Sequence[HTTPStatus] = _OK,
        *,
        stream: bool = False,
        **parameters: str,
    ) -> Response:
        path = f"{self._path}/{name}" if name else self._path or "/"
        url = self._filesystem._apply_proxy(  # noqa: SLF001 - for the option data_proxy
            f"{self._filesystem.url}{quote(path)}"
        )
        parameters = {"op": operation, **parameters, **self._filesystem.pars}
        return self._send(method, url, expected, params=parameters, stream=stream)

    def _follow(
        self, method: str, response: Response, expected: HTTPStatus, **request: Any
    ) -> Response:
        """Follow a redirect, to another server without credentials."""
        location = urljoin(response.url, response.headers["Location"])
        url = self._filesystem._apply_proxy(location)  # noqa: SLF001
        is_other = self._filesystem.session.should_strip_auth(response.url, url)
        request |= {
            "auth": _anonymous if is_other else None,
            "headers": {"Content-Type": "application/octet-stream"},
        }
        try:
            return self._send(method, url, (expected,), **request)
        except PermissionError as error:
            if is_other and self._filesystem.session.auth:
                raise PermissionError(
                    f"{error}; credentials are not sent to {_server(url)}, another server"
                ) from None
            raise

    def _send(
        self, method: str, url: str, expected: Sequence[HTTPStatus], **request: Any
    ) -> Response:
        response: Response = self._filesystem.session.request(
            method, url, allow_redirects=False, timeout=OPERATION_S, **request
        )
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise _failure(response)
        _require(expected, response)
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


def _anonymous(request: PreparedRequest) -> PreparedRequest:
    """Authenticate as nobody: without it, requests would add the credentials of the session."""
    return request


def _require(expected: Sequence[HTTPStatus], response: Response) -> None:
    """Raise ``UnexpectedResponseError`` unless a response has an expected status."""
    status, target = response.status_code, response.headers.get("Location", "")
    found = str(status)
    if status in _REDIRECT:
        found += "" if target else " without a location"
    elif status in _OK and response.headers.get("Content-Type", "").startswith("text/html"):
        found += " with a web page"
    if status in expected and found == str(status):
        return
    response.close()
    leading = f", a redirect to {_server(urljoin(response.url, target))}" if target else ""
    wanted = " or ".join(f"{code:d}" for code in expected)
    raise UnexpectedResponseError(
        f"Unexpected HTTP response: expected HTTP {wanted}, got {found} from "
        f"{_server(response.url)}{leading}"
    )


def _field(response: Response, name: str, kind: type[T]) -> T:
    """Return a field of a response in JSON, which another server's response does not have."""
    try:
        found = response.json()[name]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, kind):
        raise UnexpectedResponseError(
            f"Unexpected HTTP response: no JSON with '{name}' from {_server(response.url)}"
        )
    return found


def _server(url: str) -> str:
    """Return the scheme, the host and the port of a URL, without a login."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


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
