"""A TCP proxy that holds, delays, slows down, breaks or refuses connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Self, final
from urllib.parse import urlsplit

from pyspark_kafka.brokers.settings import free_ports
from tests.slowness import bound_s

_CHUNK: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)
"""``SO_LINGER`` with which closing sends RST."""

_STOP_S: Final = bound_s(10)


@final
@dataclass(frozen=True, slots=True)
class Traffic:
    """The treatment of the bytes of one direction.

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
    """The treatment of both directions, and whether the proxy refuses connections."""

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
        self._listener: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[Any], list[StreamWriter]] = {}
        """The ends of each connection, by the task that serves it."""

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
        self._call(self._set(rules))

    def reset_all(self) -> None:
        self._call(self._reset_all())

    def close(self) -> None:
        """Refuse connections, and reset those there are."""
        self.set(Rules(refuses=True))

    def _call(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(_STOP_S)

    async def _set(self, rules: Rules) -> None:
        if rules.refuses and self._listener is not None:
            self._listener.close()
            self._listener = None
            await self._reset_all()
        elif not rules.refuses and self._listener is None:
            self._listener = await asyncio.start_server(
                self._serve, "127.0.0.1", self.port, limit=_CHUNK
            )
        self._rules = rules
        self._changed.set()
        self._changed = asyncio.Event()

    async def _reset_all(self) -> None:
        for task, ends in tuple(self._serving.items()):
            _reset(ends)
            task.cancel()

    async def _serve(self, from_client: StreamReader, to_client: StreamWriter) -> None:
        self.connections += 1
        task, ends = asyncio.current_task(), [to_client]
        assert task is not None
        self._serving[task] = ends
        try:
            from_server, to_server = await asyncio.open_connection(*self._target, limit=_CHUNK)
            ends.append(to_server)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(from_client, to_server, to_server=True))
                pumps.create_task(self._pump(from_server, to_client, to_server=False))
        except* OSError:
            _reset(ends)
        finally:
            del self._serving[task]
            for end in ends:
                end.close()

    async def _pump(self, source: StreamReader, sink: StreamWriter, *, to_server: bool) -> None:
        passed = _Passed(self, to_server=to_server)
        # What was sent is in the kernel's hands before a connection is reset.
        sink.transport.set_write_buffer_limits(0)
        while data := await source.read(passed.chunk):
            await passed.forward(sink, data)
        await passed.forward(sink, b"")
        sink.write_eof()

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

    async def forward(self, sink: StreamWriter, data: bytes) -> None:
        """Send data as the rules say.

        No data is the end of a direction, which is held as data is.

        :raises ConnectionResetError: if the connection is to be reset.
        """
        await asyncio.sleep(self._traffic().delay_s)
        rest = memoryview(data)
        while (traffic := self._traffic()).is_held or rest:
            if traffic.is_held:
                await self._proxy.wait_for_change()
                continue
            allowed = _allowed(traffic, self._count, len(rest))
            sink.write(rest[:allowed])
            await sink.drain()
            rest, self._count = rest[allowed:], self._count + allowed
            if traffic.reset_after is not None and self._count >= traffic.reset_after:
                raise ConnectionResetError
            if traffic.bytes_per_s is not None:
                await asyncio.sleep(allowed / traffic.bytes_per_s)

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


def _reset(ends: Iterable[StreamWriter]) -> None:
    """Close both sockets of a connection with RST."""
    for end in ends:
        with suppress(OSError):
            end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        end.transport.abort()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
