"""The socket of a connection that kafka-python opened, for requests of one kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

SESSION_PART: Final = 0.85
"""How much of an authenticated session is used, as by the Java client's
``SaslClientAuthenticator``: the broker closes the connection at its end (KIP-368)."""


@final
class RawConnection:
    """Uses the socket of a connection that kafka-python opened.

    kafka-python connects, authenticates and negotiates versions. ``recv_into`` then reads several
    times as fast as kafka-python's transport, which receives 4,096 bytes at a time, and requests
    are copied once.
    """

    def __init__(self, connected: Any, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nobody else uses; a response may take ``timeout_ms``."""
        self._socket = _taken_from(connected)
        self._socket.settimeout(timeout_ms / 1_000)
        self._expires = _expiry(connected)
        self._correlation_id = 0

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask for authentication again."""
        return time.monotonic() > self._expires

    def next_correlation_id(self) -> int:
        """Return the number of the next request, from 1 on."""
        self._correlation_id += 1
        return self._correlation_id

    def send(self, request: bytes) -> None:
        """Send a request's bytes.

        :raises OSError: if the connection is lost.
        """
        self._socket.sendall(request)

    def receive(self, allocate: Callable[[int], memoryview]) -> memoryview:
        """Receive a frame without its length, in memory of the size that ``allocate`` is given.

        :raises OSError: if the connection is lost, or nothing comes in time.
        :raises KafkaProtocolError: if what comes is no frame.
        """
        size = int.from_bytes(self._fill(memoryview(bytearray(4))), "big", signed=True)
        if size < 0:
            raise kafka_errors.InvalidReceiveError(f"a frame of {size} bytes")
        return self._fill(allocate(size))

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._socket.close()

    def _fill(self, view: memoryview) -> memoryview:
        filled = 0
        while filled < len(view):
            received = self._socket.recv_into(view[filled:])
            if not received:
                raise ConnectionResetError("the broker closed the connection")
            filled += received
        return view


def _taken_from(connected: Any) -> socket.socket:
    """Return the socket of kafka-python's transport, which no longer reads from it."""
    transport, network = connected.transport, connected.net
    transport.pause_reading()
    if transport._read_task is not None:  # noqa: SLF001  # left waiting by pause_reading
        network.cancel(transport._read_task)  # noqa: SLF001
    connected._reauth.cancel()  # noqa: SLF001  # it would write to the socket later
    taken: socket.socket = transport._sock  # noqa: SLF001
    return taken


def _expiry(connected: Any) -> float:
    lifetime_ms = connected._reauth.session_lifetime_ms  # noqa: SLF001
    if not lifetime_ms:
        return float("inf")
    expiry: float = time.monotonic() + SESSION_PART * lifetime_ms / 1_000
    return expiry
