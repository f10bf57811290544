"""Certificates that are replaced while a query runs, and versions and suites of TLS."""

import os
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from pyspark_kafka.adapters.confluent import stream_client
from pyspark_kafka.adapters.kafka_python.settings import check_settings
from pyspark_kafka.adapters.security.tls_context import CurrentContext
from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.settings_table import KAFKA_PYTHON
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.testing import KafkaWorld
from pyspark_kafka.testing.stream_task import StreamTask, echo
from pyspark_kafka.testing.world import numbered
from tests.integration.uses import values
from tests.servers.certificates import Authority, Certificate, truststore
from tests.servers.secured import ROTATED_SUITE, STORE_PASSWORD, TLS_MECHANISM, SecuredBroker

TRUSTSTORE = "listener.name.rotated.ssl.truststore.location"
OTHER_SUITE = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


TLS_USER = "tls-client"
NETWORK_THREADS = 3
"""Kafka's default of ``num.network.threads``."""


class Listener:
    def __init__(self, secured: SecuredBroker, directory: Path) -> None:
        self._secured = secured
        self._directory = directory
        self._authority = Authority("First")
        self._old = self._certificate = self._authority.issue(TLS_USER)
        self._is_pem = False
        self._trust(self._authority)
        self._await(self._certificate, is_accepted=True)

    def options(self, *, is_pem: bool, **others: str) -> dict[str, str]:
        self._is_pem = is_pem
        self._write()
        given = self._secured.options(TLS_MECHANISM, **others)
        return given | {
            "kafka.bootstrap.servers": self._secured.rotated,
            "kafka.ssl.keystore.location": str(self._keystore),
        }

    def replace_certificate(self) -> None:
        """Give the client a certificate of another authority, and trust both."""
        self._old = self._certificate
        old, self._authority = self._authority, Authority("Second")
        self._certificate = self._authority.issue(TLS_USER)
        self._trust(old, self._authority)
        self._await(self._certificate, is_accepted=True)
        self._write()

    def end_overlap(self) -> None:
        """Trust the new certificate alone."""
        self._trust(self._authority)
        self._await(self._old, is_accepted=False)

    def restore(self) -> None:
        self._alter((AlterConfigOp.DELETE, None))

    def end_connections(self) -> None:
        port = int(self._secured.rotated.rpartition(":")[2])
        for file in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                if str(file.readlink()).startswith("socket:"):
                    _shut_down(int(file.name), port)

    @property
    def _keystore(self) -> Path:
        return self._directory / ("client.pem" if self._is_pem else "client.p12")

    def _write(self) -> None:
        # As Kubernetes and cert-manager do: readers find the old file or the new one.
        written = self._directory / "written"
        if self._is_pem:
            self._certificate.write_pem(written)
        else:
            self._certificate.write_pkcs12(written, STORE_PASSWORD)
        written.rename(self._keystore)

    def _trust(self, *authorities: Authority) -> None:
        path = self._directory / f"trusted-{time.monotonic_ns()}.p12"
        path.write_bytes(truststore(authorities, STORE_PASSWORD))
        self._alter(str(path))

    def _await(self, certificate: Certificate, *, is_accepted: bool) -> None:
        """Wait until the broker trusts a certificate, or until it no longer does."""
        context = ssl.create_default_context(cafile=str(self._secured.authority))
        context.load_cert_chain(certificate.write_pem(self._directory / "probe.pem"))
        address = self._secured.rotated
        # Each of the listener's threads gets the truststore for itself, and connections in turn.
        is_changed = Deadline.after(10).poll(
            lambda: all(
                (handshake(address, context) is not None) is is_accepted
                for _ in range(2 * NETWORK_THREADS)
            ),
            0.02,
        )
        assert is_changed, "the broker does not use its new truststore"

    def _alter(self, value: Any) -> None:
        servers = self._secured.cluster.bootstrap_servers
        resource = ConfigResource(ConfigResourceType.BROKER, "0", {TRUSTSTORE: value})
        with admin_client(servers, "another truststore", 30.0) as admin:
            admin.alter_configs([resource], raise_on_unknown=False)


def handshake(address: str, context: ssl.SSLContext | CurrentContext) -> tuple[str, str] | None:
    host, port = address.split(":")
    with closing(socket.create_connection((host, int(port)), timeout=10)) as raw:
        try:
            wrapped = context.wrap_socket(raw, server_hostname=host, do_handshake_on_connect=True)
        except (ssl.SSLError, ConnectionError):
            return None
        with closing(wrapped):
            suite, version = wrapped.cipher(), wrapped.version()
    assert suite is not None
    assert version is not None
    return version, suite[0]


def _shut_down(file: int, port: int) -> None:
    with socket.socket(fileno=os.dup(file)) as found:
        if found.family == socket.AF_INET and found.getpeername()[1] == port:
            found.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def listener(secured, tmp_path):
    made = Listener(secured, tmp_path)
    yield made
    made.restore()


@pytest.fixture
def world(client, secured, fresh_name):
    made = KafkaWorld(client, fresh_name, secured.cluster)
    yield made
    made.close()


def read(pool: ContainerPool, source: SourceOptions) -> list[bytes | None]:
    with pool.lease(source) as container:
        return values(container)


def test_versions_and_suites_of_kafka_python(secured):
    def attempt(address: str, **settings: str) -> tuple[str, str] | None:
        given = secured.options(TLS_MECHANISM, **settings)
        settings = {name.removeprefix("kafka."): given[name] for name in given}
        config = check_settings(read_java_settings(settings, KAFKA_PYTHON))
        return handshake(address, config["ssl_context"])

    expected = "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"
    both = f"TLS_AES_128_GCM_SHA256,{ROTATED_SUITE}"
    assert attempt(secured.rotated) == expected
    assert attempt(secured.rotated, kafka__ssl__cipher__suites=both) == expected
    assert attempt(secured.rotated, kafka__ssl__cipher__suites=OTHER_SUITE) is None
    assert attempt(secured.rotated, kafka__ssl__enabled__protocols="TLSv1.3") is None
    old = {"kafka__ssl__enabled__protocols": "TLSv1.2", "kafka__ssl__cipher__suites": ROTATED_SUITE}
    assert attempt(secured.tls, **old) == expected
    newest = attempt(secured.tls)
    assert newest is not None
    assert newest[0] == "TLSv1.3"


def test_suites_of_confluent(secured, fresh_name):
    """The client offers the suites of the settings, and no other."""
    topic = fresh_name()
    secured.cluster.create_topic(topic)
    options = secured.options(TLS_MECHANISM, client="confluent", subscribe=topic)
    options |= {
        "kafka.bootstrap.servers": secured.rotated,
        "kafka.ssl.enabled.protocols": "TLSv1.2",
        "kafka.default.api.timeout.ms": "2000",
    }

    def attempt(suite: str) -> list[bytes | None]:
        given = {**options, "kafka.ssl.cipher.suites": suite}
        with closing(ContainerPool()) as pool:
            return read(pool, parse_source_options(given, QueryKind.BATCH))

    assert attempt(ROTATED_SUITE) == []
    with pytest.raises(PysparkKafkaError):
        attempt(OTHER_SUITE)


def test_a_stream_goes_on(listener, world, client):
    topic = world.topic()
    options = listener.options(is_pem=client == "confluent", client=client)
    source = parse_source_options({**options, "subscribe": topic}, QueryKind.BATCH)
    sink = parse_sink_options({**options, "topic": topic}, QueryKind.STREAM)
    pool = ContainerPool()

    def run(value: bytes) -> list[bytes | None]:
        with pool.lease(sink) as container:
            container.sink_task().write([pa.RecordBatch.from_pydict({"value": [value]})])
        return read(pool, source)

    with closing(pool):
        assert run(b"a") == [b"a"]
        listener.replace_certificate()
        listener.end_overlap()
        listener.end_connections()
        assert run(b"b") == [b"a", b"b"]


class Copy:
    """A task of a continuous query that copies a topic."""

    def __init__(self, world: KafkaWorld, options: Mapping[str, str], guarantee: str) -> None:
        self._world = world
        self._partition = TopicPartition(world.topic(), 0)
        topic = world.topic()
        written = {
            "topic": topic,
            "deliveryGuarantee": guarantee,
            "checkpointLocation": f"memory://{topic}",
        }
        sink = parse_sink_options({**options, **written}, QueryKind.STREAM)
        read_committed = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
        self._copied = parse_source_options({**options, **read_committed}, QueryKind.BATCH)
        given = {**options, "subscribe": self._partition.topic}
        source = parse_source_options(given, QueryKind.STREAM)
        with closing_clients(container_for(source)) as container:
            self.client = container.stream_client(sink, ContinuousSettings(f"g-{topic}"))
        self._task = StreamTask(self.client, echo)
        self._task.assign({self._partition: 0})
        self._end = 0

    def run(self) -> None:
        begin, self._end = self._end, self._end + 10
        self._world.produce(self._partition, numbered(begin, self._end))
        self._task.read_to({self._partition: self._end})
        self._task.settle()

    def check(self) -> None:
        with closing(ContainerPool()) as pool:
            expected = [record.value for record in numbered(0, self._end)]
            assert read(pool, self._copied) == expected


def test_continuous_queries_go_on(listener, world, client, monkeypatch):
    monkeypatch.setattr(stream_client, "RENEWAL_S", 0.0)
    options = listener.options(is_pem=client == "kafka-python", client=client)
    guarantees = ["at-least-once"] if client == "confluent" else ["at-least-once", "exactly-once"]
    copies = [Copy(world, options, each) for each in guarantees]
    with ExitStack() as stack:
        for each in copies:
            stack.enter_context(closing(each.client))
            each.run()
        listener.replace_certificate()
        for each in copies:
            each.run()
        listener.end_overlap()
        for each in copies:
            each.run()
        listener.end_connections()
        for each in copies:
            each.run()
            each.check()
