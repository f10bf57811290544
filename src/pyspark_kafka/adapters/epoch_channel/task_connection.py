"""The driver's end of the connection of one task."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from .frames import PING, FrameReader, FrameWriter
from .handshake import GREETING, REPLY_BYTES, Handshake, Role, new_nonce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...domain.continuous.messages import TaskId

_RECEIVE_BYTES: Final = 256 * 1024
_MAX_UNSENT_BYTES: Final = 64 * 1024 * 1024


def shut_down(connected: socket.socket) -> None:
    """Close a socket, also for child processes that were forked and have it too."""
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
    connected.close()


class RefusedError(Exception):
    """What came from the other side is not to be trusted; the text says why, without content."""


@final
class TaskConnection:
    """A non-blocking connection that is authenticated first. Used by one thread.

    ``task`` is set by the owner, from the first message.
    """

    def __init__(self, connected: socket.socket, peer: str, key: bytes, deadline: float) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Finds hosts that vanished without a word.
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket = connected
        self.peer = peer
        self.deadline = deadline
        self.task: TaskId | None = None
        self._key = key
        self._nonce = new_nonce()
        self._reply = b""
        self._unsent = bytearray(GREETING + self._nonce)
        self._session: tuple[FrameReader, FrameWriter] | None = None

    @property
    def is_authenticated(self) -> bool:
        """Whether the task has proved that it holds the key."""
        return self._session is not None

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait until the socket takes them."""
        return bool(self._unsent)

    def receive(self) -> Iterator[bytes]:
        """Yield the payloads that have come.

        :raises EOFError: if the task has closed its end.
        :raises OSError: if the connection is broken.
        :raises RefusedError: if the task does not hold the key.
        :raises FrameError: if a frame is not authentic.
        """
        if self._session is None:
            self._authenticate()
        else:
            yield from self._session[0].decode(self._read(_RECEIVE_BYTES))

    def send(self, payload: bytes) -> None:
        """Append a frame, and send what the socket takes.

        :raises OSError: if the connection is broken.
        :raises RefusedError: if the task does not read, and too much is unsent.
        """
        if self._session is None:
            return
        if len(self._unsent) > _MAX_UNSENT_BYTES:
            raise RefusedError("the task reads nothing")
        self._unsent += self._session[1].encode(payload)
        self.flush()

    def ping(self) -> None:
        """Let the task hear something, unless something waits to be sent anyway."""
        if not self._unsent:
            self.send(PING)

    def flush(self) -> None:
        """Send what the socket takes.

        :raises OSError: if the connection is broken.
        """
        with suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]

    def close(self) -> None:
        """Close the socket; the task notices at once."""
        shut_down(self.socket)

    def _authenticate(self) -> None:
        self._reply += self._read(REPLY_BYTES - len(self._reply))
        if len(self._reply) < REPLY_BYTES:
            return
        nonce, proof = self._reply[: len(self._nonce)], self._reply[len(self._nonce) :]
        handshake = Handshake(self._key, self._nonce, nonce)
        if not handshake.is_proof(Role.TASK, proof):
            raise RefusedError("it does not hold the key")
        self._unsent += handshake.proof(Role.DRIVER)
        self._session = (
            FrameReader(handshake.frame_key(Role.TASK)),
            FrameWriter(handshake.frame_key(Role.DRIVER)),
        )
        self.flush()

    def _read(self, max_bytes: int) -> bytes:
        try:
            received = self.socket.recv(max_bytes)
        except BlockingIOError:
            return b""
        if not received:
            raise EOFError
        return received
