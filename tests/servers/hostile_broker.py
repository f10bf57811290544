"""A broker on loopback that speaks Kafka's protocol, and lies where a test wants it to."""

import math
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, final

from .honest_cluster import APIS, HonestCluster

HOST: Final = "127.0.0.1"
MAX_CONNECTIONS: Final = 500
MAX_REQUEST_BYTES: Final = 10_000_000
IDLE_S: Final = 60.0
EMPTY_FETCH_S: Final = 0.02
"""How long a fetch without records waits; the request's own limit is ignored."""

_REQUESTS: Final = {api.API_KEY: api for api in APIS}


@final
@dataclass(frozen=True, slots=True)
class Line:
    """A connection to a client, on which answers are sent."""

    socket: socket.socket
    closing: threading.Event

    def send(self, content: bytes) -> None:
        """Send bytes as they are.

        :raises OSError: if the client has gone.
        """
        self.socket.sendall(content)

    def trickle(self, content: bytes, pause_s: float) -> None:
        """Send a byte at a time, until the client or the broker has enough of it."""
        for place in range(len(content)):
            self.send(content[place : place + 1])
            if self.closing.wait(pause_s):
                return

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionResetError


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _send_framed(line: Line, frame: bytes) -> None:
    line.send(framed(frame))


@final
@dataclass(frozen=True, slots=True)
class Lie:
    """How answers of one API differ from honest ones, in one of three places.

    ``api`` is a request's name without ``Request``. The first ``after`` answers are honest, and
    then so many ``times`` are not.
    """

    api: str
    answer: Callable[[Any, Any], Any] | None = None
    """Changes a response, which is kafka-python's, with its request before it; it may return
    another."""

    frame: Callable[[bytes], bytes] | None = None
    """Changes an encoded response, which begins with the correlation id."""

    send: Callable[[Line, bytes], None] = _send_framed
    """Sends an encoded response."""

    times: float = math.inf
    after: int = 0

    def is_due(self, count: int) -> bool:
        """Return whether an answer is changed, before which there were ``count``."""
        return self.after <= count < self.after + self.times


@final
class HostileBroker:
    """Listens on a free port, with a thread for each connection, until it is closed."""

    def __init__(
        self, topics: Sequence[str] = ("t",), partitions: int = 2, lies: Sequence[Lie] = ()
    ) -> None:
        """Begin to listen; ``lies`` may be changed at any time."""
        self._listener = socket.create_server((HOST, 0))
        self._listener.settimeout(IDLE_S)
        port = self._listener.getsockname()[1]
        self.bootstrap_servers = f"{HOST}:{port}"
        self.cluster = HonestCluster(topics, partitions, HOST, port)
        self.lies = tuple(lies)
        self.answered: Counter[str] = Counter()
        """How many requests of each API were answered."""

        self.failures: list[BaseException] = []
        """What the broker itself did wrong."""

        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Close all sockets, and wait for all threads; a second call does nothing."""
        self._closing.set()
        with suppress(OSError):
            # Closing alone would not wake the thread that accepts.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(IDLE_S)
        self._listener.close()
        with self._lock:
            connections = tuple(self._connections)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(IDLE_S)

    def _accept(self) -> None:
        with suppress(OSError):
            while len(self._threads) <= MAX_CONNECTIONS:
                accepted, _ = self._listener.accept()
                accepted.settimeout(IDLE_S)
                with self._lock:
                    self._connections.add(accepted)
                serving = threading.Thread(target=self._serve, args=(accepted,), daemon=True)
                self._threads.append(serving)
                serving.start()

    def _serve(self, connection: socket.socket) -> None:
        line = Line(connection, self._closing)
        try:
            with connection, suppress(OSError), connection.makefile("rb") as received:
                while not self._closing.is_set():
                    size = int.from_bytes(received.read(4), "big", signed=True)
                    if not 0 < size <= MAX_REQUEST_BYTES:
                        return
                    self._respond(line, received.read(size))
        except Exception as error:  # noqa: BLE001  # a test looks at it
            self.failures.append(error)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _respond(self, line: Line, content: bytes) -> None:
        key, version, correlation_id = struct.unpack_from(">hhi", content)
        kind = _REQUESTS[key]
        if version > APIS[kind][1] and kind.name == "ApiVersionsRequest":
            # Only its header can be read, and the answer has the version 0 (KIP-511).
            request, version_sent = kind(), 0
        else:
            request, version_sent = kind.decode(content, version=version, header=True), version
        api = kind.name.removesuffix("Request")
        with self._lock:
            response = self.cluster.answer(request, version)
            lies = [lie for lie in self.lies if lie.api == api]
            due = [lie for lie in lies if lie.is_due(self.answered[api])]
            self.answered[api] += 1
        for lie in due:
            response = (lie.answer and lie.answer(request, response)) or response
        if api == "Produce" and not request.acks:
            return
        if api == "Fetch" and not _has_records(response):
            self._closing.wait(EMPTY_FETCH_S)
        response.API_VERSION = version_sent
        response.with_header(correlation_id=correlation_id)
        frame = response.encode(header=True)
        for lie in due:
            frame = lie.frame(frame) if lie.frame else frame
        sending = next((lie.send for lie in due), _send_framed)
        sending(line, frame)


def _has_records(fetched: Any) -> bool:
    return any(
        one.records or one.error_code for each in fetched.responses for one in each.partitions
    )


@contextmanager
def hostile_broker(
    *lies: Lie, topics: Sequence[str] = ("t",), partitions: int = 2
) -> Iterator[HostileBroker]:
    """Run a broker; what it did wrong itself is raised at the end."""
    broker = HostileBroker(topics, partitions, lies)
    try:
        yield broker
    finally:
        broker.close()
    if broker.failures:
        raise broker.failures[0]
