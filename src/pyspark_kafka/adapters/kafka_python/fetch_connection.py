"""A connection to one broker that only fetches go over."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from kafka import errors as kafka_errors

from .fetch_wire import FetchResponse, FetchSettings, fetch_version

if TYPE_CHECKING:
    from ...domain.topic_partition import TopicPartition

SESSION_PART: Final = 0.85
"""How much of an authenticated session is used: as the Java client's ``SaslClientAuthenticator``,
which comes back before the broker would hang up (KIP-368)."""

_USUAL_FRAME: Final = 4 * 1024 * 1024


@final
class ReceiveBuffer:
    """Memory for one response; as large as the largest one so far, within reason."""

    def __init__(self) -> None:
        self._memory = np.empty(_USUAL_FRAME, np.uint8)

    def view(self, size: int) -> memoryview:
        """Give room for a frame; what it held before is gone."""
        if size > len(self._memory):
            return np.empty(size, np.uint8).data
        return self._memory.data[:size]


@final
class FetchConnection:
    """Takes over the socket of a connection that kafka-python has made.

    Connecting, TLS, authentication and the agreement on versions are kafka-python's. From then
    on the socket is ours: read with ``recv_into`` it gives several times the bytes that
    kafka-python's transport does, which receives 4,096 at a time.
    """

    def __init__(self, connected: Any, settings: FetchSettings, timeout_ms: int) -> None:
        """Take a ``KafkaConnection`` that nobody else uses; an answer has so long to come."""
        self._version = fetch_version(connected.broker_version_data)
        self._settings = settings
        self._socket = _taken_socket(connected)
        self._socket.settimeout(timeout_ms / 1_000)
        self._expires = _expiry(connected)
        self._correlation_id = 0
        self._in_flight: tuple[TopicPartition, int] | None = None

    @property
    def in_flight(self) -> tuple[TopicPartition, int] | None:
        """The partition and the offset of the request that waits for its answer."""
        return self._in_flight

    @property
    def is_expired(self) -> bool:
        """Whether the broker is about to ask who this is again."""
        return time.monotonic() > self._expires

    def send(self, partition: TopicPartition, offset: int) -> None:
        """Ask for what stands at an offset.

        :raises OSError: if the connection is gone.
        """
        self._correlation_id += 1
        request = self._settings.request(
            partition, offset, version=self._version, correlation_id=self._correlation_id
        )
        self._socket.sendall(request)
        self._in_flight = partition, offset

    def receive(self, buffer: ReceiveBuffer) -> FetchResponse:
        """Wait for the answer to the request; its records stand in the buffer.

        :raises OSError: if the connection is gone, or nothing comes in time.
        :raises KafkaProtocolError: if what comes is no answer.
        """
        size = int.from_bytes(self._receive(memoryview(bytearray(4))), "big", signed=True)
        if size < 0:
            raise kafka_errors.InvalidReceiveError(f"a frame of {size} bytes")
        frame = self._receive(buffer.view(size))
        self._in_flight = None
        return FetchResponse.of(frame, self._version, self._correlation_id)

    def close(self) -> None:
        """Hang up; a second call does nothing."""
        self._socket.close()

    def _receive(self, view: memoryview) -> memoryview:
        filled = 0
        while filled < len(view):
            received = self._socket.recv_into(view[filled:])
            if not received:
                raise ConnectionResetError("the broker has hung up")
            filled += received
        return view


def _taken_socket(connected: Any) -> socket.socket:
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
