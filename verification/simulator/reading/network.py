"""A network in virtual time: its sockets have the methods of real ones that do not block."""

import errno
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ..engine.scheduler import Process, Scheduler

Address = tuple[str, int]
Accept = Callable[["Line"], None]

FIRST_SYN_MS: Final = 1_000
_MAX_SYN_MS: Final = 16_000
_FIRST_FD: Final = 1_000


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


class Line:
    """A broker's end of a connection; what is sent arrives in order."""

    def __init__(self, network: Network, client: "SimulatedSocket", host: str) -> None:
        self.network = network
        self.host = host
        self.client = client
        self.is_closed = False
        """Whether one of the ends is closed."""

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
            else:
                self._line = Line(network, self, address[0])
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
