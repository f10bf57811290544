"""An HTTP proxy in front of S3 or WebHDFS, which fails, slows down, and answers with old lists."""

from __future__ import annotations

import enum
import http.client
import math
import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, final
from urllib.parse import parse_qs, urlsplit

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath

from .hdfs import Hdfs
from .s3 import S3Server

_UPSTREAM_S: Final = 60.0
_POLL_S: Final = 0.01
_HOP_BY_HOP: Final = frozenset({"connection", "content-length", "transfer-encoding", "expect"})
_WEBHDFS: Final = "/webhdfs/"
_DATA_NODE: Final = "namenoderpcaddress"
"""A parameter that the NameNode adds to the URLs of DataNodes."""


class Failure(enum.Enum):
    """How a request fails."""

    SLOW_DOWN = enum.auto()
    """503, and the request is not carried out: S3's SlowDown, a NameNode's RetriableException."""

    INTERNAL_ERROR = enum.auto()
    """500, and the request is not carried out."""

    LOST_RESPONSE = enum.auto()
    """The request is carried out, and the response is 500."""

    RESET = enum.auto()
    """The connection is closed without a response."""


@final
@dataclass(frozen=True, slots=True)
class Behavior:
    """What the proxy does to requests."""

    failures: tuple[Failure, ...] = ()
    share: float = 1.0
    """Of requests that fail, by one of ``failures``."""

    only: str = ""
    """What a request that fails has in its method and URL: ``PUT /bucket/1``."""

    max_failures: float = math.inf

    delay_s: float = 0.0
    """Before each request."""

    list_delay_s: float = 0.0
    """How old lists are: they lack newer files, and still have files that were deleted since.

    None is older than this behavior.
    """


HONEST: Final = Behavior()


@final
@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@final
class StorageProxy:
    """Forwards requests to one server; redirects of WebHDFS come back to it, too."""

    def __init__(self, target: str, seed: int = 0) -> None:
        """Take the server's ``host:port``; ``listening`` starts the proxy."""
        self._target = target
        self._chance = random.Random(seed)  # noqa: S311
        self._lock = threading.Lock()
        self._lists: dict[str, list[tuple[float, _Answer]]] = {}
        self._data_nodes: dict[str, str] = {}
        self.behavior = HONEST
        self._failed = 0
        self.stale = 0
        """How many lists were not the newest ones."""
        self.address = ""
        """``host:port``, once it listens."""

    @contextmanager
    def behaving(self, behavior: Behavior) -> Iterator[None]:
        """Behave in some way until the block ends."""
        self._failed = 0
        with self._lock:
            for seen in self._lists.values():
                del seen[:-1]
        self.behavior = behavior
        try:
            yield
        finally:
            self.behavior = HONEST

    @contextmanager
    def listening(self) -> Iterator[StorageProxy]:
        """Listen on a loopback port until the block ends."""
        proxy = self

        class Handler(_Handler):
            storage_proxy = proxy

        with _Server(("127.0.0.1", 0), Handler) as server:
            self.address = f"127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()

    def respond(self, request: Request) -> _Answer | None:
        """Return a response, or ``None`` to close the connection."""
        behavior = self.behavior
        if behavior.delay_s:
            time.sleep(behavior.delay_s)
        failure = self._failure(behavior, f"{request.method} {request.path}")
        if failure is Failure.RESET:
            return None
        if failure in {Failure.SLOW_DOWN, Failure.INTERNAL_ERROR}:
            return _refusal(request, failure)
        answer = self._listed(request) if request.is_list else self._forward(request)
        if not request.is_read:
            self._look_at_lists()
        return _refusal(request, failure) if failure else answer

    def _failure(self, behavior: Behavior, request: str) -> Failure | None:
        with self._lock:
            if (
                not behavior.failures
                or behavior.only not in request
                or self._failed >= behavior.max_failures
                or self._chance.random() >= behavior.share
            ):
                return None
            self._failed += 1
            return self._chance.choice(behavior.failures)

    def _listed(self, request: Request) -> _Answer:
        """Return a list as it was a while ago, or else the oldest one that was seen."""
        newest = self._forward(request)
        before = time.monotonic() - self.behavior.list_delay_s
        with self._lock:
            seen = self._lists.setdefault(request.path, [])
            seen.append((time.monotonic(), newest))
            if not self.behavior.list_delay_s:
                return newest
            chosen = next((each for at, each in reversed(seen) if at <= before), seen[0][1])
            self.stale += chosen.body != newest.body
            return chosen

    def _look_at_lists(self) -> None:
        """Note all lists that were asked for after a change, so that old ones are known."""
        for path in list(self._lists):
            answer = self._forward(Request("GET", path, (), b""))
            with self._lock:
                self._lists[path].append((time.monotonic(), answer))

    def _forward(self, request: Request) -> _Answer:
        node = request.parameters.get(_DATA_NODE)
        target = self._data_nodes.get(urlsplit(request.path).path, self._target) if node else None
        connection = http.client.HTTPConnection(target or self._target, timeout=_UPSTREAM_S)
        try:
            connection.request(
                request.method, request.path, request.body or None, dict(request.headers)
            )
            response = connection.getresponse()
            body = response.read()
            headers = [(name, self._redirected(name, each)) for name, each in response.getheaders()]
        finally:
            connection.close()
        kept = tuple(pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP)
        if request.method == "HEAD":
            kept += (("Content-Length", response.getheader("Content-Length", "0")),)
        return _Answer(response.status, kept, body)

    def _redirected(self, name: str, value: str) -> str:
        if name.lower() != "location":
            return value
        url = urlsplit(value)
        self._data_nodes[url.path] = url.netloc
        return url._replace(netloc=self.address).geturl()


@final
@dataclass(frozen=True, slots=True)
class Request:
    """A request to the proxy; its path has the query."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the query, each once."""
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in found.items()}

    @property
    def is_webhdfs(self) -> bool:
        """Whether it is for WebHDFS, and not for S3."""
        return self.path.startswith(_WEBHDFS)

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method in {"GET", "HEAD"}

    @property
    def is_list(self) -> bool:
        """Whether it asks for the names in a directory."""
        if self.method != "GET":
            return False
        given = self.parameters
        return given.get("op") == "LISTSTATUS" if self.is_webhdfs else "list-type" in given


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Write nothing to standard error if a client ends a connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    storage_proxy: StorageProxy

    def _respond(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        headers = tuple(
            (name, value) for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP
        )
        answer = self.storage_proxy.respond(Request(self.command, self.path, headers, body))
        if answer is None:
            self.close_connection = True
            return
        with suppress(OSError):
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

    do_GET = _respond  # noqa: N815 - the names of http.server
    do_PUT = _respond  # noqa: N815
    do_POST = _respond  # noqa: N815
    do_DELETE = _respond  # noqa: N815
    do_HEAD = _respond  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Write nothing to standard error."""


def _refusal(request: Request, failure: Failure) -> _Answer:
    status = 503 if failure is Failure.SLOW_DOWN else 500
    if request.is_webhdfs:
        kind = "RetriableException" if failure is Failure.SLOW_DOWN else "RuntimeException"
        text = (
            f'{{"RemoteException": {{"exception": "{kind}", '
            f'"javaClassName": "org.apache.hadoop.ipc.{kind}", "message": "Server too busy"}}}}'
        )
        return _Answer(status, (("Content-Type", "application/json"),), text.encode())
    code = "SlowDown" if failure is Failure.SLOW_DOWN else "InternalError"
    text = f"<Error><Code>{code}</Code><Message>Reduce your request rate.</Message></Error>"
    return _Answer(status, (("Content-Type", "application/xml"),), text.encode())


@contextmanager
def storage_behind(
    server: S3Server | Hdfs, seed: int = 0
) -> Iterator[tuple[StorageProxy, StoragePath]]:
    """Run a proxy for a server; yield it, and a new directory behind it."""
    target = urlsplit(server.url if isinstance(server, Hdfs) else server.endpoint_url).netloc
    with StorageProxy(target, seed).listening() as proxy:
        if isinstance(server, Hdfs):
            yield proxy, StoragePath(f"webhdfs://{proxy.address}/{uuid.uuid4()}")
        else:
            behind = S3Server(f"http://{proxy.address}")
            url = f"s3://{server.new_bucket()}/{uuid.uuid4()}"
            yield proxy, StoragePath(url, behind.storage_options)
