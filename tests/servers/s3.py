"""A storage that speaks the protocol of S3: moto's server, in this process."""

from __future__ import annotations

import enum
import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

KEY: Final = "AKIAKEYOFATEST"
SECRET: Final = "a/secret+of=a test"  # noqa: S105 - of a server in this process


class Interference(enum.Enum):
    """What stands between a client and the server, and does what storages and networks do."""

    NONE = enum.auto()
    IGNORE_CONDITIONS = enum.auto()
    """Puts are carried out with any ``If-None-Match``."""
    LOSE_ANSWERS = enum.auto()
    """A put is carried out, and the first answer for its object is an error of the server."""
    CONFLICT = enum.auto()
    """A put of an object is refused once because another is under way."""


@dataclass(frozen=True)
class S3Server:
    """A running server, by its address."""

    endpoint_url: str

    @property
    def storage_options(self) -> str:
        """The storage options of fsspec, as JSON."""
        return json.dumps(
            {
                "key": KEY,
                "secret": SECRET,
                "endpoint_url": self.endpoint_url,
                "client_kwargs": {"region_name": "us-east-1"},
            }
        )

    def new_bucket(self) -> str:
        """Create a bucket, and return its name."""
        name = f"bucket-{uuid.uuid4()}"
        request = Request(f"{self.endpoint_url}/{name}", method="PUT")  # noqa: S310 - of ours
        with urlopen(request, timeout=30):  # noqa: S310 - as above
            return name


@dataclass(frozen=True)
class LocalS3Server(S3Server):
    """A server in this process, which can be looked into."""

    _door: _Door = field(repr=False)

    def put(self, path: str, content: bytes) -> None:
        """Write an object of ``bucket/key``, without any condition."""
        bucket, _, key = path.partition("/")
        _store().put_object(bucket, key, content)

    def keys(self, bucket: str) -> list[str]:
        """Return the sorted names of all objects of a bucket."""
        return sorted(_store().buckets[bucket].keys)

    @contextmanager
    def counted_requests(self) -> Iterator[list[str]]:
        """Collect the requests that are made within."""
        before = len(self._door.requests)
        requests: list[str] = []
        yield requests
        requests += self._door.requests[before:]


def _store() -> Any:
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


class _Door:
    """Passes requests on to moto, after its own fashion."""

    def __init__(self, application: Application, interference: Interference) -> None:
        self._application = application
        self._interference = interference
        self._met: set[str] = set()
        self._conditional = Lock()
        self.requests: list[str] = []

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.requests.append(f"{environ['REQUEST_METHOD']} {path}")
        conditional = environ.get("HTTP_IF_NONE_MATCH") is not None
        if self._interference is Interference.IGNORE_CONDITIONS:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        first = conditional and path not in self._met
        if first and self._interference is Interference.CONFLICT:
            self._met.add(path)
            environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            return _refuse(start_response, "409 Conflict", "ConditionalRequestConflict")
        if first and self._interference is Interference.LOSE_ANSWERS:
            self._met.add(path)
            list(self._application(environ, lambda *_: lambda _: None))
            return _refuse(start_response, "500 Internal Error", "InternalError")
        # Between moto's look for an object and its write, another thread could write one. S3 has
        # no such moment.
        with self._conditional if conditional else nullcontext():
            return self._application(environ, start_response)


def _refuse(start_response: Callable[..., Any], status: str, code: str) -> Iterable[bytes]:
    body = f"<Error><Code>{escape(code)}</Code><Message>{escape(status)}</Message></Error>".encode()
    start_response(
        status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    )
    return [body]


@contextmanager
def run_s3(interference: Interference = Interference.NONE) -> Iterator[LocalS3Server]:
    """Serve S3 on a loopback port until the block ends."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        listener = server._server
        assert listener is not None
        door = _Door(listener.app, interference)
        listener.app = door
        yield LocalS3Server(f"http://{host}:{port}", door)
    finally:
        server.stop()
