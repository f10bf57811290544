"""A task's end of the channel over TCP."""

from __future__ import annotations

import hmac
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.messages import read_command, write_message
from ...domain.errors import DriverLostError
from ...ports.clock import Deadline
from ...ports.continuous import DRIVER_TIMEOUT_S, TaskChannel
from .frames import (
    GREETING,
    HELLO_BYTES,
    PING,
    PROOF_BYTES,
    FrameReader,
    FrameWriter,
    Handshake,
    Role,
    new_nonce,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.continuous.messages import TaskCommand, TaskMessage
    from ...ports.continuous import ChannelAddress

_CONNECT_TIMEOUT_S: Final = 10.0
_CLOSE_TIMEOUT_S: Final = 1.0
_RECEIVE_BYTES: Final = 64 * 1024


@final
class SocketTaskChannel(TaskChannel):
    """A connection to the driver. Only the constructor and ``close`` wait.

    :raises DriverLostError: if the driver cannot be reached within ``connect_timeout_s``, or does
        not hold the key.
    """

    def __init__(
        self,
        address: ChannelAddress,
        *,
        driver_timeout_s: float = DRIVER_TIMEOUT_S,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
    ) -> None:
        self._location = address.location
        self._driver_timeout_s = driver_timeout_s
        self._unsent = bytearray()
        self._commands: list[TaskCommand] = []
        self._lost: str | None = None
        self._is_closed = False
        self._socket, handshake = _connect(address, connect_timeout_s)
        self._reader = FrameReader(handshake.frame_key(Role.DRIVER))
        self._writer = FrameWriter(handshake.frame_key(Role.TASK))
        self._socket.setblocking(False)
        self._last_heard = time.monotonic()

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self._location}')"

    def fileno(self) -> int:
        """Return the socket's file descriptor: it is readable when commands come."""
        return self._socket.fileno()

    def send(self, message: TaskMessage) -> None:
        self._unsent += self._writer.encode(write_message(message).encode())
        self._exchange()
        self._raise_if_lost()

    def receive(self) -> Sequence[TaskCommand]:
        self._exchange()
        if not self._commands:
            self._raise_if_lost()
        commands, self._commands = self._commands, []
        return commands

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._exchange()
            if self._lost is None:
                with suppress(OSError):
                    self._drain(Deadline.after(_CLOSE_TIMEOUT_S))
            self._socket.close()
            self._lost = "the task closed the connection"

    def _exchange(self) -> None:
        """Send and receive as much as is possible at once."""
        if self._lost is not None:
            return
        try:
            self._read()
            with suppress(BlockingIOError):
                while self._unsent:
                    del self._unsent[: self._socket.send(self._unsent)]
        except EOFError:
            self._lost = "the driver closed the connection"
        except OSError as error:
            self._lost = f"the connection is broken: {error.strerror or type(error).__name__}"
        except ValueError:
            self._lost = "what came is not from the driver, or malformed"
        else:
            # All received bytes were read: the driver is not silent if only the task did not look.
            silent_s = time.monotonic() - self._last_heard
            if silent_s > self._driver_timeout_s:
                self._lost = f"nothing was heard from it for {silent_s:.1f} seconds"

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while True:
                received = self._socket.recv(_RECEIVE_BYTES)
                if not received:
                    raise EOFError
                for payload in self._reader.decode(received):
                    self._last_heard = time.monotonic()
                    if payload != PING:
                        self._commands.append(read_command(payload))

    def _raise_if_lost(self) -> None:
        if self._lost is not None:
            raise DriverLostError(self._lost)

    def _drain(self, deadline: Deadline) -> None:
        """Send the rest, and wait until the driver has read it.

        A socket that is closed with unread bytes sends a reset (RFC 2525, 2.17), which discards
        what the driver has not read yet: so the task waits for the driver's end.
        """
        self._socket.settimeout(deadline.remaining)
        self._socket.sendall(self._unsent)
        self._socket.shutdown(socket.SHUT_WR)
        while self._socket.recv(_RECEIVE_BYTES):
            self._socket.settimeout(deadline.remaining)


def _connect(address: ChannelAddress, timeout_s: float) -> tuple[socket.socket, Handshake]:
    deadline = Deadline.after(timeout_s)
    host, _, port = address.location.rpartition(":")
    try:
        connected = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
    except OSError as error:
        reason = f"{address.location} cannot be reached: {error.strerror or type(error).__name__}"
        raise DriverLostError(reason) from error
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected, _authenticate(connected, address.key, deadline)
    except (EOFError, OSError) as error:
        connected.close()
        # DriverLostError is an OSError as well.
        if isinstance(error, DriverLostError):
            raise
        raise DriverLostError(f"{address.location} did not authenticate this task") from error


def _authenticate(connected: socket.socket, key: bytes, deadline: Deadline) -> Handshake:
    hello = _receive_exactly(connected, HELLO_BYTES, deadline)
    if not hmac.compare_digest(hello[: len(GREETING)], GREETING):
        raise DriverLostError("another service, or another version, answers at its address")
    handshake = Handshake(key, hello[len(GREETING) :], new_nonce())
    connected.sendall(handshake.task_nonce + handshake.proof(Role.TASK))
    if not handshake.is_proof(Role.DRIVER, _receive_exactly(connected, PROOF_BYTES, deadline)):
        raise DriverLostError("what answers at its address does not hold the key")
    return handshake


def _receive_exactly(connected: socket.socket, size: int, deadline: Deadline) -> bytes:
    received = b""
    while len(received) < size:
        # A time-out of 0 would mean a non-blocking socket.
        connected.settimeout(max(0.001, deadline.remaining))
        chunk = connected.recv(size - len(received))
        if not chunk:
            raise EOFError
        received += chunk
    return received
