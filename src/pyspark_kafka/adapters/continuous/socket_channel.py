"""The driver's end of the channel over TCP."""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.messages import TaskMessage, read_message, write_command
from ...ports.continuous import ChannelAddress, EpochChannel
from .frames import (
    GREETING,
    PING,
    REPLY_BYTES,
    FrameReader,
    FrameWriter,
    Handshake,
    Role,
    check_size,
    new_key,
    new_nonce,
)
from .threads import Inbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...domain.continuous.messages import TaskCommand, TaskId

_RECEIVE_BYTES: Final = 256 * 1024
_MAX_UNSENT_BYTES: Final = 64 * 1024 * 1024


def shut_down(connected: socket.socket) -> None:
    """Close a socket, also for child processes that were forked and have it too."""
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
    connected.close()


class RefusedError(Exception):
    """Bytes from the other side are not to be trusted; the text gives the reason only."""


@final
class TaskConnection:
    """A non-blocking connection that is authenticated first. Used by one thread.

    ``task`` is set by the owner, from the first message.
    """

    def __init__(self, connected: socket.socket, peer: str, key: bytes, deadline: float) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Finds hosts that vanished without closing the connection.
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
        """Append a frame, and send as many bytes as the socket takes.

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
        """Send a ping to the task, unless other bytes wait to be sent."""
        if not self._unsent:
            self.send(PING)

    def flush(self) -> None:
        """Send as many bytes as the socket takes.

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


log = logging.getLogger("pyspark_kafka")

HANDSHAKE_TIMEOUT_S: Final = 10.0
PING_INTERVAL_S: Final = 1.0
MAX_UNAUTHENTICATED: Final = 256
_CLOSE_TIMEOUT_S: Final = 10.0
_READ: Final = selectors.EVENT_READ
_READ_WRITE: Final = selectors.EVENT_READ | selectors.EVENT_WRITE


@final
class ConnectionLoop:
    """Accepts, authenticates, receives, sends and pings, in its own thread.

    So tasks hear from the driver while the driver's own thread waits for a storage.
    """

    def __init__(
        self,
        listener: socket.socket,
        key: bytes,
        deliver: Callable[[TaskMessage], None],
        ping_interval_s: float = PING_INTERVAL_S,
        handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S,
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._key = key
        self._deliver = deliver
        self._ping_interval_s = ping_interval_s
        self._handshake_timeout_s = handshake_timeout_s
        self._next_ping = time.monotonic() + ping_interval_s
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._commands: deque[tuple[TaskId, bytes]] = deque()
        self._unauthenticated: dict[TaskConnection, None] = {}  # in the order of their deadlines
        self._authenticated: set[TaskConnection] = set()
        self._by_task: dict[TaskId, TaskConnection] = {}
        self._is_accepting = False
        self._accepts_from = 0.0
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="epoch-channel", daemon=True)
        self._thread.start()

    def send(self, task: TaskId, payload: bytes) -> None:
        """Send a payload to a task if it is connected. Called by any thread."""
        self._commands.append((task, payload))
        self._wake()

    def close(self) -> None:
        """Close all connections and the listener, and wait for the thread."""
        self._is_closing = True
        self._wake()
        self._thread.join(_CLOSE_TIMEOUT_S)

    def _wake(self) -> None:
        # A full buffer wakes the thread as well; after `close` the thread is gone.
        with suppress(OSError):
            self._waker.send(b"\0")

    def _run(self) -> None:
        try:
            self._selector.register(self._woken, _READ)
            while not self._is_closing:
                self._accept_or_wait()
                for key, events in self._selector.select(self._wait_s()):
                    self._serve(key.fileobj, key.data, events)
                self._send_commands()
                self._ping()
                self._drop_overdue()
            self._send_commands()
        except Exception:
            log.exception(
                "The channel of a continuous query has failed: its tasks lose their driver"
            )
        finally:
            self._close_all()

    def _wait_s(self) -> float:
        next_event = self._next_ping
        for connection in self._unauthenticated:
            next_event = min(next_event, connection.deadline)
            break
        return max(0.0, next_event - time.monotonic())

    def _accept_or_wait(self) -> None:
        """Accept no connection while too many are unauthenticated: the kernel queues them."""
        is_accepting = (
            len(self._unauthenticated) < MAX_UNAUTHENTICATED
            and time.monotonic() >= self._accepts_from
        )
        if is_accepting and not self._is_accepting:
            self._selector.register(self._listener, _READ)
        elif self._is_accepting and not is_accepting:
            self._selector.unregister(self._listener)
        self._is_accepting = is_accepting

    def _serve(self, ready: object, connection: TaskConnection | None, events: int) -> None:
        if ready is self._listener:
            self._accept()
        elif ready is self._woken:
            self._woken.recv(4096)
        elif connection is not None and connection.socket.fileno() >= 0:
            self._guarded(connection, self._exchange, events)

    def _accept(self) -> None:
        try:
            connected, peer = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:
            # Such as EMFILE: the connection stays in the kernel's queue, and the listener stays
            # readable.
            log.warning("The driver cannot accept a connection of a task: %s", error)
            self._accepts_from = self._next_ping
            return
        deadline = time.monotonic() + self._handshake_timeout_s
        connection = TaskConnection(connected, f"{peer[0]}:{peer[1]}", self._key, deadline)
        self._unauthenticated[connection] = None
        self._selector.register(connected, _READ, connection)
        self._guarded(connection, TaskConnection.flush)

    def _guarded(
        self,
        connection: TaskConnection,
        act: Callable[..., None],
        *arguments: object,
    ) -> None:
        """Act on a connection; drop it if it is broken or not to be trusted."""
        try:
            act(connection, *arguments)
        except (EOFError, OSError):
            self._drop(connection)
        except (RefusedError, ValueError) as error:
            # The text of a ValueError may have content.
            known = isinstance(error, RefusedError)
            self._refuse(connection, str(error) if known else "what it sent is malformed")
        else:
            wanted = _READ_WRITE if connection.has_unsent else _READ
            if self._selector.get_key(connection.socket).events != wanted:
                self._selector.modify(connection.socket, wanted, connection)

    def _exchange(self, connection: TaskConnection, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            connection.flush()
        if events & selectors.EVENT_READ:
            for payload in connection.receive():
                if payload != PING:
                    self._take(connection, read_message(payload))
            if connection.is_authenticated and connection in self._unauthenticated:
                del self._unauthenticated[connection]
                self._authenticated.add(connection)

    def _take(self, connection: TaskConnection, message: TaskMessage) -> None:
        if connection.task is None:
            connection.task = message.task
            replaced = self._by_task.pop(message.task, None)
            if replaced is not None:
                self._drop(replaced)
            self._by_task[message.task] = connection
        if message.task == connection.task:
            self._deliver(message)
        else:
            log.warning("Dropped a message of another task from %s", connection.peer)

    def _send_commands(self) -> None:
        while self._commands:
            task, payload = self._commands.popleft()
            connection = self._by_task.get(task)
            if connection is not None:
                self._guarded(connection, TaskConnection.send, payload)

    def _ping(self) -> None:
        now = time.monotonic()
        if now >= self._next_ping:
            self._next_ping = now + self._ping_interval_s
            for connection in tuple(self._authenticated):
                self._guarded(connection, TaskConnection.ping)

    def _drop_overdue(self) -> None:
        now = time.monotonic()
        for connection in tuple(self._unauthenticated):
            if connection.deadline > now:
                return
            self._refuse(connection, "it did not authenticate in time")

    def _refuse(self, connection: TaskConnection, reason: str) -> None:
        log.warning("Dropped a connection from %s to the driver: %s", connection.peer, reason)
        self._drop(connection)

    def _drop(self, connection: TaskConnection) -> None:
        self._unauthenticated.pop(connection, None)
        self._authenticated.discard(connection)
        if connection.task is not None and self._by_task.get(connection.task) is connection:
            del self._by_task[connection.task]
        self._selector.unregister(connection.socket)
        connection.close()

    def _close_all(self) -> None:
        for connection in (*self._unauthenticated, *self._authenticated):
            connection.close()
        shut_down(self._listener)
        for each in (self._selector, self._woken, self._waker):
            each.close()


SOCKET: Final = "socket"
"""The ``kind`` of this channel's address; its location is ``host:port``."""

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 1024


@final
class SocketEpochChannel(EpochChannel):
    """Listens on a port of the driver, to which tasks connect.

    ``bind_address`` is of this machine; ``advertised_host`` is its name for executors. Port 0 is
    any free port.

    :raises OSError: if the address or the port cannot be used.
    """

    def __init__(
        self,
        bind_address: str = LOOPBACK,
        advertised_host: str | None = None,
        port: int = 0,
        *,
        ping_interval_s: float = PING_INTERVAL_S,
        handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S,
    ) -> None:
        # Spark writes IPv6 addresses in brackets (Utils.addBracketsIfNeeded).
        bound = bind_address.strip("[]")
        listener = socket.create_server((bound, port), family=_family(bound), backlog=_BACKLOG)
        host = bind_address if advertised_host is None else advertised_host
        location = f"{host}:{listener.getsockname()[1]}"
        self._address = ChannelAddress(SOCKET, location, new_key())
        self._inbox: Inbox[TaskMessage] = Inbox()
        self._is_closed = False
        self._loop = ConnectionLoop(
            listener, self._address.key, self._inbox.put, ping_interval_s, handshake_timeout_s
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self._address.location}')"

    @property
    def address(self) -> ChannelAddress:
        return self._address

    def receive(self, timeout_s: float) -> Sequence[TaskMessage]:
        return self._inbox.take(timeout_s)

    def send(self, task: TaskId, command: TaskCommand) -> None:
        if not self._is_closed:
            self._loop.send(task, check_size(write_command(command).encode()))

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.close()


def _family(host: str) -> socket.AddressFamily:
    """Return the family of a host's addresses: IPv6 if it has only IPv6 addresses."""
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM) if host else ()
    families = {family for family, *_ in found}
    return socket.AF_INET6 if families == {socket.AF_INET6} else socket.AF_INET
