"""A small HTTP server on the loopback interface, in a thread."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Request:
    """A request; its target has the path and the query."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def form(self) -> dict[str, str]:
        """The fields of the body, or else of the query, each once."""
        text = self.body.decode() if self.method == "POST" else urlsplit(self.target).query
        return {name: values[0] for name, values in parse_qs(text).items()}


@dataclass(frozen=True, slots=True)
class Response:
    """A response, JSON unless its headers say another type."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class _Server(ThreadingHTTPServer):
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        if self.tls is None:
            return connection, address
        try:
            # Python leaves the socket of a client that is gone open (SSLSocket._create, 3.11).
            connection.getpeername()
            wrapped = self.tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        except OSError:
            connection.close()
            raise
        return wrapped, address

    def handle_error(self, *_: object) -> None:
        """Write nothing to standard error if a client ends a connection."""


@contextmanager
def serving(
    respond: Callable[[Request], Response | None],
    tls: ssl.SSLContext | None = None,
    *,
    keeps_alive: bool = False,
) -> Iterator[str]:
    """Serve the responses of a function, and yield the URL of the server, without a path.

    Without a response, the connection is closed.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps_alive else "HTTP/1.0"

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = dict(self.headers.items())
            response = respond(Request(self.command, self.path, headers, body))
            if response is None:
                self.close_connection = True
                return
            given = {"Content-Type": "application/json", **dict(response.headers)}
            if self.command != "HEAD":
                given["Content-Length"] = str(len(response.body))
            with suppress(OSError):  # the client gives up first
                self.send_response_only(response.status)
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else response.body)

        do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = _respond  # noqa: N815 - of http.server

        def log_message(self, *_: object) -> None:
            """Write nothing to standard error."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        server.tls = tls
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
