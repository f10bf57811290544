"""Servers between this process and HDFS: gateways, proxies and the pages that they send."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError

from ....servers.http_server import Request, Response, serving

LOGIN_PAGE: Final = Response(b"<html>Log in", headers=(("Content-Type", "text/html"),))
BINARY: Final = (("Content-Type", "application/octet-stream"),)

CALLS: Final[dict[str, Callable[[FsspecMetadataLog], object]]] = {
    "get": lambda log: log.get(0),
    "latest": lambda log: log.latest(),
    "batch ids": lambda log: log.batch_ids(),
    "add": lambda log: log.add(1, b"1"),
    "replace": lambda log: log.replace(0, b"new"),
    "purge": lambda log: log.purge(1),
    "remove": lambda log: log.remove(0),
}
OPERATIONS: Final = {
    "get": ("OPEN", "data OPEN"),
    "latest": ("LISTSTATUS", "OPEN", "data OPEN"),
    "batch ids": ("LISTSTATUS",),
    "add": ("GETFILESTATUS", "CREATE", "data CREATE", "RENAME"),
    "replace": ("CREATE", "data CREATE", "RENAME"),
    "purge": ("LISTSTATUS", "DELETE"),
    "remove": ("DELETE",),
}


MISSING: Final = Response(
    b'{"RemoteException": {"exception": "FileNotFoundException", "message": "no such file"}}', 404
)


def redirect(url: str, status: int = 302) -> Response:
    return Response(status=status, headers=(("Location", url),))


@dataclass
class WebHdfs:
    """A directory with the entry 0, whose operations fail as a test wants."""

    answers: dict[str, Response] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: {"0"})
    requests: list[Request] = field(default_factory=list)
    data_url: str = ""
    """The DataNode, if it is another server."""

    def respond(self, request: Request) -> Response:
        self.requests.append(request)
        query = {name: each[0] for name, each in parse_qs(urlsplit(request.target).query).items()}
        operation, name = query.get("op", ""), request.path.rpartition("/")[2]
        if request.path == "/login":
            return LOGIN_PAGE
        key = f"data {operation}" if request.path.startswith("/data") else operation
        return self.answers.get(key) or self._carry_out(key, name, query)

    def _carry_out(self, key: str, name: str, query: dict[str, str]) -> Response:
        if key in {"GETFILESTATUS", "OPEN"} and name not in self.names:
            return MISSING
        if key == "DELETE":
            self.names.discard(name)
        elif key == "data CREATE":
            self.names.add(name)
        elif key == "RENAME":
            self.names.add(query["destination"].rpartition("/")[2])
        listed = [{"type": "FILE", "pathSuffix": one, "modificationTime": 0} for one in self.names]
        data = redirect(f"{self.data_url}/data/{name}?op={key}", 307)
        return {
            "OPEN": data,
            "CREATE": data,
            "data OPEN": Response(b"zero", headers=BINARY),
            "data CREATE": Response(status=201),
            "RENAME": Response(headers=BINARY),
            "DELETE": Response(b'{"boolean": true}'),
            "GETFILESTATUS": Response(b'{"FileStatus": {}}'),
            "LISTSTATUS": Response(json.dumps({"FileStatuses": {"FileStatus": listed}}).encode()),
        }[key]


@pytest.fixture
def server():
    return WebHdfs()


@pytest.fixture
def url(server):
    with serving(server.respond) as url:
        yield url


def log_at(url: str, login: str = "") -> FsspecMetadataLog:
    return FsspecMetadataLog(StoragePath(f"webhdfs://{login}{urlsplit(url).netloc}/log"))


def test_each_call_succeeds_with_the_statuses_of_its_operations(url):
    assert log_at(url).get(0) == b"zero"
    assert log_at(url).latest() == (0, b"zero")
    assert log_at(url).add(1, b"1")
    log_at(url).purge(1)
    assert list(log_at(url).batch_ids()) == [1]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 202, 204])
@pytest.mark.parametrize(
    ("call", "operation"), [(call, each) for call, ops in OPERATIONS.items() for each in ops]
)
def test_no_operation_succeeds_with_the_status_of_another(server, url, call, operation, status):
    server.answers[operation] = redirect(f"{url}/login?session=hush", status)
    with pytest.raises(MetadataLogError, match=f"from {url}") as caught:
        CALLS[call](log_at(url))
    assert "Unexpected HTTP response: expected HTTP " in str(caught.value)
    assert "use_https" in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "operation"), [(call, each) for call, ops in OPERATIONS.items() for each in ops]
)
def test_no_operation_succeeds_with_a_web_page(server, url, call, operation):
    server.answers[operation] = LOGIN_PAGE
    with pytest.raises(MetadataLogError, match="got 200 with a web page from"):
        CALLS[call](log_at(url))


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"boolean": 1}', b'{"FileStatus": 1}'])
@pytest.mark.parametrize(
    ("call", "operation"),
    [
        ("batch ids", "LISTSTATUS"),
        ("add", "GETFILESTATUS"),
        ("remove", "DELETE"),
        ("add", "RENAME"),
    ],
)
def test_no_operation_succeeds_with_the_content_of_another(server, url, call, operation, body):
    server.answers[operation] = Response(body)
    with pytest.raises(MetadataLogError, match="no JSON with"):
        CALLS[call](log_at(url))


def test_a_redirect_names_the_gateway_and_where_it_leads(server, url):
    server.answers["RENAME"] = redirect("https://sso.example.com/login?token=hush")
    with pytest.raises(MetadataLogError) as caught:
        log_at(url).add(1, b"1")
    assert f"got 302 from {url}, a redirect to https://sso.example.com" in str(caught.value)


def test_a_redirect_without_a_location_is_named(server, url):
    server.answers["OPEN"] = Response(status=307)
    with pytest.raises(
        MetadataLogError, match="expected HTTP 200 or 307, got 307 without a location"
    ):
        log_at(url).get(0)


def test_a_server_that_has_every_file_ends_the_search_for_the_last_entry(server, url):
    server.answers["OPEN"] = Response(b"the same", headers=BINARY)
    with pytest.raises(MetadataLogError, match="more than 100 files that it does not list"):
        log_at(url).latest()


def test_as_many_unlisted_files_as_a_storage_may_have_are_read(monkeypatch, tmp_path):
    writer = FsspecMetadataLog(StoragePath(str(tmp_path)))
    for batch_id in range(101):
        writer.add(batch_id, b"%d" % batch_id)
    reader = FsspecMetadataLog(StoragePath(str(tmp_path)))
    monkeypatch.setattr(reader, "batch_ids", lambda: [0])
    assert reader.latest() == (100, b"100")


def test_a_password_in_a_url_is_not_encoded_in_the_login(server, url):
    log_at(url, "ann%20b:p%40ss@").get(0)
    encoded = base64.b64encode(b"ann b:p@ss").decode()
    assert {each.headers["Authorization"] for each in server.requests} == {f"Basic {encoded}"}


def test_a_decoded_password_is_in_no_error(server, url):
    text = {"RemoteException": {"exception": "IOException", "message": "of p@ss/Canary?"}}
    server.answers["OPEN"] = Response(json.dumps(text).encode(), 400)
    with pytest.raises(MetadataLogError) as caught:
        log_at(url, "ann:p%40ss%2FCanary@").get(0)
    assert "Canary" not in str(caught.value)


@pytest.mark.parametrize("call", ["get", "add"])
def test_a_login_is_not_sent_to_another_server(server, url, call):
    other = WebHdfs()
    with serving(other.respond) as server.data_url:
        CALLS[call](log_at(url, "ann:hush@"))
    assert all("Authorization" in each.headers for each in server.requests)
    assert len(other.requests) == 1
    assert "Authorization" not in other.requests[0].headers


def test_another_server_that_wants_a_login_is_named(server, url):
    other = WebHdfs({"data OPEN": Response(status=401)})
    with serving(other.respond) as server.data_url:
        log = log_at(url, "ann:hush@")
        with pytest.raises(MetadataLogError, match=f"not sent to {server.data_url}, another"):
            log.get(0)
