"""Rules that the settings of both clients share."""

import base64
import sys

import pytest

from pyspark_kafka.adapters.confluent import settings as confluent_settings
from pyspark_kafka.adapters.kafka_python import settings as kafka_python_settings
from pyspark_kafka.adapters.security.store_files import key_pair
from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.domain.errors import MissingDependencyError, OptionsError
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.settings_table import SETTINGS
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.domain.security.tls import Store
from pyspark_kafka.domain.subscription import Subscribe

from .client_settings import (
    SERVERS,
    confluent_config,
    kafka_python_config,
    problems_of,
    ssl_settings,
)
from .conftest import PASSWORD
from .options import source_of

CLIENTS = pytest.mark.parametrize("config_of", [confluent_config, kafka_python_config])


@pytest.mark.parametrize(
    ("config_of", "mechanism", "expected"),
    [
        (confluent_config, "PLAIN", ["fetch.min.bytes", "sasl.mechanism", "foo.bar"]),
        (kafka_python_config, "NONE", ["fetch.min.bytes", "foo.bar", "sasl.mechanism"]),
    ],
)
def test_all_problems_are_reported_together(config_of, mechanism, expected):
    settings = {
        "fetch.min.bytes": "x",
        "foo.bar": "1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "ssl.truststore.location": "/nowhere/t.p12",
    }
    names = [text.split("'")[1] for text in problems_of(config_of, settings)]
    assert names == [f"kafka.{name}" for name in (*expected, "ssl.truststore.location")]


@CLIENTS
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ssl.truststore.password": "hunter2"}, "check 'kafka.ssl.truststore.password'"),
        ({"ssl.truststore.location": "/nowhere"}, "'/nowhere' cannot be read (No such file"),
    ],
)
def test_a_store_that_cannot_be_opened_is_refused_by_its_option(stores, config_of, settings, text):
    [told] = problems_of(config_of, ssl_settings(stores) | settings)
    assert text in told
    assert "hunter2" not in told


def test_a_scheme_before_a_server_is_dropped_as_in_java(client):
    servers = "SASL_SSL://a:9093, PLAINTEXT://[::1]:9092,b:9092"
    java = read_java_settings({"bootstrap.servers": servers}, client)
    assert java.bootstrap_servers == "a:9093,[::1]:9092,b:9092"
    assert confluent_settings.client_config(java)["bootstrap.servers"] == java.bootstrap_servers


@pytest.fixture(scope="session")
def key_settings(stores):
    """Return a certificate to trust, and a key with its own, as options have them."""
    key = key_pair(Store("keystore", str(stores / "key.p12"), Secret(PASSWORD)), Secret())
    return {
        "security.protocol": "SSL",
        "ssl.truststore.certificates": key.chain,
        "ssl.keystore.key": str(key.key),
        "ssl.keystore.certificate.chain": key.chain,
    }


LINE = base64.b64encode(bytes(range(200))).decode()
NO_BASE64 = f"-----BEGIN CERTIFICATE-----\\n{LINE}\\n-----END CERTIFICATE-----"
NO_DER = f"-----BEGIN CERTIFICATE-----\n{LINE}\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ssl.truststore.certificates", NO_BASE64),
        ("ssl.truststore.certificates", NO_DER),
        ("ssl.keystore.certificate.chain", NO_BASE64),
        ("ssl.keystore.certificate.chain", NO_DER),
        ("ssl.keystore.key", NO_BASE64.replace("CERTIFICATE", "PRIVATE KEY")),
        ("ssl.keystore.key", NO_DER.replace("CERTIFICATE", "PRIVATE KEY")),
    ],
)
def test_broken_pem_is_refused_by_the_option_that_has_it(client, key_settings, name, text):
    given = {f"kafka.{key}": value for key, value in (key_settings | {name: text}).items()}
    options = source_of(client, given)
    with pytest.raises(OptionsError) as refused, closing_clients(container_for(options)) as made:
        made.offset_fetcher().partitions(Subscribe(("t",)))
    [told] = refused.value.problems
    assert f"kafka.{name}" in told
    assert ("'\\n' as two characters" in told) is ("\\n" in text)
    assert LINE[:20] not in told


@CLIENTS
def test_without_the_library_that_reads_pkcs12_its_extra_is_named(stores, monkeypatch, config_of):
    for name in ("serialization", "serialization.pkcs12"):
        monkeypatch.setitem(sys.modules, f"cryptography.hazmat.primitives.{name}", None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[tls\]"):
        config_of(SERVERS | ssl_settings(stores))


@pytest.mark.parametrize("client", [confluent_settings, kafka_python_settings])
def test_every_number_of_javas_consumer_is_translated_or_left_out_for_a_reason(client):
    numbers = {
        setting.name
        for setting in SETTINGS
        if setting.values is not None and setting.values.text.startswith("a whole number")
    }
    assert len(numbers) > 15
    assert numbers <= client.TRANSLATIONS.keys()
