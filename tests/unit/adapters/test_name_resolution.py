"""A name server that does not answer keeps no call beyond its deadline."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Final
from urllib.parse import urlsplit

import pytest
from kafka.errors import KafkaConnectionError

from pyspark_kafka.adapters.checkpoints import hdfs
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.http import RequestError, request
from pyspark_kafka.adapters.kafka_python.sockets import open_socket
from pyspark_kafka.adapters.name_resolution import UnresolvedError, resolve
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.testing import await_until
from tests.slowness import bound_s

from ...servers.certificates import Authority
from ...servers.http_server import Request, Response, serving

TIMEOUT_S: Final = 0.1
SLACK_S: Final = bound_s(5)
UNRESOLVED: Final = r"the name 'slow\.example' was not resolved within 0\.\d+ s; check the DNS"


@pytest.fixture
def lookups(monkeypatch):
    """Yield the hosts that are asked for, of which none is found before the end of the test."""
    is_free, begun, ended = threading.Event(), [], []

    def wait(host: str, *_: object, **__: object) -> None:
        begun.append(host)
        is_free.wait()
        ended.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    before = time.monotonic()
    yield SimpleNamespace(hosts=begun, free=is_free.set)
    assert time.monotonic() - before < SLACK_S
    is_free.set()
    await_until(lambda: ended == begun)


def test_a_name_that_is_not_resolved_in_time_has_one_thread(lookups):
    for _ in range(3):
        with pytest.raises(UnresolvedError, match=UNRESOLVED):
            resolve("slow.example", 1, Deadline.after(TIMEOUT_S))
    assert lookups.hosts == ["slow.example"]


def test_an_error_is_raised_by_all_calls(lookups):
    with pytest.raises(UnresolvedError):
        resolve("slow.example", 1, Deadline.after(TIMEOUT_S))
    lookups.free()
    for _ in range(2):
        with pytest.raises(socket.gaierror, match="unknown"):
            resolve("slow.example", 1, Deadline.after(30))


def test_addresses_are_found_where_no_thread_can_start(monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert resolve("127.0.0.1", 9, Deadline.after(30))


def test_addresses_have_the_port():
    assert [each[-1][:2] for each in resolve("127.0.0.1", 9, Deadline.after(None))] == [
        ("127.0.0.1", 9)
    ]


@pytest.mark.usefixtures("lookups")
def test_kafka_python_waits_no_longer_for_a_name():
    with pytest.raises(KafkaConnectionError, match=f"cannot be resolved: {UNRESOLVED}"):
        open_socket("slow.example", 9092, (), "", Deadline.after(TIMEOUT_S))


@pytest.mark.usefixtures("lookups")
def test_a_token_endpoint_whose_name_is_not_resolved():
    with pytest.raises(RequestError, match=f"^{UNRESOLVED}"):
        request("POST", "http://slow.example/token", {}, Deadline.after(TIMEOUT_S))


def test_a_storage_whose_name_is_not_resolved(lookups, monkeypatch):
    monkeypatch.setattr(hdfs, "OPERATION_S", TIMEOUT_S)
    options = json.dumps({"user": "ada"})
    log = FsspecMetadataLog(StoragePath("webhdfs://slow.example:9870/x", options))
    with pytest.raises(MetadataLogError, match=f"The storage does not answer: .*{UNRESOLVED}"):
        log.get(0)
    assert lookups.hosts == ["slow.example"]


@contextlib.contextmanager
def full_listener(port: int) -> Iterator[None]:
    """Yield while connections to 127.0.0.2 are neither accepted nor refused."""
    with (
        socket.create_server(("127.0.0.2", port), backlog=0) as full,
        contextlib.ExitStack() as clients,
    ):
        # Linux drops connections to a listener whose queue is full.
        for _ in range(3):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        yield


@pytest.mark.parametrize("is_silent", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_that_is_away_leaves_time_for_the_next(monkeypatch, tmp_path, scheme, is_silent):
    """The name is in the request and in the certificate, not the address."""
    authority, requests = Authority(), []

    def respond(request: Request) -> Response:
        requests.append(request)
        return Response(b"good")

    own = None
    if scheme == "https":
        certificate = authority.issue("server", hosts=["two.example"])
        own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        own.load_cert_chain(certificate.write_pem(tmp_path / "server.pem"))
    with serving(respond, own) as url, contextlib.ExitStack() as first:
        port = urlsplit(url).port or 0
        if is_silent:
            first.enter_context(full_listener(port))
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", (f"127.0.0.{last}", 0)) for last in (2, 1)
        ]
        original = socket.getaddrinfo
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *args, **named: (
                found if host == "two.example" else original(host, *args, **named)
            ),
        )
        address = f"{scheme}://two.example:{port}/x"
        trusted = ssl.create_default_context(cadata=authority.pem)
        response = request("GET", address, {}, Deadline.after(bound_s(1)), tls=trusted)
    assert response.body == b"good"
    assert requests[0].headers["Host"] == f"two.example:{port}"


def test_a_name_that_no_host_can_have():
    with pytest.raises(RequestError, match=r"login\.\.example\.com.* no name of a host"):
        request("POST", "https://login..example.com/token", {}, Deadline.after(30))
