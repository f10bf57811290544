from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

import pyspark_kafka
from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options import QueryKind, parse_sink_options, parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.projection import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.deadline import Deadline

from ..servers.listeners import cluster_listening

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CLIENTS = ("confluent", "kafka-python")
GUARANTEES = ("at-least-once", "exactly-once")
PASSWORD = "store-secret"  # noqa: S105
USER_PASSWORD = 'user"s; secret'  # noqa: S105
MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class SecureCluster:
    """A broker that listens with TLS: to users with passwords, and to clients with keys."""

    sasl: str
    tls: str
    stores: Path

    def store(self, name: str) -> str:
        return str(self.stores / name)


def keytool(directory: Path, *arguments: str) -> None:
    command = ["keytool", *arguments, "-storepass", PASSWORD, "-noprompt"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)


def make_stores(directory: Path) -> None:
    """Make a key of the broker and one of a client, and stores that trust the other's."""
    for name in ("broker", "client"):
        keytool(
            directory,
            *("-genkeypair", "-alias", name, "-keyalg", "RSA", "-dname", f"CN={name}"),
            *("-ext", "SAN=IP:127.0.0.1", "-keystore", f"{name}.p12"),
        )
        certificate = ("-alias", name, "-file", f"{name}.pem", "-rfc")
        keytool(directory, "-exportcert", *certificate, "-keystore", f"{name}.p12")
        imported = ("-alias", name, "-file", f"{name}.pem")
        keytool(directory, "-importcert", *imported, "-keystore", f"trusts-{name}.p12")


def broker_config(stores: Path) -> dict[str, str]:
    escaped = USER_PASSWORD.replace('"', '\\"')
    return {
        "ssl.keystore.location": str(stores / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(stores / "trusts-client.p12"),
        "ssl.truststore.password": PASSWORD,
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{MODULES}.plain.PlainLoginModule required user_reader="{escaped}";'
        ),
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
            f"{MODULES}.scram.ScramLoginModule required;"
        ),
    }


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    """Run a broker with a plain listener for the arrangements and two with TLS for the tests."""
    stores = tmp_path_factory.mktemp("stores")
    make_stores(stores)
    sasl, tls = (f"127.0.0.1:{port}" for port in free_ports(2))
    with cluster_listening({"SASL_SSL": sasl, "SSL": tls}, broker_config(stores)) as cluster:
        for topic in ("t", *(f"copy-{guarantee}" for guarantee in GUARANTEES)):
            cluster.create_topic(topic)
        add_user(cluster.bootstrap_servers)
        produce(cluster.bootstrap_servers)
        yield SecureCluster(sasl, tls, stores)


def add_user(servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("writer", ScramMechanism.SCRAM_SHA_256, USER_PASSWORD)]
    )
    admin.close()


def produce(servers: str) -> None:
    producer = KafkaProducer(bootstrap_servers=servers)
    for value in (b"a", b"b"):
        producer.send("t", value)
    producer.flush()
    producer.close()


REFUSED = """
import json, sys
from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options import QueryKind, parse_source_options

container = container_for(parse_source_options(json.load(sys.stdin), QueryKind.BATCH))
try:
    container.offset_fetcher().partitions(container.options().subscription)
except PysparkKafkaError as error:
    print(error)
"""


def refusal(client: str, settings: dict[str, str]) -> str:
    """Return the error of a read in a separate process.

    kafka-python's thread goes on with handshakes that fail, and leaves their sockets open.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(pyspark_kafka.__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", REFUSED]
    given = json.dumps(query_options(client, settings | {"default.api.timeout.ms": "3000"}))
    ended = subprocess.run(
        command, input=given, env=environment, check=True, capture_output=True, text=True
    )
    return ended.stdout


def query_options(client: str, settings: Mapping[str, str]) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in settings.items()}
    return options | {"client": client, "subscribe": "t"}


def values(client: str, settings: Mapping[str, str]) -> list[bytes]:
    """Read the topic as a query with these settings does."""
    options = parse_source_options(query_options(client, settings), QueryKind.BATCH)
    container = container_for(options)
    try:
        return list(_values(container))
    finally:
        container.shutdown_resources()


def _values(container: Container) -> Iterator[bytes]:
    read = container.range_read()
    for offset_range in container.batch().plan_input_partitions():
        for batch in read.read(offset_range, Projection(("value",))):
            for value in batch.column("value").to_pylist():
                assert isinstance(value, bytes)
                yield value


def login(user: str, mechanism: str) -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    escaped = USER_PASSWORD.replace('"', '\\"')
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": (
            f'{MODULES}.{module} required\n  username="{user}"\n  password="{escaped}";'
        ),
    }


def trusting(secure: SecureCluster) -> dict[str, str]:
    return {
        "ssl.truststore.location": secure.store("trusts-broker.p12"),
        "ssl.truststore.password": PASSWORD,
    }


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("user", "mechanism"), [("reader", "PLAIN"), ("writer", "SCRAM-SHA-256")])
def test_login(secure: SecureCluster, client: str, user: str, mechanism: str) -> None:
    """A Java client's settings of TLS and a login read the topic."""
    servers = {"bootstrap.servers": secure.sasl}
    settings = servers | login(user, mechanism) | trusting(secure)
    assert values(client, settings) == [b"a", b"b"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_continuous_query(secure: SecureCluster, guarantee: str) -> None:
    """One client reads and writes over TLS, with a login, all that comes."""
    servers = {"bootstrap.servers": secure.sasl}
    settings = servers | login("writer", "SCRAM-SHA-256") | trusting(secure)
    given = query_options("kafka-python", settings)
    source = parse_source_options(given, QueryKind.STREAM)
    del given["subscribe"]
    written = {"topic": f"copy-{guarantee}", "deliveryGuarantee": guarantee}
    checkpoint = {"checkpointLocation": "memory://secure"}
    sink = parse_sink_options({**given, **written, **checkpoint}, QueryKind.STREAM)
    client = KafkaPythonStreamClient(source, sink, ContinuousSettings(f"g-{guarantee}"))
    partition = TopicPartition("t", 0)
    acknowledged: dict[TopicPartition, int] = {}
    deadline = Deadline.after(60)
    try:
        client.assign(PartitionOffsets({partition: 0}))
        while acknowledged.get(partition) != 2:
            assert not deadline.has_passed
            for polled in client.poll(1.0):
                client.write(polled, () if polled.records is None else [polled.records])
            acknowledged.update(client.acknowledged())
        assert client.is_settled()
    finally:
        client.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_pkcs12_keystore(secure: SecureCluster, client: str) -> None:
    """A client proves who it is by a PKCS12 keystore."""
    settings = {
        "bootstrap.servers": secure.tls,
        "security.protocol": "SSL",
        "ssl.keystore.location": secure.store("client.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "session.timeout.ms": "10000",
    }
    assert values(client, settings | trusting(secure)) == [b"a", b"b"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("inline", [True, False])
def test_pem(secure: SecureCluster, client: str, inline: bool, tmp_path: Path) -> None:
    """A client proves who it is by an encrypted key in PEM, in a file or in the settings."""
    key = tmp_path / "key.pem"
    store = ("-in", secure.store("client.p12"), "-passin", f"pass:{PASSWORD}")
    encrypted = ("-nocerts", "-passout", "pass:key-secret", "-out", str(key))
    subprocess.run(["openssl", "pkcs12", *store, *encrypted], check=True, capture_output=True)
    chain = Path(secure.store("client.pem")).read_text()
    settings = {
        "bootstrap.servers": secure.tls,
        "security.protocol": "SSL",
        "ssl.key.password": "key-secret",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
    }
    if inline:
        settings |= {
            "ssl.keystore.key": key.read_text(),
            "ssl.keystore.certificate.chain": chain.replace("\n", " "),
            "ssl.truststore.certificates": Path(secure.store("broker.pem")).read_text(),
        }
    else:
        key.write_text(key.read_text() + chain)
        settings |= {
            "ssl.keystore.location": str(key),
            "ssl.truststore.location": secure.store("broker.pem"),
        }
    assert values(client, settings) == [b"a", b"b"]


@pytest.mark.parametrize("client", CLIENTS)
def test_hostname(secure: SecureCluster, client: str) -> None:
    """A name that is not the certificate's is refused, unless the algorithm is empty."""
    settings = {
        "bootstrap.servers": secure.sasl.replace("127.0.0.1", "localhost"),
        **login("reader", "PLAIN"),
        **trusting(secure),
    }
    assert "[KAFKA_TLS_FAILED.HOST_NAME_MISMATCH]" in refusal(client, settings)
    settings["ssl.endpoint.identification.algorithm"] = ""
    assert values(client, settings) == [b"a", b"b"]


@pytest.mark.parametrize("client", CLIENTS)
def test_not_trusted(secure: SecureCluster, client: str) -> None:
    """A broker with an untrusted certificate is refused, and no secret is shown."""
    settings = {
        "bootstrap.servers": secure.sasl,
        **login("reader", "PLAIN"),
    }
    told = refusal(client, settings)
    assert "[KAFKA_TLS_FAILED.CERTIFICATE_NOT_TRUSTED]" in told
    assert 'user"s' not in told
