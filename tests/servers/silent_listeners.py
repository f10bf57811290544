"""Listeners on loopback that accept connections, and then stall."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, final

_END_S: Final = 10.0


@final
class StallingListener:
    """Accepts connections until it is closed, and passes each to a function in a thread."""

    def __init__(self, serve: Callable[[socket.socket, threading.Event], None]) -> None:
        """Listen on a free port; ``serve`` returns when the event is set."""
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._accepted: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        """Where it listens, ``host:port``."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connections(self) -> int:
        """How many connections were accepted."""
        return len(self._accepted)

    def close(self) -> None:
        """Close all connections, and wait for all threads."""
        self._closing.set()
        # Closing alone would not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(_END_S)
        self._listener.close()
        for accepted in self._accepted:
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_END_S)
        for accepted in self._accepted:
            accepted.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self._accepted.append(accepted)
                serving = threading.Thread(target=self._run, args=(accepted,))
                self._threads.append(serving)
                serving.start()

    def _run(self, accepted: socket.socket) -> None:
        # The client gives up first.
        with suppress(OSError):
            self._serve(accepted, self._closing)


@contextmanager
def silent_listener() -> Iterator[StallingListener]:
    """Run a listener that reads nothing and sends nothing."""
    with _running(lambda _, closing: _wait(closing)) as listener:
        yield listener


@contextmanager
def trickling_listener(content: bytes, pause_s: float = 0.1) -> Iterator[StallingListener]:
    """Run a listener that answers any request with a byte at a time."""

    def trickle(accepted: socket.socket, closing: threading.Event) -> None:
        for place in range(len(content)):
            accepted.sendall(content[place : place + 1])
            if closing.wait(pause_s):
                return
        _wait(closing)

    with _running(trickle) as listener:
        yield listener


def _wait(closing: threading.Event) -> None:
    closing.wait()


@contextmanager
def _running(serve: Callable[[socket.socket, threading.Event], None]) -> Iterator[StallingListener]:
    listener = StallingListener(serve)
    try:
        yield listener
    finally:
        listener.close()
