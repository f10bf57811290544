"""HTTP requests that end in time, however slowly a server answers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from threading import Lock, Timer
from typing import Final, final
from urllib.parse import urlsplit

from ..ports.clock import Deadline

MAX_RESPONSE_BYTES: Final = 256 * 1024


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """End the connections of this block at the deadline that it yields; blocks are not nested.

    The time-out of a socket limits the wait for each byte, not for all of them.

    :raises TimeoutError: if it passes before the end of the block.
    """
    sockets = _Sockets()
    timer = Timer(seconds, sockets.end)
    timer.daemon = True
    timer.start()
    token = _CURRENT.set(sockets)
    try:
        yield Deadline.after(seconds)
    except Exception:
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

    def __init__(self) -> None:
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


class PostError(Exception):
    """There is no response, or it is too large; the message says why."""


@final
@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server."""

    status: int
    body: bytes = field(repr=False)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    deadline: Deadline,
    tls: ssl.SSLContext | None = None,
) -> Response:
    """Send a body and return the response; redirects are not followed.

    :raises PostError: if there is none before the deadline.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with (
            within(deadline.remaining),
            socket.create_connection((host, port), max(0.001, deadline.remaining)) as plain,
        ):
            cut_off_in_time(plain)
            sock = plain
            if parts.scheme == "https":
                context = tls or ssl.create_default_context()
                sock = context.wrap_socket(plain, server_hostname=host)
            with sock:
                connection = HTTPConnection(host, port)
                connection.sock = sock
                connection.request("POST", path, body, {"Host": parts.netloc, **headers})
                with connection.getresponse() as response:
                    content = response.read(MAX_RESPONSE_BYTES + 1)
    except (OSError, HTTPException) as error:
        if deadline.has_passed:
            raise PostError("it did not answer in time") from error
        raise PostError(f"{type(error).__name__}: {error}") from error
    if len(content) > MAX_RESPONSE_BYTES:
        raise PostError(f"its response exceeds {MAX_RESPONSE_BYTES} bytes")
    return Response(response.status, content)
