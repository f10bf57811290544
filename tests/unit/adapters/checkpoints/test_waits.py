"""Storages that stall: how long logs wait for them."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import le
from pathlib import Path
from typing import Final

import pytest

from pyspark_kafka.adapters.checkpoints import hdfs, objects
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.testing import await_until
from tests.slowness import bound_s

from ....servers.http_server import Request, Response, serving
from ....servers.silent_listeners import StallingListener, silent_listener, trickling_listener

OPERATION_S: Final = 0.3

SLACK_S: Final = bound_s(10)
"""The time that a busy machine may add; the session of S3 loads its descriptions."""

CALLS: Final[dict[str, Callable[[FsspecMetadataLog], object]]] = {
    "get": lambda log: log.get(0),
    "latest": lambda log: log.latest(),
    "add": lambda log: log.add(0, b""),
    "purge": lambda log: log.purge(1),
}

BEGINNINGS: Final = {
    "headers": b"HTTP/1.1 200 OK\r\nX: ",
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
    "body without length": b"HTTP/1.1 200 OK\r\n\r\n{",
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    for module in (hdfs, objects):
        monkeypatch.setattr(module, "OPERATION_S", OPERATION_S)


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """Load what the first session of S3 loads, which is no wait for a server."""
    with serving(lambda _: Response(status=404)) as url:
        log_at("s3", url.removeprefix("http://")).get(0)


def log_at(storage: str, address: str) -> FsspecMetadataLog:
    if storage == "hdfs":
        return FsspecMetadataLog(StoragePath(f"webhdfs://{address}/x"))
    options = {
        "key": "AKIAKEY",
        "secret": "SECRET",
        "endpoint_url": f"http://{address}",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    return FsspecMetadataLog(StoragePath("s3://bucket/x", json.dumps(options)))


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def nothing_left(listener: StallingListener) -> Iterator[None]:
    """Expect that a block leaves as many threads, sockets and files as there were."""

    def counts() -> tuple[int, int]:
        # The listener has a thread and a socket for each connection.
        ours = listener.connections
        return threading.active_count() - ours, _open_files() - ours

    before = counts()
    yield
    await_until(lambda: all(map(le, counts(), before)))


def _fails_in_time(call: Callable[[], object], expected: str) -> None:
    begun = time.monotonic()
    with pytest.raises(MetadataLogError, match=expected):
        call()
    assert time.monotonic() - begun < 2 * OPERATION_S + SLACK_S


@pytest.mark.parametrize(
    ("storage", "calls"), [("hdfs", ("get", "latest", "add", "purge")), ("s3", ("get", "add"))]
)
def test_a_server_that_never_answers_ends_a_call(storage, calls):
    with silent_listener() as listener:
        log = log_at(storage, listener.address)
        expected = "The storage does not answer: .*Check its address"
        # A client creates its session, and a thread for names, once.
        while not listener.connections:
            _fails_in_time(lambda: log.get(0), expected)
        with nothing_left(listener):
            for call in calls:
                _fails_in_time(partial(CALLS[call], log), expected)


@pytest.mark.parametrize(
    ("storage", "part"), [*(("hdfs", part) for part in BEGINNINGS), ("s3", "body")]
)
def test_a_server_that_sends_a_byte_at_a_time_ends_a_call(storage, part):
    with trickling_listener(BEGINNINGS[part] + bytes(60_000), pause_s=0.001) as listener:
        log = log_at(storage, listener.address)
        _fails_in_time(lambda: log.get(0), "does not answer: .* not complete in time")


@pytest.mark.parametrize(("storage", "status"), [("hdfs", 500), ("hdfs", 503), ("s3", 503)])
def test_a_server_that_fails_ends_a_call(storage, status):
    with serving(lambda _: Response(status=status)) as url:
        log = log_at(storage, url.removeprefix("http://"))
        _fails_in_time(lambda: log.get(0), "The storage")


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ("SafeModeException", ""),
        ("RetriableException", "org.apache.hadoop.hdfs.server.namenode.SafeModeException: "),
    ],
)
def test_a_safe_mode_that_lasts_ends_a_call(kind, prefix, monkeypatch):
    monkeypatch.setattr(hdfs, "_SAFE_MODE_PAUSE_S", OPERATION_S / 10)
    message = f"{prefix}Cannot create /x. Name node is in safe mode.\nIt was turned on manually."
    refusal = {"RemoteException": {"exception": kind, "message": message}}
    requests: list[Request] = []

    def refuse(request: Request) -> Response:
        requests.append(request)
        return Response(json.dumps(refusal).encode(), 403)

    with serving(refuse) as url:
        log = log_at("hdfs", url.removeprefix("http://"))
        expected = "The NameNode is in safe mode: .*Cannot create /x.*hdfs dfsadmin -safemode get"
        _fails_in_time(lambda: log.add(0, b"0"), expected)
    assert len(requests) > 1
