"""Listeners on loopback that accept connections, and then stall."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import final


@final
class StallingListener(ThreadingTCPServer):
    """Passes each connection to a function in a thread, which returns when the event is set."""

    def __init__(self, serve: Callable[[socket.socket, threading.Event], None]) -> None:
        """Listen on a free port."""
        self.connections = 0
        """How many connections were accepted."""

        self.closing = threading.Event()
        listener = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                listener.connections += 1
                # The client gives up first.
                with suppress(OSError):
                    serve(self.request, listener.closing)

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        """Where it listens, ``host:port``."""
        return f"127.0.0.1:{self.server_address[1]}"


@contextmanager
def silent_listener() -> Iterator[StallingListener]:
    """Run a listener that reads nothing and sends nothing."""
    with _running(lambda _, closing: _wait(closing)) as listener:
        yield listener


@contextmanager
def trickling_listener(
    content: bytes, pause_s: float = 0.1, step: int = 1
) -> Iterator[StallingListener]:
    """Run a listener that answers any request with a byte at a time, or some."""

    def trickle(accepted: socket.socket, closing: threading.Event) -> None:
        for place in range(0, len(content), step):
            accepted.sendall(content[place : place + step])
            if closing.wait(pause_s):
                return
        _wait(closing)

    with _running(trickle) as listener:
        yield listener


def _wait(closing: threading.Event) -> None:
    closing.wait()


@contextmanager
def _running(serve: Callable[[socket.socket, threading.Event], None]) -> Iterator[StallingListener]:
    with StallingListener(serve) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield listener
        finally:
            listener.closing.set()
            listener.shutdown()
            thread.join()
