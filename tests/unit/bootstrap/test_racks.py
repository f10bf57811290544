"""The rack of a process: where it is looked for, how often, and what hostile services do."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from pyspark_kafka.adapters.racks import of_process
from pyspark_kafka.adapters.racks.environment import EnvironmentRackFinder
from pyspark_kafka.adapters.racks.metadata import AwsRackFinder, AzureRackFinder, GoogleRackFinder
from pyspark_kafka.bootstrap.checks import check_source
from pyspark_kafka.bootstrap.container import container_for, in_own_rack
from pyspark_kafka.bootstrap.spark import USE_CASES
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.options.source_table import RACK_PLACES
from pyspark_kafka.domain.reading.racks import RackNotFoundError
from pyspark_kafka.ports.reading import RackFinder
from tests.servers.http_server import Response, serving
from tests.servers.silent_listeners import trickling_listener
from tests.slowness import bound_s

LIMIT_S: Final = bound_s(5)
"""For what takes about a second: the machine may be busy."""

FLAVOR: Final = (("Metadata-Flavor", "Google"),)
FINDERS: Final = pytest.mark.parametrize(
    "finder", [AwsRackFinder, AzureRackFinder, GoogleRackFinder]
)


def options(place: str = "environment", client: str = "memory", **given: str) -> SourceOptions:
    needed = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "client": client}
    return parse_source_options({**needed, "clientRackFrom": place, **given}, QueryKind.BATCH)


@pytest.fixture(autouse=True)
def racks(monkeypatch):
    """Have found no rack yet."""
    found: dict[Any, Any] = {}
    monkeypatch.setattr(of_process, "_racks", found)
    return found


class Fake(RackFinder):
    """Counts its calls, and returns or raises."""

    def __init__(self, outcome: str | BaseException = "r") -> None:
        self.outcome = outcome
        self.calls = 0

    def find(self) -> str:
        self.calls += 1
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def with_finder(finder: RackFinder) -> Any:
    """Return what makes containers with a finder of an embedder."""

    def make(options: SourceOptions) -> Any:
        container = container_for(options)
        container.rack_finder.override(finder)
        return container

    return make


def refused(finder: RackFinder, caplog: pytest.LogCaptureFixture) -> str:
    """Return the only warning of a process whose tasks find no rack, in time."""
    begun = time.monotonic()
    for _ in range(2):
        assert in_own_rack(options(), with_finder(finder)) == options()
    assert time.monotonic() - begun < LIMIT_S
    [record] = caplog.records
    assert (record.name, record.levelname) == ("pyspark_kafka", "WARNING")
    head, _, reason = record.getMessage().partition(" of partitions: ")
    assert (
        head
        == "clientRackFrom=environment: no rack was found, and this process reads from the leaders"
    )
    return reason


def test_each_place_has_a_finder():
    found = {place: container_for(options(place)).rack_finder() for place in RACK_PLACES}
    assert isinstance(found.pop("environment"), EnvironmentRackFinder)
    assert found == {
        "aws": AwsRackFinder("availability-zone-id"),
        "aws-zone-name": AwsRackFinder("availability-zone"),
        "azure": AzureRackFinder(),
        "gcp": GoogleRackFinder(),
    }


def test_a_task_reads_in_its_rack_and_the_driver_does_not(monkeypatch):
    monkeypatch.setenv("KAFKA_CLIENT_RACK", "r")
    with USE_CASES.task(options()) as task, USE_CASES.driver(options()) as driver:
        assert dict(task.options().kafka)["client.rack"] == "r"  # type: ignore[attr-defined]
        assert driver.options() == options()  # type: ignore[attr-defined]


def test_a_client_takes_the_rack_also_for_dead_letters(client):
    typed = {"valueFormat": "json", "valueSchema": "id bigint", "deadLetterTopic": "letters"}
    check_source(options(client=client, **typed).in_rack("r"))


def test_a_query_without_the_option_looks_for_no_rack():
    finder = Fake()
    given = parse_source_options(
        {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "client": "memory"}, QueryKind.BATCH
    )
    assert in_own_rack(given, with_finder(finder)) is given
    assert finder.calls == 0


def test_a_rack_is_found_once_for_each_process(monkeypatch):
    finder = Fake()
    for calls in (1, 1):
        assert in_own_rack(options(), with_finder(finder)) == options().in_rack("r")
        assert finder.calls == calls
    monkeypatch.setattr(os, "getpid", lambda: -1)
    in_own_rack(options(), with_finder(finder))
    assert finder.calls == 2


def test_threads_that_ask_at_once_ask_once():
    begun, released = threading.Event(), threading.Event()

    class Slow(Fake):
        def find(self) -> str:
            begun.set()
            assert released.wait(60)
            return super().find()

    finder = Slow()
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(in_own_rack, options(), with_finder(finder)) for _ in range(4)]
        assert begun.wait(60)
        released.set()
        assert {each.result(60) for each in asking} == {options().in_rack("r")}
    assert finder.calls == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RackNotFoundError("the host", "it has none"), "the host: it has none"),
        (KeyError("zone"), "KeyError: 'zone'"),
    ],
)
def test_a_failure_is_kept(caplog, error, reason):
    finder = Fake(error)
    assert refused(finder, caplog) == reason
    assert finder.calls == 1


def test_an_interrupt_is_not_kept(racks):
    with pytest.raises(KeyboardInterrupt):
        in_own_rack(options(), with_finder(Fake(KeyboardInterrupt())))
    assert racks == {}


@FINDERS
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\n\r\na-rack", id="no-end"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 500, id="continue"),
        pytest.param(b"\0\xff" * 40_000, id="nonsense"),
    ],
)
def test_a_service_that_does_not_end(caplog, finder, content):
    with trickling_listener(content, pause_s=0.01, step=max(1, len(content) // 500)) as listener:
        reason = refused(finder(address=f"http://{listener.address}"), caplog)
    assert reason.startswith(("GET http://127.0.0.1:", "PUT http://127.0.0.1:"))
    assert listener.connections == 1


@FINDERS
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(bytes(100_000_000), headers=FLAVOR), "exceeds"),
        (Response(b"a-rack", 302, (("Location", "/elsewhere"), *FLAVOR)), "HTTP 302"),
        (Response(b"a-rack", 500, FLAVOR), "HTTP 500"),
        (Response(b"\xff\n\x1b[2J", headers=FLAVOR), "no|unprintable"),
        (Response(b"[" * 4_000, headers=FLAVOR), "no|255"),
        (None, "RemoteDisconnected"),
    ],
    ids=["large", "redirect", "500", "bytes", "brackets", "closed"],
)
def test_a_service_that_names_no_rack(caplog, finder, response, reason):
    asked = []

    def respond(request: Any) -> Response | None:
        asked.append(request.path)
        return response

    with serving(respond) as url:
        found = refused(finder(address=url), caplog)
    assert found.isprintable()
    assert any(part in found for part in reason.split("|"))
    assert "/elsewhere" not in asked


@FINDERS
def test_a_service_that_is_not_there(caplog, finder):
    with trickling_listener(b"") as listener:
        address = listener.address
    assert "ConnectionRefusedError" in refused(finder(address=f"http://{address}"), caplog)


def test_requests_share_a_second(caplog):
    """A service of AWS that gives a token has not answered yet."""
    head = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"
    with trickling_listener(head + b"token", pause_s=0.6, step=len(head)) as listener:
        finder = AwsRackFinder(address=f"http://{listener.address}")
        assert "in time" in refused(finder, caplog)


def test_a_server_with_the_name_of_googles_is_not_believed(caplog):
    with serving(lambda _: Response(b"projects/1/zones/a")) as url:
        assert "not of Google" in refused(GoogleRackFinder(url), caplog)


@pytest.mark.parametrize("compute", [{"zone": "", "location": "westeurope"}, {"zone": ["1"]}])
def test_a_machine_of_azure_may_be_in_no_zone(caplog, compute):
    with serving(lambda _: Response(json.dumps(compute).encode())) as url:
        assert "in no zone" in refused(AzureRackFinder(url), caplog)


def test_a_proxy_sees_no_request(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(lambda _: Response(b"projects/1/zones/a", headers=FLAVOR)) as url:
        assert GoogleRackFinder(url, timeout_s=60).find() == "a"
