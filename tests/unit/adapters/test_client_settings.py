"""What the settings of both clients have in common."""

import sys

import pytest

from pyspark_kafka.adapters.confluent import settings as confluent_settings
from pyspark_kafka.adapters.kafka_python import settings as kafka_python_settings
from pyspark_kafka.domain.errors import MissingDependencyError
from pyspark_kafka.domain.options.settings_table import SETTINGS

from .client_settings import (
    SERVERS,
    confluent_config,
    kafka_python_config,
    problems_of,
    ssl_settings,
)

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
