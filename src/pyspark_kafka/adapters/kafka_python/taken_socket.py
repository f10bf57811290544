"""The socket of a connection that kafka-python has made, for requests of one kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

SESSION_PART: Final = 0.85
"""How much of an authenticated session is used: as the Java client's ``SaslClientAuthenticator``,
which comes back before the broker would hang up (KIP-368)."""


@final
class TakenSocket:
    """Takes over the socket of a connection that kafka-python has made.

    Connecting, TLS, authentication and the agreement on versions are kafka-python's. From then
    on the socket is ours: read with ``recv_into`` it gives several times the bytes that
    kafka-python's transport does, which receives 4,096 at a time, and what is sent is copied once.
    """

    def __init__(self, connected: Any, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nobody else uses; an answer has so long to come."""
        self._socket = _taken_from(connected)
        self._socket.settimeout(timeout_ms / 1_000)
        self._expires = _expiry(connected)
        self._correlation_id = 0

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask who this is again."""
        return time.monotonic() > self._expires

    def next_correlation_id(self) -> int:
        """Give the number of the next request."""
        self._correlation_id += 1
        return self._correlation_id

    def send(self, request: bytes) -> None:
        """Send a request's bytes.

        :raises OSError: if the connection is gone.
        """
        self._socket.sendall(request)

    def receive(self, room: Callable[[int], memoryview]) -> memoryview:
        """Wait for a frame, which comes without its length into the room that is given for it.

        :raises OSError: if the connection is gone, or nothing comes in time.
        :raises KafkaProtocolError: if what comes is no frame.
        """
        size = int.from_bytes(self._fill(memoryview(bytearray(4))), "big", signed=True)
        if size < 0:
            raise kafka_errors.InvalidReceiveError(f"a frame of {size} bytes")
        return self._fill(room(size))

    def close(self) -> None:
        """Hang up; a second call does nothing."""
        self._socket.close()

    def _fill(self, view: memoryview) -> memoryview:
        filled = 0
        while filled < len(view):
            received = self._socket.recv_into(view[filled:])
            if not received:
                raise ConnectionResetError("the broker has hung up")
            filled += received
        return view


def _taken_from(connected: Any) -> socket.socket:
    """Take the socket out of kafka-python's transport, which then waits for nothing any more."""
    transport, network = connected.transport, connected.net
    transport.pause_reading()
    if transport._read_task is not None:  # noqa: SLF001  # what pause_reading leaves waiting
        network.cancel(transport._read_task)  # noqa: SLF001
    connected._reauth.cancel()  # noqa: SLF001  # it would write to the socket by and by
    taken: socket.socket = transport._sock  # noqa: SLF001
    return taken


def _expiry(connected: Any) -> float:
    lifetime_ms = connected._reauth.session_lifetime_ms  # noqa: SLF001
    if not lifetime_ms:
        return float("inf")
    expiry: float = time.monotonic() + SESSION_PART * lifetime_ms / 1_000
    return expiry
