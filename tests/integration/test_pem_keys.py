from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..servers.certificates import Certificate
from ..servers.secured import STORE_PASSWORD, SecuredBroker

CLIENTS = pytest.mark.parametrize("client", ["confluent", "kafka-python"])
KEY_PASSWORD = "key-password"  # noqa: S105


@pytest.fixture
def topic(secured, fresh_name):
    name = fresh_name()
    secured.cluster.create_topic(name)
    return name


def _partitions(client: str, topic: str, options: Mapping[str, str]) -> set[TopicPartition]:
    given = {**options, "client": client, "subscribe": topic}
    container = container_for(parse_source_options(given, QueryKind.BATCH))
    try:
        return set(container.offset_fetcher().partitions(container.options().subscription))
    finally:
        container.shutdown_resources()


def _client_certificate(secured: SecuredBroker) -> Certificate:
    password = STORE_PASSWORD.encode()
    store = load_pkcs12(secured.keystore.read_bytes(), password)
    assert store.cert is not None
    return Certificate(store.key, store.cert.certificate)  # type: ignore[arg-type]  # it is EC


def _in_files(secured: SecuredBroker, certificate: Certificate, path: Path) -> dict[str, str]:
    certificate.write_pem(path / "client.pem", KEY_PASSWORD)
    return {
        "ssl.keystore.location": str(path / "client.pem"),
        "ssl.truststore.location": str(secured.authority),
    }


def _inline(secured: SecuredBroker, certificate: Certificate, _path: Path) -> dict[str, str]:
    return {
        "ssl.keystore.key": certificate.key_pem(KEY_PASSWORD),
        # As in a properties file, where a line continues on the next one.
        "ssl.keystore.certificate.chain": certificate.chain_pem.replace("\n", " "),
        "ssl.truststore.certificates": secured.authority.read_text(),
    }


@CLIENTS
@pytest.mark.parametrize("pem", [_in_files, _inline], ids=["files", "inline"])
def test_an_encrypted_key_as_pem(secured, topic, client, pem, tmp_path):
    settings = {
        "bootstrap.servers": secured.tls,
        "security.protocol": "SSL",
        "ssl.key.password": KEY_PASSWORD,
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        **pem(secured, _client_certificate(secured), tmp_path),
    }
    options = {f"kafka.{name}": value for name, value in settings.items()}
    assert _partitions(client, topic, options) == {TopicPartition(topic, 0)}
