"""A TCP proxy that holds, delays, slows down, breaks or refuses connections."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self, final
from urllib.parse import urlsplit

from pyspark_kafka.brokers.settings import free_ports

_CHUNK: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)
"""``SO_LINGER`` with which closing sends RST."""

_STOP_S: Final = 10.0
_DIRECTIONS: Final = (True, False)
"""Whether it is the one to the server."""


@final
@dataclass(frozen=True, slots=True)
class Traffic:
    """What happens to the bytes of one direction.

    ``reset_after`` is how many further bytes of a connection pass before it is reset.
    """

    is_held: bool = False
    delay_s: float = 0.0
    bytes_per_s: int | None = None
    reset_after: int | None = None


FREE: Final = Traffic()


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """What a proxy does to both directions, and whether it refuses connections."""

    to_server: Traffic = FREE
    to_client: Traffic = FREE
    refuses: bool = False


OPEN: Final = Rules()


@final
class FaultProxies:
    """Runs proxies in one thread, which ends with the block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._proxies: list[FaultProxy] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for proxy in self._proxies:
            proxy.close()
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(_STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)
        self._loop.close()

    def add(self, port: int, target: int) -> FaultProxy:
        """Listen on a port of loopback, for a server on another one.

        :raises OSError: if the port is taken.
        """
        proxy = FaultProxy(self._loop, port, target)
        proxy.set(OPEN)
        self._proxies.append(proxy)
        return proxy


@contextmanager
def proxied(url: str) -> Iterator[FaultProxy]:
    """Run a proxy for the server of a URL, on any port."""
    target = urlsplit(url).port
    assert target is not None
    with FaultProxies() as proxies:
        yield proxies.add(free_ports(1)[0], target)


@final
class FaultProxy:
    """A proxy between clients and one server. Its rules may be changed by any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int, target: int) -> None:
        self._loop = loop
        self._target = "127.0.0.1", target
        self._rules = Rules(refuses=True)
        self._changed = asyncio.Event()
        self._listener: socket.socket | None = None
        self._connections: set[_Connection] = set()
        self._accepting: asyncio.Task[None] | None = None
        self.port = port
        self.connections = 0
        """How many clients have connected."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def rules(self) -> Rules:
        return self._rules

    def set(self, rules: Rules) -> None:
        """Put rules in force, for new connections and for those there are."""
        self._call(lambda: self._set(rules))

    def reset_all(self) -> None:
        self._call(self._reset_all)

    def close(self) -> None:
        """Refuse connections, and reset those there are."""
        self.set(Rules(refuses=True))

    def _call(self, act: Callable[[], None]) -> None:
        async def run() -> None:
            act()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(_STOP_S)

    def _set(self, rules: Rules) -> None:
        if rules.refuses and self._listener is not None:
            assert self._accepting is not None
            self._accepting.cancel()
            _close(self._listener, self._loop)
            self._listener = None
            self._reset_all()
        elif not rules.refuses and self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._listener.setblocking(False)
            self._accepting = self._loop.create_task(self._accept(self._listener))
        self._rules = rules
        self._changed.set()
        self._changed = asyncio.Event()

    def _reset_all(self) -> None:
        for connection in tuple(self._connections):
            connection.reset()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            accepted, _ = await self._loop.sock_accept(listener)
            self.connections += 1
            connection = _Connection(accepted)
            self._connections.add(connection)
            connection.tasks.add(self._loop.create_task(self._serve(connection)))

    async def _serve(self, connection: _Connection) -> None:
        try:
            await self._loop.sock_connect(connection.server, self._target)
        except OSError:
            self._drop(connection)
            return
        for to_server in _DIRECTIONS:
            pump = self._pump(connection, to_server=to_server)
            connection.tasks.add(self._loop.create_task(pump))

    async def _pump(self, connection: _Connection, *, to_server: bool) -> None:
        ends = connection.client, connection.server
        source, sink = ends if to_server else ends[::-1]
        passed = _Passed(self, to_server=to_server)
        try:
            while data := await self._loop.sock_recv(source, passed.chunk):
                if not await passed.forward(sink, data):
                    self._drop(connection)
                    return
            await passed.forward(sink, b"")
            sink.shutdown(socket.SHUT_WR)
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                self._drop(connection)
        finally:
            connection.ended += 1
            if connection.ended == len(_DIRECTIONS):
                self._connections.discard(connection)
                connection.close()

    def _drop(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        connection.reset()

    async def wait_for_change(self) -> None:
        """Wait until other rules are put in force; in the proxies' thread."""
        await self._changed.wait()


@final
class _Passed:
    """One direction of a connection, and how much of it has passed under the rules."""

    def __init__(self, proxy: FaultProxy, *, to_server: bool) -> None:
        self._proxy = proxy
        self._to_server = to_server
        self._rules = proxy.rules
        self._count = 0

    @property
    def chunk(self) -> int:
        """How much to read at once: what is slow is read slowly, so that its sender is held up."""
        return min(_CHUNK, self._traffic().bytes_per_s or _CHUNK)

    async def forward(self, sink: socket.socket, data: bytes) -> bool:
        """Send data as the rules say; return whether the connection goes on.

        No data is the end of a direction, which is held as data is.
        """
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._traffic().delay_s)
        rest = memoryview(data)
        while (traffic := self._traffic()).is_held or rest:
            if traffic.is_held:
                await self._proxy.wait_for_change()
                continue
            allowed = _allowed(traffic, self._count, len(rest))
            await loop.sock_sendall(sink, rest[:allowed])
            rest, self._count = rest[allowed:], self._count + allowed
            if traffic.reset_after is not None and self._count >= traffic.reset_after:
                return False
            if traffic.bytes_per_s is not None:
                await asyncio.sleep(allowed / traffic.bytes_per_s)
        return True

    def _traffic(self) -> Traffic:
        rules = self._proxy.rules
        if rules is not self._rules:
            self._rules, self._count = rules, 0
        return rules.to_server if self._to_server else rules.to_client


def _allowed(traffic: Traffic, passed: int, left: int) -> int:
    allowed = left
    if traffic.bytes_per_s is not None:
        # Ten steps a second: a reader sees a trickle.
        allowed = min(allowed, max(1, traffic.bytes_per_s // 10))
    if traffic.reset_after is not None:
        allowed = min(allowed, max(0, traffic.reset_after - passed))
    return allowed


@final
class _Connection:
    """Both sockets of a client that is connected."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server = socket.socket()
        self.tasks: set[asyncio.Task[None]] = set()
        self.ended = 0
        for each in (self.client, self.server):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reset(self) -> None:
        for each in (self.client, self.server):
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close()

    def close(self) -> None:
        """Close both sockets, and end what waits for them."""
        loop, current = asyncio.get_running_loop(), asyncio.current_task()
        for task in self.tasks:
            if task is not current:
                task.cancel()
        for each in (self.client, self.server):
            _close(each, loop)


def _close(connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
    """Close a socket. A cancelled task looks for it later, by a number that may be another's."""
    if connection.fileno() >= 0:
        loop.remove_reader(connection)
        loop.remove_writer(connection)
        connection.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
