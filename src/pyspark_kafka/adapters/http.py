"""A POST request with a limit for its time and for the size of its response."""

from __future__ import annotations

import socket
import ssl
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from threading import Timer
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from ..ports.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


MAX_RESPONSE_BYTES: Final = 256 * 1024
_LATE: Final = "it did not answer in time"


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
        with _connected(host, port, deadline) as plain:
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
            raise PostError(_LATE) from error
        raise PostError(f"{type(error).__name__}: {error}") from error
    if deadline.has_passed:
        # What was received looks like a whole response if none said how long it is.
        raise PostError(_LATE)
    if len(content) > MAX_RESPONSE_BYTES:
        raise PostError(f"its response exceeds {MAX_RESPONSE_BYTES} bytes")
    return Response(response.status, content)


@contextmanager
def _connected(host: str, port: int, deadline: Deadline) -> Iterator[socket.socket]:
    """Connect, and end the connection at the deadline.

    The time-out of a socket limits the wait for each byte, not for all of them.
    """
    connected = socket.create_connection((host, port), timeout=max(0.001, deadline.remaining))
    # TLS takes the socket over; a duplicate refers to the same connection.
    with connected, connected.dup() as duplicate:
        timer = Timer(deadline.remaining, _end, [duplicate])
        timer.daemon = True
        timer.start()
        try:
            yield connected
        finally:
            timer.cancel()


def _end(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
