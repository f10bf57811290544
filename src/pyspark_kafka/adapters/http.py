"""HTTP requests that end in time, however slowly a server answers."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock, Timer
from typing import Any, Final, final

from urllib3 import BaseHTTPResponse, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NameResolutionError,
    NewConnectionError,
)
from urllib3.util import Timeout

from ..ports.clock import Deadline
from .name_resolution import UnresolvedError, resolve

MAX_RESPONSE_BYTES: Final = 256 * 1024
_CHUNK_BYTES: Final = 64 * 1024


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
    for left, (family, kind, protocol, _, address) in zip(
        range(len(addresses), 0, -1), addresses, strict=True
    ):
        # A share for each address, so that one that is silent does not take all of the time.
        share = Deadline.after(deadline.remaining / left)
        try:
            return _connected(socket.socket(family, kind, protocol), address, share, options)
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


def _new_socket(connection: HTTPConnection) -> socket.socket:
    """Connect as ``HTTPConnection._new_conn`` does, but resolve the name in time."""
    timeout_s = Timeout.resolve_default_timeout(connection.timeout)
    try:
        return connect(
            connection._dns_host.strip("[]"),  # noqa: SLF001  # ``host`` lacks a dot at its end
            connection.port,
            timeout_s,
            connection.socket_options or (),  # type: ignore[arg-type]
        )
    except UnicodeError:
        raise LocationParseError(f"'{connection.host}', which is no name of a host") from None
    except socket.gaierror as error:
        raise NameResolutionError(connection.host, connection, error) from error
    except TimeoutError as error:
        problem = f"Connection to {connection.host} timed out: {error}"
        raise ConnectTimeoutError(connection, problem) from error
    except OSError as error:
        problem = f"Failed to establish a new connection: {error}"
        raise NewConnectionError(connection, problem) from error


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _new_socket(self)

    def request(self, *args: Any, **kwargs: Any) -> None:
        cut_off_in_time(self.sock)  # which another block may have opened
        super().request(*args, **kwargs)


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _new_socket(self)

    def request(self, *args: Any, **kwargs: Any) -> None:
        cut_off_in_time(self.sock)
        super().request(*args, **kwargs)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


POOLS: Final[dict[str, type[HTTPConnectionPool]]] = {"http": _Pool, "https": _TlsPool}
"""Pools of urllib3 whose connections end with the block of ``within`` that uses them."""


class RequestError(Exception):
    """There is no response, or it is cut off or too large; the message says why."""


@final
@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server; names of headers are in any case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


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

    The error has no cause: the frames of its traceback would show the headers, which have logins.

    :raises RequestError: if there is none before the deadline, or it exceeds ``max_bytes``.
    """
    pools = PoolManager(ssl_context=tls, retries=False)
    pools.pool_classes_by_scheme = POOLS
    sent = {"User-Agent": "pyspark-kafka", **headers}
    try:
        with (
            within(deadline.remaining),
            pools,
            pools.request(
                method, url, body=body, headers=sent, redirect=False, preload_content=False
            ) as response,
        ):
            content = content_of(response, max_bytes)
    except UnresolvedError as error:
        reason = str(error)
    except (HTTPError, OSError, ValueError) as error:
        reason = "it did not answer in time" if deadline.has_passed else _reason(error)
    else:
        return Response(response.status, content, response.headers)
    raise RequestError(reason)


def content_of(response: BaseHTTPResponse, max_bytes: int) -> bytes:
    """Return a response's content as it was sent; a part of it is an error.

    :raises RequestError: if it exceeds ``max_bytes``.
    """
    content = bytearray()
    # No more than that: ``read`` waits until it has all that it is asked for.
    while chunk := response.read(
        min(_CHUNK_BYTES, max_bytes + 1 - len(content)), decode_content=False
    ):
        content += chunk
        if len(content) > max_bytes:
            raise RequestError(f"its response exceeds {max_bytes} bytes")
    return bytes(content)


def _reason(error: Exception) -> str:
    if isinstance(error, NewConnectionError) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    return f"{type(error).__name__}: {error}"
