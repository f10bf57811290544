"""A TCP proxy that counts connections: one that is refused counts as a login."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CountingProxy:
    """Passes connections on to a broker; a client that is not let in knows no other address."""

    def __init__(self, target: str) -> None:
        """Listen on a free port, for a target ``host:port``."""
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Accept no more connections."""
        # Closing alone would not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self.connections += 1
                broker = socket.create_connection(self._target)
                for pair in ((accepted, broker), (broker, accepted)):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with source, suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def counted_connections(target: str) -> Iterator[CountingProxy]:
    """Run a proxy in front of a broker's listener."""
    proxy = CountingProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
