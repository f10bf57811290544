"""A directory of HDFS, over WebHDFS or HttpFS."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar, final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from ...ports.clock import Deadline
from ..http import HttpClient, OversizedResponseError, RequestError, Response, json_fields
from .directory import (
    MAX_FILE_BYTES,
    OPERATION_S,
    LogDirectory,
    LogFile,
    OversizedFileError,
    SafeModeError,
    UnexpectedResponseError,
    temporary_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from .hdfs_server import HdfsServer

T = TypeVar("T")

_OK: Final = (HTTPStatus.OK,)
_REDIRECT: Final = (HTTPStatus.TEMPORARY_REDIRECT,)

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
"""A part of the text of a ``SafeModeException``, and of the ``RetriableException`` that an active
NameNode sends instead while it starts (``FSNamesystem.checkNameNodeSafeMode``)."""

_SAFE_MODE_PAUSE_S: Final = 1.0
_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
"""The pauses between the attempts of a request; there are five attempts, as in S3's client."""


class ServerError(OSError):
    """A server failed, is busy or is not the active one: the request may succeed later."""


@final
class HdfsDirectory(LogDirectory):
    """Files that are written under temporary names, and renamed unless the name exists.

    Requests are repeated if the reason of their failure may pass. A rename may have succeeded
    although its response was lost: then the source, whose name no other writer knows, is gone.

    fsspec's client is not used: its ``mv`` drops the server's response, its ``cat_file`` returns
    error bodies as content, and its calls have no timeout. An operation on a file ends within
    ``OPERATION_S``.

    As in Hadoop's ``WebHdfsFileSystem.validateResponse``, an operation succeeds with its own status
    only: gateways redirect to login pages, and to TLS. Credentials are sent to the server of the
    options, and not to servers that it redirects to: DataNodes need none.
    """

    def __init__(self, server: HdfsServer, path: str) -> None:
        self._server = server
        self._client = HttpClient(server.tls().current, uses_proxies=True)
        self._path = path.rstrip("/")

    def create(self, name: str, content: bytes) -> bool:
        operation = self._begin()
        if operation.repeated(lambda: operation.exists(name)):
            return False
        return operation.put(name, content, _KEEP)

    def replace(self, name: str, content: bytes) -> None:
        if not self._begin().put(name, content, _OVERWRITE):
            raise OSError(f"the server cannot replace '{name}' atomically; HttpFS cannot")

    def read(self, name: str) -> bytes | None:
        operation = self._begin()
        return operation.repeated(lambda: operation.read(name))

    def files(self) -> Iterator[LogFile]:
        operation = self._begin()
        for status in operation.repeated(operation.statuses):
            if status["type"] == "FILE":
                yield LogFile(status["pathSuffix"], status["modificationTime"] / 1000)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            operation = self._begin()
            operation.repeated(partial(operation.delete, name))

    def _begin(self) -> _Operation:
        return _Operation(self._client, self._server, self._path, Deadline.after(OPERATION_S))


@final
@dataclass(frozen=True, slots=True)
class _Operation:
    """The requests of an operation on one file, which share a deadline."""

    client: HttpClient
    server: HdfsServer
    path: str
    deadline: Deadline

    def put(self, name: str, content: bytes, options: str) -> bool:
        temporary = self.repeated(lambda: self._write_temporary(name, content))
        is_renamed = False
        try:
            is_renamed = self._rename_surely(temporary, name, options)
        finally:
            if not is_renamed:
                self._discard(temporary)
        return is_renamed

    def _write_temporary(self, name: str, content: bytes) -> str:
        """Write a file under a new name, and return the name: other names may have half a file."""
        temporary = temporary_name(name)
        try:
            created = self._ask("PUT", "CREATE", temporary, _REDIRECT, overwrite="false")
            self._follow("PUT", created, HTTPStatus.CREATED, content)
        except OSError:
            self._discard(temporary)
            raise
        return temporary

    def _discard(self, name: str) -> None:
        with suppress(OSError):
            self.delete(name)

    def _rename_surely(self, source: str, target: str, options: str) -> bool:
        """Rename a file with options of HDFS; return whether this call renamed it."""
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
            return attempts > 1 and not self.exists(source) and self.exists(target)

        return self.repeated(attempt)

    def read(self, name: str) -> bytes | None:
        try:
            # HttpFS sends the content itself.
            response = self._ask("GET", "OPEN", name, (*_OK, *_REDIRECT))
            if response.status in _REDIRECT:
                response = self._follow("GET", response, HTTPStatus.OK)
        except FileNotFoundError:
            return None
        except OversizedResponseError:
            raise OversizedFileError from None
        return response.body

    def statuses(self) -> Sequence[Mapping[str, Any]]:
        try:
            response = self._ask("GET", "LISTSTATUS", "")
        except FileNotFoundError:
            return ()
        found: Sequence[Mapping[str, Any]] = _field(response, "FileStatuses", dict)["FileStatus"]
        return found

    def exists(self, name: str) -> bool:
        try:
            response = self._ask("GET", "GETFILESTATUS", name)
        except FileNotFoundError:
            return False
        _field(response, "FileStatus", dict)
        return True

    def _rename(self, source: str, target: str, options: str) -> bool:
        destination = f"{self.path}/{target}"
        try:
            # With options this is FileContext's rename, which Spark uses; without them HDFS would
            # move the file into a directory of that name. HttpFS ignores the options.
            response = self._ask(
                "PUT", "RENAME", source, destination=destination, renameoptions=options
            )
        except FileExistsError:
            return False
        if not response.body or _field(response, "boolean", bool):
            return True
        if self.exists(target):
            return False
        raise OSError(f"HDFS did not rename '{source}' to '{target}', and gave no reason")

    def delete(self, name: str) -> None:
        _field(self._ask("DELETE", "DELETE", name), "boolean", bool)

    def _ask(
        self,
        method: str,
        operation: str,
        name: str,
        expected: Sequence[HTTPStatus] = _OK,
        **parameters: str,
    ) -> Response:
        path = f"{self.path}/{name}" if name else self.path or "/"
        query = urlencode({"op": operation, **parameters, **self.server.parameters()})
        url = self.server.replaced(f"{self.server.url}{quote(path)}")
        return self._send(method, f"{url}?{query}", expected, self.server.login())

    def _follow(
        self, method: str, response: Response, expected: HTTPStatus, body: bytes | None = None
    ) -> Response:
        """Follow a redirect, to another server without credentials."""
        url = self.server.replaced(urljoin(response.url, response.headers["Location"]))
        is_other = _server(url) != _server(response.url)
        login = {} if is_other else self.server.login()
        headers = {"Content-Type": "application/octet-stream", **login}
        try:
            return self._send(method, url, (expected,), headers, body)
        except PermissionError as error:
            if is_other and self.server.logs_in:
                raise PermissionError(
                    f"{error}; credentials are not sent to {_server(url)}, another server"
                ) from None
            raise

    def _send(
        self,
        method: str,
        url: str,
        expected: Sequence[HTTPStatus],
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Response:
        response = self.client.request(
            method, url, headers, self.deadline, body=body, max_bytes=MAX_FILE_BYTES
        )
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _failure(response)
        _require(expected, response)
        return response

    def repeated(self, call: Callable[[], T]) -> T:
        """Return a call's result, repeating the call while its errors may pass and there is time.

        In safe mode, the call is repeated until the deadline: DataNodes may be starting.
        """
        pauses_s = iter(_PAUSES_S)
        while True:
            try:
                return call()
            except SafeModeError:
                pause_s = _SAFE_MODE_PAUSE_S
                # The deadline would end the next request, and its error would not name the safe
                # mode.
                if self.deadline.remaining < 2 * pause_s:
                    raise
            except (ServerError, RequestError) as error:
                pause_s = next(pauses_s, math.inf)
                may_pass = not isinstance(error, RequestError) or error.may_pass
                if not may_pass or self.deadline.remaining < pause_s:
                    raise
            time.sleep(pause_s)


def _require(expected: Sequence[HTTPStatus], response: Response) -> None:
    """Raise ``UnexpectedResponseError`` unless a response has an expected status."""
    status, target = response.status, response.headers.get("Location", "")
    found = str(status)
    if status in _REDIRECT:
        found += "" if target else " without a location"
    elif status in _OK and response.headers.get("Content-Type", "").startswith("text/html"):
        found += " with a web page"
    if status in expected and found == str(status):
        return
    leading = f", a redirect to {_server(urljoin(response.url, target))}" if target else ""
    wanted = " or ".join(f"{code:d}" for code in expected)
    raise UnexpectedResponseError(
        f"Unexpected HTTP response: expected HTTP {wanted}, got {found} from "
        f"{_server(response.url)}{leading}"
    )


def _field(response: Response, name: str, kind: type[T]) -> T:
    """Return a field of a response in JSON; another server's response does not have it."""
    found = json_fields(response.body).get(name)
    if not isinstance(found, kind):
        raise UnexpectedResponseError(
            f"Unexpected HTTP response: no JSON with '{name}' from {_server(response.url)}"
        )
    return found


def _server(url: str) -> str:
    """Return the scheme, the host and the port of a URL, without a login."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def _failure(response: Response) -> OSError:
    """Return the exception that Hadoop's server sent as JSON, or else the HTTP status."""
    remote = json_fields(response.body).get("RemoteException")
    named = remote if isinstance(remote, dict) else {}
    name = str(named.get("exception", ""))
    message = str(named.get("message", f"HTTP {response.status}"))
    if response.status == HTTPStatus.UNAUTHORIZED:
        return PermissionError(message)
    if name == "SafeModeException" or (name in _BUSY and _SAFE_MODE in message):
        return SafeModeError(message)
    kind = _KINDS.get(name)
    if kind:
        return kind(message)
    may_pass = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or name in _BUSY
    return (ServerError if may_pass else OSError)(f"{name}: {message}" if name else message)
