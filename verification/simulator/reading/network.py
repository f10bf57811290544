"""A network in virtual time: its sockets have the methods of real ones that do not block."""

import errno
import gc
import itertools
import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ..engine.outcome import ViolationError
from ..engine.scheduler import Process, Scheduler

Address = tuple[str, int]
Accept = Callable[["Line"], None]

FIRST_SYN_MS: Final = 1_000
_MAX_SYN_MS: Final = 16_000
_FIRST_FD: Final = 1_000
MAX_REFUSED: Final = 32
"""Each of five names may have the same dead address, and is tried six times in its first second."""


class ReceiveMemory:
    """The memory that a client has received bytes into, for as long as it keeps it."""

    def __init__(self) -> None:
        self.limit_of: Callable[[], float] = lambda: math.inf
        self.max_bytes = 0
        self._kept: dict[int, tuple[object, int]] = {}
        self._bytes = 0

    def note(self, buffer: memoryview) -> None:
        """Note where bytes were received; what is as small as a length does not count."""
        owner, key = buffer.obj, id(buffer.obj)
        if key in self._kept or not isinstance(owner, np.ndarray):
            return
        self._kept[key] = weakref.ref(owner, lambda _: self._forget(key)), owner.nbytes
        self._bytes += owner.nbytes
        if self._bytes > self.limit_of():
            gc.collect()  # simulations do without
            if self._bytes > self.limit_of():
                text = f"{self._bytes} bytes, more than {self.limit_of():.0f}"
                raise ViolationError("memory is not bounded", text)
        self.max_bytes = max(self.max_bytes, self._bytes)

    def _forget(self, key: int) -> None:
        self._bytes -= self._kept.pop(key)[1]


class Client:
    """The network's view of one client, from when it begins to when it ends."""

    def __init__(self) -> None:
        self.memory = ReceiveMemory()
        self.most_connections = math.inf
        """How many it may open from now on; it needs few while nothing fails."""

        self.was_refused = False
        """Whether a broker has refused a login."""

        self.has_reported = False
        """Whether the client has reported that, and must not repeat the login."""

        self.unanswered = 0
        """How many connections brokers closed before an answer."""

        self.most_refused = 0
        """The most refused attempts to connect to a host in a second."""

        self._refused: dict[str, deque[int]] = {}

    def note_connection(self) -> None:
        self.most_connections -= 1
        if self.most_connections < 0:
            raise ViolationError("connects again and again", "while nothing fails")

    def note_refused(self, host: str, now_ms: int) -> None:
        """Note an attempt to connect where nothing listens."""
        recent = self._refused.setdefault(host, deque())
        recent.append(now_ms)
        while recent[0] < now_ms - 1_000:
            recent.popleft()
        self.most_refused = max(self.most_refused, len(recent))
        if len(recent) > MAX_REFUSED:
            raise ViolationError("connects without a pause", f"{len(recent)} x {host} in a second")


class Network:
    """Who listens where, which hosts swallow packets, and who waits for a socket."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.listeners: dict[Address, Accept] = {}
        self.names: dict[str, list[str]] = {}
        """The addresses of names; one without any cannot be resolved."""

        self.sockets: dict[int, SimulatedSocket] = {}
        self.latency_ms = 1
        self.send_limit: Callable[[SimulatedSocket], int | None] = lambda _: None
        """How many bytes the next ``send`` of a socket takes; ``None`` for all."""

        self.max_sockets = 0
        self.client = Client()
        self._silent: set[str] = set()
        self._held: list[tuple[str, Callable[[], None]]] = []
        self._waiting: Process | None = None
        self._numbers = itertools.count(_FIRST_FD)

    def silence(self, host: str) -> None:
        """Let the packets from and to a host get lost, which are sent again later."""
        self._silent.add(host)

    def restore(self, *hosts: str) -> None:
        """Let packets arrive again, by default those of all hosts."""
        self._silent.difference_update(hosts or tuple(self._silent))
        held, self._held = self._held, []
        for each, action in held:
            self.carry(each, 0, action)

    def is_silent(self, host: str) -> bool:
        return host in self._silent

    def carry(self, host: str, delay_ms: int, action: Callable[[], None]) -> None:
        """Let a packet arrive, once the host's packets do."""

        def arrive() -> None:
            if host in self._silent:
                self._held.append((host, action))
            else:
                action()

        self.scheduler.at(delay_ms, arrive)

    def open(self, opened: "SimulatedSocket") -> int:
        number = next(self._numbers)
        self.sockets[number] = opened
        self.max_sockets = max(self.max_sockets, len(self.sockets))
        return number

    def wait(self, ms: int) -> None:
        """Let the process wait until the state of any socket changes, or in time."""
        self._waiting = self.scheduler.current
        self.scheduler.sleep(ms)
        self._waiting = None

    def changed(self) -> None:
        if self._waiting is not None:
            self.scheduler.wake(self._waiting)
            self._waiting = None

    def close_all(self) -> None:
        """Close the sockets of a process that has died."""
        for each in list(self.sockets.values()):
            each.close()
        self.begin_client()

    def begin_client(self) -> None:
        """Let another client begin, after the last one has ended."""
        ended, self.client = self.client, Client()
        self.client.memory.limit_of = ended.memory.limit_of
        self.client.memory.max_bytes = ended.memory.max_bytes
        self.client.most_refused = ended.most_refused


class Line:
    """A broker's end of a connection; what is sent arrives in order."""

    def __init__(self, network: Network, client: "SimulatedSocket", host: str) -> None:
        self.network = network
        self.host = host
        self.client = client
        self.is_closed = False
        """Whether one of the ends is closed."""

        self.has_answered = False
        """Whether a request was answered after those that every listener answers."""

        self.expires_ms = math.inf
        """When the session of its login ends (KIP-368)."""

        self.on_request: Callable[[bytes], None] = lambda _: None
        self.on_close: Callable[[], None] = lambda: None
        self._received = bytearray()
        self._last_ms = 0
        self._sending: deque[list[bytes]] = deque()

    def receive(self, data: bytes) -> None:
        """Take bytes of requests, and hand each complete one on, without its length."""
        if self.is_closed:
            self.network.carry(self.host, self.network.latency_ms, self.client.reset)
            return
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) < 4 + size:
                return
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self.on_request(frame)

    def send(self, parts: Sequence[tuple[int, bytes]]) -> None:
        """Send parts, each after a pause."""
        for pause_ms, part in parts:
            unsent = [part]
            self._sending.append(unsent)
            self._after(pause_ms, self._arrive)

    def close(self, *, is_reset: bool = False, keep: int | None = None) -> None:
        """End the connection after the first ``keep`` bytes of what was sent have arrived."""
        if self.is_closed:
            return
        self.is_closed = True
        self.network.client.unanswered += keep is not None or not self.has_answered
        if keep is not None:
            for unsent in self._sending:
                unsent[0] = unsent[0][:keep]
                keep -= len(unsent[0])
        self._after(0, self.client.reset if is_reset else self.client.end)
        self.on_close()

    def hang_up(self) -> None:
        """Take note that the client has closed its end."""
        if not self.is_closed:
            self.is_closed = True
            self.on_close()

    def _arrive(self) -> None:
        self.client.arrive(self._sending.popleft()[0])

    def _after(self, pause_ms: int, action: Callable[[], None]) -> None:
        now_ms = self.network.scheduler.now_ms
        at_ms = max(now_ms + self.network.latency_ms, self._last_ms) + pause_ms
        self._last_ms = at_ms
        self.network.carry(self.host, at_ms - now_ms, action)


class SimulatedSocket:
    """The client's end; it is never in blocking mode."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._number = network.open(self)
        self._received = bytearray()
        self._has_ended = False
        self._error = 0
        self._line: Line | None = None
        self._peer: SimulatedSocket | None = None
        self._address: Address | None = None
        self._is_full = False

    # What is ready

    @property
    def is_readable(self) -> bool:
        return bool(self._received or self._has_ended or self._error)

    @property
    def is_writable(self) -> bool:
        return bool(self._line is not None and not self._is_full) or bool(self._error)

    # Methods of a socket

    def fileno(self) -> int:
        return self._number

    def setblocking(self, flag: bool) -> None:
        """Stay in the mode that does not block."""

    def setsockopt(self, *_: object) -> None:
        """Have no options."""

    def getsockopt(self, *_: object) -> int:
        return self._error

    def getsockname(self) -> Address:
        return "10.9.9.9", 30_000 + self._number

    def getpeername(self) -> Address:
        if self._address is None or self._number < 0:
            raise OSError(errno.ENOTCONN, "not connected")
        return self._address

    def connect_ex(self, address: Address) -> int:
        if self._error:
            error, self._error = self._error, 0
            return error
        if self._line is not None:
            return errno.EISCONN
        if self._address is None:
            self._address = address[:2]
            self._knock(FIRST_SYN_MS)
        return errno.EINPROGRESS

    def send(self, data: bytes | memoryview) -> int:
        self._require_open()
        if self._peer is not None:
            self._peer.arrive(bytes(data))
            return len(data)
        if self._error:
            raise self._taken_error()
        if self._line is None:
            raise OSError(errno.ENOTCONN, "not connected")
        limit = 0 if self._is_full else self._network.send_limit(self)
        if limit == 0:
            self._fill()
            raise BlockingIOError(errno.EAGAIN, "the buffer is full")
        taken = bytes(data[:limit])
        line = self._line
        if self._network.scheduler.now_ms > line.expires_ms:
            raise ViolationError("a session is used after its end", f"at {line.host}")
        self._network.carry(line.host, self._network.latency_ms, lambda: line.receive(taken))
        return len(taken)

    def recv(self, size: int) -> bytes:
        self._require_open()
        if self._received:
            taken = bytes(self._received[:size])
            del self._received[:size]
            return taken
        if self._error:
            raise self._taken_error()
        if self._has_ended:
            return b""
        raise BlockingIOError(errno.EAGAIN, "nothing is there")

    def recv_into(self, buffer: memoryview) -> int:
        taken = self.recv(len(buffer))
        buffer[: len(taken)] = taken
        self._network.client.memory.note(buffer)
        return len(taken)

    def shutdown(self, _: int) -> None:
        self._require_open()

    def close(self) -> None:
        if self._number < 0:
            return
        del self._network.sockets[self._number]
        self._number = -1
        line = self._line
        if line is not None:
            self._network.carry(line.host, self._network.latency_ms, line.hang_up)

    # What the network does

    def pair(self, peer: "SimulatedSocket") -> None:
        """Connect two sockets of the client."""
        self._peer, peer._peer = peer, self

    def arrive(self, data: bytes) -> None:
        if self._number >= 0 and data:
            self._received += data
            self._network.changed()

    def end(self) -> None:
        self._has_ended = True
        self._network.changed()

    def reset(self) -> None:
        """Let the next call fail that finds no more bytes."""
        self._has_ended = True
        self._error = errno.ECONNRESET
        self._network.changed()

    def _knock(self, again_ms: int) -> None:
        """Try to connect, and again while the host does not answer."""
        assert self._address is not None
        network, address = self._network, self._address

        def arrive() -> None:
            if self._number < 0:
                return
            if network.is_silent(address[0]):
                network.scheduler.at(again_ms, lambda: self._knock(min(2 * again_ms, _MAX_SYN_MS)))
                return
            accept = network.listeners.get(address)
            if accept is None:
                self._error = errno.ECONNREFUSED
                network.client.note_refused(address[0], network.scheduler.now_ms)
            else:
                self._line = Line(network, self, address[0])
                network.client.note_connection()
                accept(self._line)
            network.changed()

        network.scheduler.at(2 * network.latency_ms, arrive)

    def _fill(self) -> None:
        """Take nothing for some milliseconds."""
        if not self._is_full:
            self._is_full = True
            self._network.scheduler.at(3, self._drain)

    def _drain(self) -> None:
        self._is_full = False
        self._network.changed()

    def _taken_error(self) -> OSError:
        error, self._error = self._error, 0
        return ConnectionResetError(error, errno.errorcode[error])

    def _require_open(self) -> None:
        if self._number < 0:
            raise OSError(errno.EBADF, "Bad file descriptor")
