import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, UnsupportedVersionError
from kafka.protocol.consumer import FetchRequest

from pyspark_kafka.adapters.kafka_python import sockets
from pyspark_kafka.adapters.kafka_python.cluster_metadata import ClusterMetadata
from pyspark_kafka.adapters.kafka_python.connecting import ConnectionSettings, connect
from pyspark_kafka.adapters.kafka_python.connections import Opened
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.adapters.kafka_python.responses import TlsExpectedError
from pyspark_kafka.adapters.kafka_python.settings import DEFAULTS
from pyspark_kafka.adapters.kafka_python.sockets import open_socket
from pyspark_kafka.domain.errors import Fault, PysparkKafkaError
from pyspark_kafka.domain.security.errors import TlsError, TlsFailure
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from tests.integration.uses import USES
from tests.servers.forwarding_proxy import REFUSED, forwarding_proxy
from tests.servers.hostile_broker import HostileBroker, Lie, Line, framed, hostile_broker
from tests.servers.hostile_cluster import hostile_cluster
from tests.servers.silent_listeners import silent_listener
from tests.slowness import bound_s

from ..options import source_of


def metadata_at(servers: str, timeout_ms: int = 20_000) -> ClusterMetadata:
    return ClusterMetadata(DEFAULTS, ErrorMapper(servers, timeout_ms))


@pytest.fixture
def two_brokers() -> Iterator[str]:
    """Return the bootstrap servers of a cluster whose second broker is silent."""
    with silent_listener() as silent:
        host, port = silent.address.split(":")

        def with_another(_request: Any, response: Any) -> None:
            broker = type(response.brokers[0])
            response.brokers.append(broker(node_id=1, host=host, port=int(port), rack=None))

        with hostile_broker(Lie("Metadata", answer=with_another)) as broker:
            yield broker.bootstrap_servers


def test_a_broker_that_lets_a_request_for_metadata_wait_is_not_asked_again(two_brokers):
    """The request stays in flight after its attempt, and a later one would wait for it."""
    errors = ErrorMapper(two_brokers, 20_000)
    for _ in range(10):
        with closing(ClusterMetadata(DEFAULTS, errors)) as metadata:
            assert sorted(metadata.nodes()) == [0, 1]
            try:
                with errors.one_deadline(0.3):
                    metadata.refresh()
            except KafkaTimeoutError:
                metadata.refresh()


def test_leaders_that_are_refused_again_are_asked_of_another_broker():
    """A broker that is cut off from the cluster names former leaders as often as it is asked.

    Partitions are refused in turns.
    """
    first, second = (TopicPartition("t", number) for number in (0, 1))
    with hostile_cluster(2, 2) as cluster:
        errors = ErrorMapper(cluster.bootstrap_servers, 20_000)
        with closing(ClusterMetadata(DEFAULTS, errors)) as metadata:
            metadata.leader(first)
            metadata.refresh()
            cut_off, former = metadata.source, metadata.view.leadership(first).epoch
            assert cut_off is not None
            for partition in (first, second):
                cluster.elect(partition, 1 - cut_off, unknown_to=cut_off)
            for partition in (first, second, first):
                metadata.invalidate(partition)
                metadata.leader(partition)
            assert metadata.view.leadership(first).epoch > former


def _close_after(line: Line, frame: bytes) -> None:
    line.send(framed(frame))
    raise ConnectionResetError


@pytest.mark.parametrize("use", ["plan", "read", "write"])
@pytest.mark.parametrize("after", range(3))
def test_a_connection_that_ends_as_soon_as_it_is_made_is_lost_as_any_other(use, after):
    """The broker closes one connection right after it has said what it supports."""
    with hostile_broker(Lie("ApiVersions", send=_close_after, after=after, times=1)) as broker:
        broker.cluster.append(TopicPartition("t", 0), [b"a", b"b"], 1)
        options = {"client": "kafka-python", "kafka.bootstrap.servers": broker.bootstrap_servers}
        USES[use](options, "t")


def _unsupported(frame: bytes) -> bytes:
    """Answer as a broker that knows the first version only (KIP-511)."""
    return frame[:4] + struct.pack(">hi", UnsupportedVersionError.errno, 0)


def _opened(broker: HostileBroker, **settings: Any) -> Opened:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    made = ConnectionSettings(**settings)
    return connect(host, int(port), made, Deadline.after(bound_s(20)))


def test_a_broker_that_knows_the_first_request_for_versions_only_is_asked_again():
    with hostile_broker(Lie("ApiVersions", frame=_unsupported, times=1)) as broker:
        with _opened(broker).socket:
            pass
        assert broker.answered["ApiVersions"] == 2


def test_a_broker_whose_version_is_set_is_not_asked():
    with hostile_broker() as broker:
        opened = _opened(broker, broker_version=(2, 1))
        with opened.socket:
            assert opened.versions.api_version(FetchRequest) == 10
        assert not broker.answered["ApiVersions"]


def _alert(line: Line, _: bytes) -> None:
    line.send(b"\x15\x03\x03\0\x02\x02\x46")


def test_a_listener_that_answers_with_an_alert_of_tls_is_recognised():
    with hostile_broker(Lie("ApiVersions", send=_alert)) as broker, pytest.raises(TlsExpectedError):
        _opened(broker)


@pytest.fixture
def black_hole() -> Iterator[tuple[str, int]]:
    """Return the address of a listener that takes no more connections."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening, ExitStack() as stack:
        place = listening.getsockname()
        for _ in range(4):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(place)
        yield place


def test_each_address_of_a_name_is_tried(monkeypatch, black_hole):
    """One that swallows packets gets a part of the time only."""
    with socket.create_server(("127.0.0.1", 0)) as good:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        places = [("127.0.0.1", 1), black_hole, good.getsockname()]
        found = [(*kind, place) for place in places]
        monkeypatch.setattr(sockets, "resolve", lambda *_: found)
        with open_socket("name", 9092, (), "", Deadline.after(0.5)) as opened:
            assert opened.getpeername() == good.getsockname()
        del found[-1]
        with pytest.raises(KafkaConnectionError) as raised:
            open_socket("name", 9092, (), "", Deadline.after(0.2))
    told = str(raised.value)
    assert told.count("127.0.0.1: Connection refused (ECONNREFUSED)") == 1
    assert "127.0.0.1: it did not answer in time" in told


def test_a_name_that_does_not_resolve_is_named():
    with pytest.raises(KafkaConnectionError, match=r"the name .no\.such\.name\.invalid. cannot be"):
        open_socket("no.such.name.invalid", 1, (), "", Deadline.after(bound_s(20)))


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_a_connection_through_a_proxy(scheme):
    with hostile_broker() as broker, forwarding_proxy() as proxy:
        with _opened(broker, proxy=f"{scheme}://user:p%23@{proxy.address}").socket:
            pass
        assert proxy.logins == {("user", "p#")}
        with pytest.raises(KafkaConnectionError) as raised:
            _opened(broker, proxy=f"{scheme}://user:{REFUSED}@{proxy.address}")
        assert "does not connect: " in str(raised.value)
        assert REFUSED not in str(raised.value)


def test_a_proxy_that_answers_a_byte_at_a_time():
    """The connection's time is for the whole handshake: each byte comes well within it."""
    timeout_s, has_ended = 0.5, threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            with listening.accept()[0] as proxy, suppress(OSError):
                proxy.sendall(b"\5\0")
                # A host name of 255 letters.
                for byte in (5, 0, 0, 3, 255, *bytes(257)):
                    if has_ended.wait(timeout_s / 3):
                        return
                    proxy.sendall(bytes([byte]))

        serving = threading.Thread(target=trickle)
        serving.start()
        url = f"socks5h://127.0.0.1:{listening.getsockname()[1]}"
        begun = time.monotonic()
        try:
            with pytest.raises(KafkaConnectionError, match=r"proxy at .* does not connect: .*time"):
                open_socket("name", 9092, (), url, Deadline.after(timeout_s))
            assert time.monotonic() - begun < bound_s(10)
        finally:
            has_ended.set()
            serving.join()


def _unreachable(
    servers: str, protocol: str = "PLAINTEXT", client: str = "kafka-python", **settings: str
) -> PysparkKafkaError:
    """Return the error of a client that plans a query."""
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}
    options = {
        "client": client,
        "kafka.bootstrap.servers": servers,
        "kafka.security.protocol": protocol,
        "kafka.default.api.timeout.ms": "20000",
        **given,
    }
    with pytest.raises(PysparkKafkaError) as raised:
        USES["read"](options, "t")
    return raised.value


def test_an_advertised_listener_that_does_not_resolve_is_named():
    def elsewhere(_request: Any, response: Any) -> None:
        response.brokers[0].host = "2aba43d449ac.invalid"

    with hostile_broker(Lie("Metadata", answer=elsewhere)) as broker:
        told = str(_unreachable(broker.bootstrap_servers, default_api_timeout_ms="1000"))
    assert "broker 0 at 2aba43d449ac.invalid:" in told
    assert "cannot be resolved" in told


def test_each_bootstrap_server_is_named_with_its_reason():
    with silent_listener() as silent:
        servers = f"127.0.0.1:1,{silent.address}"
        told = str(_unreachable(servers, default_api_timeout_ms="3000"))
    assert "127.0.0.1:1: Connection refused (ECONNREFUSED)" in told
    assert f"{silent.address} did not answer in time" in told


@pytest.mark.parametrize(
    ("api", "client"),
    [("ApiVersions", "kafka-python"), ("Metadata", "kafka-python"), ("Metadata", "confluent")],
)
def test_a_listener_that_closes_before_its_first_answer_may_expect_a_login(api, client):
    """The call ends at once, and not when its time is up."""

    def close(_: Line, __: bytes) -> None:
        raise ConnectionResetError

    begun = time.monotonic()
    with hostile_broker(Lie(api, send=close)) as broker:
        error = _unreachable(broker.bootstrap_servers, client=client)
    assert time.monotonic() - begun < bound_s(10)
    assert "before its first answer). The listener may expect TLS or a login: set" in str(error)
    assert error.fault is Fault.USER


def test_a_listener_that_expects_tls_is_reported_at_once():
    begun = time.monotonic()
    with hostile_broker(Lie("ApiVersions", send=_alert)) as broker:
        error = _unreachable(broker.bootstrap_servers)
    assert time.monotonic() - begun < bound_s(10)
    assert isinstance(error, TlsError)
    assert error.fault is Fault.USER
    assert error.failure is TlsFailure.TLS_EXPECTED


def test_a_cluster_whose_brokers_were_all_replaced_is_found_again(monkeypatch):
    """Its bootstrap servers have the same name, and the brokers other addresses (KIP-899)."""
    partition, found = TopicPartition("t", 0), dict[str, Any]()
    monkeypatch.setattr(sockets, "resolve", lambda *_: [found["now"]])
    options = {"kafka.bootstrap.servers": "name:9092", "kafka.default.api.timeout.ms": "20000"}
    with closing(KafkaPythonOffsetFetcher(source_of("kafka-python", options))) as fetcher:
        for records in (1, 3):
            with hostile_broker() as broker:
                place = broker.server_address
                found["now"] = (socket.AF_INET, socket.SOCK_STREAM, 0, "", place)
                broker.cluster.append(partition, [b"x"] * records, records)
                assert fetcher.latest([partition]) == {partition: records}


def test_a_broker_that_knows_no_other_yet_is_asked_after_pauses():
    """It has just started; in a tight loop it would answer thousands of times a second."""
    asked = []

    def without_brokers(request: Any, response: Any) -> None:
        asked.append(request)
        response.brokers.clear()

    with (
        hostile_broker(Lie("Metadata", answer=without_brokers)) as broker,
        closing(metadata_at(broker.bootstrap_servers, timeout_ms=1_000)) as metadata,
        pytest.raises(KafkaTimeoutError, match="name no broker"),
    ):
        metadata.refresh()
    # After ``reconnect.backoff.ms``, 50 ms.
    assert 2 <= len(asked) <= 40
