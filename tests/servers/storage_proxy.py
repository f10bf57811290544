"""An HTTP proxy in front of S3 or WebHDFS, which fails, slows down, and answers with old lists."""

from __future__ import annotations

import enum
import http.client
import json
import math
import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, final
from urllib.parse import parse_qs, urlsplit

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from tests.slowness import bound_s

from .hdfs import Hdfs
from .http_server import Request, Response, serving
from .s3 import S3Server

_UPSTREAM_S: Final = bound_s(60)
_HOP_BY_HOP: Final = frozenset({"connection", "content-length", "transfer-encoding", "expect"})
_CONDITION: Final = "If-None-Match"
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

    CONFLICT = enum.auto()
    """409, and the request is not carried out: S3 has another one for the object under way."""

    SAFE_MODE = enum.auto()
    """403, and the request is not carried out: a NameNode is in safe mode."""


@final
@dataclass(frozen=True, slots=True)
class Behavior:
    """The proxy's treatment of requests."""

    failures: tuple[Failure, ...] = ()
    share: float = 1.0
    """Of requests that fail, by one of ``failures``."""

    only: str = ""
    """A part of the method and URL of requests that fail: ``PUT /bucket/1``."""

    max_failures: float = math.inf

    delay_s: float = 0.0
    """Before each request."""

    list_delay_s: float = 0.0
    """How old lists are: they lack newer files, and still have files that were deleted since.

    None is older than this behavior.
    """

    ignores_conditions: bool = False
    """Whether puts are carried out with any ``If-None-Match``."""


HONEST: Final = Behavior()


@final
class StorageProxy:
    """Forwards requests to one server; redirects of WebHDFS come back to it, too."""

    def __init__(self, target: str, seed: int = 0) -> None:
        self._target = target
        self._chance = random.Random(seed)  # noqa: S311
        self._lock = threading.Lock()
        self._lists: dict[str, list[tuple[float, Response]]] = {}
        self._data_nodes: dict[str, str] = {}
        self.behavior = HONEST
        self.requests = 0
        self._failed = 0
        self.stale = 0
        """How many lists were not the newest ones."""
        self.address = ""
        """``host:port``, once it listens."""

    @contextmanager
    def behaving(self, behavior: Behavior) -> Iterator[None]:
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
        with serving(self._respond, keeps_alive=True) as url:
            self.address = f"127.0.0.1:{urlsplit(url).port}"
            yield self

    def _respond(self, request: Request) -> Response | None:
        behavior = self.behavior
        self.requests += 1
        if behavior.delay_s:
            time.sleep(behavior.delay_s)
        if behavior.ignores_conditions:
            kept = {name: text for name, text in request.headers.items() if name != _CONDITION}
            request = replace(request, headers=kept)
        failure = self._failure(behavior, f"{request.method} {request.target}")
        if failure is Failure.RESET:
            return None
        if failure not in {None, Failure.LOST_RESPONSE}:
            return _refusal(request, failure)
        answer = self._listed(request) if _is_list(request) else self._forward(request)
        if request.method not in {"GET", "HEAD"}:
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

    def _listed(self, request: Request) -> Response:
        """Return a list as it was a while ago, or else the oldest one that was seen."""
        newest = self._forward(request)
        before = time.monotonic() - self.behavior.list_delay_s
        with self._lock:
            seen = self._lists.setdefault(request.target, [])
            seen.append((time.monotonic(), newest))
            if not self.behavior.list_delay_s:
                return newest
            chosen = next((each for at, each in reversed(seen) if at <= before), seen[0][1])
            self.stale += chosen.body != newest.body
            return chosen

    def _look_at_lists(self) -> None:
        """Note all lists that were asked for after a change, so that old ones are known."""
        for target in list(self._lists):
            answer = self._forward(Request("GET", target))
            with self._lock:
                self._lists[target].append((time.monotonic(), answer))

    def _forward(self, request: Request) -> Response:
        is_redirected = _DATA_NODE in _parameters(request)
        node = self._data_nodes.get(request.path) if is_redirected else None
        connection = http.client.HTTPConnection(node or self._target, timeout=_UPSTREAM_S)
        given = {
            name: text for name, text in request.headers.items() if name.lower() not in _HOP_BY_HOP
        }
        try:
            connection.request(request.method, request.target, request.body or None, given)
            response = connection.getresponse()
            body = response.read()
            headers = [(name, self._redirected(name, each)) for name, each in response.getheaders()]
        finally:
            connection.close()
        kept = tuple(pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP)
        if request.method == "HEAD":
            kept += (("Content-Length", response.getheader("Content-Length", "0")),)
        return Response(body, response.status, kept)

    def _redirected(self, name: str, value: str) -> str:
        if name.lower() != "location":
            return value
        url = urlsplit(value)
        self._data_nodes[url.path] = url.netloc
        return url._replace(netloc=self.address).geturl()


def _parameters(request: Request) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.target).query)


def _is_list(request: Request) -> bool:
    given = _parameters(request)
    return request.method == "GET" and (given.get("op") == ["LISTSTATUS"] or "list-type" in given)


_REFUSALS: Final = {
    Failure.SLOW_DOWN: (503, "SlowDown", "RetriableException"),
    Failure.INTERNAL_ERROR: (500, "InternalError", "RuntimeException"),
    Failure.LOST_RESPONSE: (500, "InternalError", "RuntimeException"),
    Failure.CONFLICT: (409, "ConditionalRequestConflict", ""),
    Failure.SAFE_MODE: (403, "", "SafeModeException"),
}
"""The status of a response, S3's code, and the class of Hadoop's exception."""


def _refusal(request: Request, failure: Failure) -> Response:
    status, code, kind = _REFUSALS[failure]
    if request.path.startswith(_WEBHDFS):
        fields = {"exception": kind, "javaClassName": f"org.apache.hadoop.ipc.{kind}"}
        error = {"RemoteException": {**fields, "message": "Server too busy"}}
        return Response(json.dumps(error).encode(), status)
    text = f"<Error><Code>{code}</Code><Message>Reduce your request rate.</Message></Error>"
    return Response(text.encode(), status, (("Content-Type", "application/xml"),))


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
