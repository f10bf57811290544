"""Listeners on loopback that accept connections, and then stall."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any


class StallingListener(ThreadingTCPServer):
    """Sends each client a content, some bytes at a time, and then nothing until it is closed."""

    def __init__(self, content: bytes, pause_s: float, step: int, *, stalls: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), BaseRequestHandler)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.connections = 0
        self.closing = threading.Event()
        self._steps = [content[at : at + step] for at in range(0, len(content), step)]
        self._pause_s = pause_s
        self._stalls = stalls

    def finish_request(self, request: Any, _: object) -> None:
        self.connections += 1
        # The client gives up first.
        with suppress(OSError):
            for sent in self._steps:
                request.sendall(sent)
                if self.closing.wait(self._pause_s):
                    return
            if self._stalls:
                self.closing.wait()


@contextmanager
def trickling_listener(
    content: bytes, pause_s: float = 0.1, step: int = 1, *, stalls: bool = True
) -> Iterator[StallingListener]:
    """Run a listener that answers any request with a byte at a time, or some."""
    with StallingListener(content, pause_s, step, stalls=stalls) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield listener
        finally:
            listener.closing.set()
            listener.shutdown()
            thread.join()


def closing_listener(content: bytes) -> Any:
    """Run a listener that closes each connection after its answer."""
    return trickling_listener(content, 0, max(1, len(content)), stalls=False)


def silent_listener() -> Any:
    """Run a listener that reads nothing and sends nothing."""
    return trickling_listener(b"")
