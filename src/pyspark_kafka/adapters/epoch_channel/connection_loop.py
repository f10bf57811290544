"""The thread that serves the connections of all tasks."""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.messages import read_message
from .frames import PING
from .task_connection import RefusedError, TaskConnection, shut_down

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.continuous.messages import TaskId, TaskMessage

log = logging.getLogger("pyspark_kafka")

HANDSHAKE_TIMEOUT_S: Final = 10.0
PING_INTERVAL_S: Final = 1.0
MAX_UNAUTHENTICATED: Final = 256
_CLOSE_TIMEOUT_S: Final = 10.0
_READ: Final = selectors.EVENT_READ
_READ_WRITE: Final = selectors.EVENT_READ | selectors.EVENT_WRITE


@final
class ConnectionLoop:
    """Accepts, authenticates, receives, sends and pings, in a thread of its own.

    Tasks hear from the driver therefore while the driver's own thread waits for a storage.
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
        # A full buffer wakes the thread as well; after `close` there is none.
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
            # As EMFILE: the connection stays in the kernel's queue, and the listener readable.
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
