"""A small HTTP server on the loopback interface, in a thread."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Request:
    """A request; ``form`` has the fields of its body, or else of its query."""

    path: str
    form: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A response, JSON unless its headers say another type."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Write nothing to standard error if a client ends a connection."""


@contextmanager
def serving(
    respond: Callable[[Request], Response], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve the responses of a function, and yield the URL of the server, without a path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond(urlsplit(self.path).query, b"")

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            body = self.rfile.read(size)
            self._respond(body.decode(), body)

        def log_message(self, *_: object) -> None:
            """Write nothing to standard error."""

        def _respond(self, form: str, body: bytes) -> None:
            fields = {name: values[0] for name, values in parse_qs(form).items()}
            path = urlsplit(self.path).path
            response = respond(Request(path, fields, dict(self.headers.items()), body))
            self.send_response(response.status)
            for name, value in {
                "Content-Type": "application/json",
                **dict(response.headers),
            }.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

    with _Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
