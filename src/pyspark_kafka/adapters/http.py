"""HTTP requests that end in time, however slowly a server answers."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection, HTTPException
from threading import Lock, Timer
from typing import Any, Final, final
from urllib.parse import urlsplit

from ..ports.clock import Deadline
from .name_resolution import UnresolvedError, resolve

MAX_RESPONSE_BYTES: Final = 256 * 1024


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """End the connections of this block at the deadline that it yields; blocks are not nested.

    The time-out of a socket limits the wait for each byte, not for all of them.

    :raises TimeoutError: if it passes before the end of the block.
    """
    sockets = _Sockets(Deadline.after(seconds))
    timer = Timer(seconds, sockets.end)
    timer.daemon = True
    timer.start()
    token = _CURRENT.set(sockets)
    try:
        yield sockets.deadline
    except Exception:
        if sockets.unresolved is not None:
            raise sockets.unresolved from None
        if not sockets.have_ended:
            raise
    finally:
        _CURRENT.reset(token)
        timer.cancel()
        sockets.close()
    if sockets.have_ended:
        # What was received looks like a whole response if none said how long it is.
        raise TimeoutError(f"its response was not complete within {seconds:g} s")


@final
class _Sockets:
    """Duplicates of the sockets of a block: TLS takes the first over, and responses close them."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.unresolved: UnresolvedError | None = None
        """Why the last connection was not begun."""

        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self.have_ended = False

    def add(self, connected: socket.socket) -> None:
        with self._lock:
            self._sockets.append(socket.socket(fileno=socket.dup(connected.fileno())))
            if self.have_ended:
                self._shut_down()

    def end(self) -> None:
        with self._lock:
            self.have_ended = True
            self._shut_down()

    def close(self) -> None:
        with self._lock:
            for each in self._sockets:
                each.close()
            self._sockets.clear()

    def _shut_down(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


_CURRENT: Final[ContextVar[_Sockets | None]] = ContextVar("_CURRENT", default=None)


def cut_off_in_time(connected: socket.socket | None) -> None:
    """Have the block of ``within`` that runs in this thread end a connection at its deadline."""
    sockets = _CURRENT.get()
    if sockets is not None and connected is not None:
        sockets.add(connected)


def connect(
    host: str, port: int, timeout_s: float | None, options: Iterable[tuple[int, int, int]] = ()
) -> socket.socket:
    """Return a connection to the first address of a host that accepts one.

    The block of ``within`` that runs in this thread ends it at its deadline.

    :raises UnresolvedError: if the host's name is not resolved in time.
    :raises OSError: if no address accepts a connection.
    """
    sockets = _CURRENT.get()
    deadline = Deadline.after(timeout_s)
    deadline = deadline if sockets is None else min(deadline, sockets.deadline)
    if sockets is not None:
        sockets.unresolved = None
    try:
        addresses = resolve(host, port, deadline)
    except UnresolvedError as error:
        if sockets is not None:
            sockets.unresolved = error
        raise
    failure = OSError(f"'{host}' has no address")
    for family, kind, protocol, _, address in addresses:
        try:
            return _connected(socket.socket(family, kind, protocol), address, deadline, options)
        except OSError as error:
            failure = error
    raise failure


def _connected(
    sock: socket.socket,
    address: tuple[Any, ...],
    deadline: Deadline,
    options: Iterable[tuple[int, int, int]],
) -> socket.socket:
    try:
        for option in options:
            sock.setsockopt(*option)
        remaining = deadline.remaining
        sock.settimeout(None if math.isinf(remaining) else max(0.001, remaining))
        sock.connect(address)
        cut_off_in_time(sock)
    except BaseException:
        sock.close()
        raise
    return sock


class RequestError(Exception):
    """There is no response, or it is too large; the message says why."""


@final
@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server."""

    status: int
    body: bytes = field(repr=False)
    headers: Message = field(default_factory=Message, repr=False)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    deadline: Deadline,
    tls: ssl.SSLContext | None = None,
) -> Response:
    """Send a body and return the response; raises as ``request``."""
    return request("POST", url, headers, deadline, body=body, tls=tls)


def request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    deadline: Deadline,
    *,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    max_bytes: int = MAX_RESPONSE_BYTES,
) -> Response:
    """Send a request and return the response; no redirect is followed, and no proxy is used.

    :raises RequestError: if there is none before the deadline, or it exceeds ``max_bytes``.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with (
            within(deadline.remaining),
            connect(host, port, deadline.remaining) as plain,
        ):
            sock = plain
            if parts.scheme == "https":
                context = tls or ssl.create_default_context()
                sock = context.wrap_socket(plain, server_hostname=host)
            with sock:
                connection = HTTPConnection(host, port)
                connection.sock = sock
                connection.request(method, path, body, {"Host": parts.netloc, **headers})
                with connection.getresponse() as response:
                    content = response.read(max_bytes + 1)
    except UnresolvedError as error:
        raise RequestError(str(error)) from error
    except (OSError, HTTPException) as error:
        if deadline.has_passed:
            raise RequestError("it did not answer in time") from error
        raise RequestError(f"{type(error).__name__}: {error}") from error
    if len(content) > max_bytes:
        raise RequestError(f"its response exceeds {max_bytes} bytes")
    return Response(response.status, content, response.headers)
