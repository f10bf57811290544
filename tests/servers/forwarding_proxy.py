"""A proxy on loopback that speaks HTTP CONNECT and SOCKS5, with a user and a password."""

import base64
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Final

REFUSED: Final = "refused-secret"
_POLL_S: Final = 0.01


class ForwardingProxy(ThreadingTCPServer):
    """Forwards connections to where clients ask for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.logins: set[tuple[str, str]] = set()


class _Handler(StreamRequestHandler):
    server: ForwardingProxy

    def handle(self) -> None:
        first = self.connection.recv(1, socket.MSG_PEEK)
        opened = self._socks() if first == b"\5" else self._http()
        if opened is not None:
            with opened:
                _forward(self.connection, opened)

    def _http(self) -> socket.socket | None:
        method, target, _ = self.rfile.readline().decode().split()
        assert method == "CONNECT"
        login = ""
        while line := self.rfile.readline().decode().strip():
            name, _, value = line.partition(": ")
            if name.lower() == "proxy-authorization":
                login = base64.b64decode(value.removeprefix("Basic ")).decode()
        if not self._accepts(*login.split(":", 1)):
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return None
        host, _, port = target.rpartition(":")
        opened = socket.create_connection((host, int(port)))
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return opened

    def _socks(self) -> socket.socket | None:
        self.rfile.read(self.rfile.read(2)[1])
        self.wfile.write(b"\5\2")
        assert self.rfile.read(1) == b"\1"
        if not self._accepts(self._text(), self._text()):
            self.wfile.write(b"\1\1")
            return None
        self.wfile.write(b"\1\0")
        *_, kind = self.rfile.read(4)
        host = self._text() if kind == 3 else socket.inet_ntoa(self.rfile.read(4))
        (port,) = struct.unpack(">H", self.rfile.read(2))
        opened = socket.create_connection((host, port))
        self.wfile.write(b"\5\0\0\1" + bytes(6))
        return opened

    def _text(self) -> str:
        return self.rfile.read(self.rfile.read(1)[0]).decode()

    def _accepts(self, user: str, password: str) -> bool:
        if password == REFUSED:
            return False
        self.server.logins.add((user, password))
        return True


def _forward(client: socket.socket, broker: socket.socket) -> None:
    back = threading.Thread(target=_pump, args=(broker, client), daemon=True)
    back.start()
    _pump(client, broker)
    back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while received := source.recv(65_536):
            target.sendall(received)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def forwarding_proxy() -> Iterator[ForwardingProxy]:
    """Run a proxy."""
    with ForwardingProxy() as proxy:
        accepting = threading.Thread(target=proxy.serve_forever, args=(_POLL_S,), daemon=True)
        accepting.start()
        yield proxy
        proxy.shutdown()
        accepting.join()
