from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.kafka_settings import api_timeout_ms, kafka_settings, server_address
from pyspark_kafka.domain.kafka_settings.java import read_java_settings
from pyspark_kafka.domain.kafka_settings.options import consumer_problems
from pyspark_kafka.domain.kafka_settings.values import ClientCredentials, Secret, Store

SECRET = Secret("hush")
SERVERS = {"bootstrap.servers": "b:9092"}

AUTO_OFFSET_RESET = (
    "\nKafka option 'auto.offset.reset' is not supported.\n"
    "Instead set the source option 'startingoffsets' to 'earliest' or 'latest'\n"
    "to specify where to start. Structured Streaming manages which offsets are consumed\n"
    "internally, rather than relying on the kafkaConsumer to do it. This will ensure that no\n"
    "data is missed when new topics/partitions are dynamically subscribed. Note that\n"
    "'startingoffsets' only applies when a new Streaming query is started, and\n"
    "that resuming will always pick up from where the query left off. See the docs for more\n"
    "details.\n"
    "         "
)
KEY_DESERIALIZER = (
    "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays "
    "with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the keys."
)
VALUE_DESERIALIZER = (
    "Kafka option 'value.deserializer' is not supported as values are deserialized as byte arrays "
    "with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the values."
)
AUTO_COMMIT = "Kafka option 'enable.auto.commit' is not supported"
INTERCEPTORS = "Kafka option 'interceptor.classes' is not supported"
NO_SERVERS = "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"


def test_settings() -> None:
    """Settings are the options that begin with 'kafka.', without that and space around values."""
    given_options = {
        "kafka.bootstrap.servers": " b:9092 ",
        "kafka.kafka.x": "1",
        "kafkaconsumer.polltimeoutms": "2",
        "subscribe": "kafka.t",
    }
    assert kafka_settings(given_options) == {"bootstrap.servers": "b:9092", "kafka.x": "1"}


def test_secrets_are_hidden_where_settings_are_represented() -> None:
    """As by tools that show the variables of a traceback."""
    options = {
        "kafka.sasl.password": " hush ",
        "kafka.ssl_password": "hush",
        "kafka.client.id": "c",
    }
    settings = kafka_settings(options)
    assert settings["sasl.password"] == "hush"
    assert "hush" not in repr(settings)
    assert "'client.id': 'c'" in repr(settings)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (ClientCredentials("https://hush@idp/token?sig=hush", "me", SECRET, ca_pem=SECRET), "idp"),
        (ClientCredentials("https://me:hush@idp/token", "me", SECRET, ca_pem=SECRET), "idp"),
        (Store("keystore", "s3://AKIA:hush@bucket/k.p12", SECRET, SECRET), "bucket/k.p12"),
        (Store("keystore", "-----BEGIN PRIVATE KEY-----\nhush", SECRET, SECRET), "keystore"),
    ],
)
def test_values_of_settings_are_represented_without_secrets(value: object, shown: str) -> None:
    """Also where one was pasted into a URL or a name of a file."""
    assert shown in repr(value)
    assert "hush" not in repr(value)


def test_settings_of_java_have_one_spelling() -> None:
    """kafka-python's underscores become dots, but in names that Java's clients do not have."""
    given_options = {
        "kafka.bootstrap_servers": "b:9092",
        "kafka.isolation_level": "read_committed",
        "kafka.log_level": "7",
        "kafka.sasl_plain_username": "u",
    }
    assert kafka_settings(given_options) == {
        "bootstrap.servers": "b:9092",
        "isolation.level": "read_committed",
        "log_level": "7",
        "sasl.plain.username": "u",
    }


@given(st.dictionaries(st.text().filter(lambda name: "_" not in name), st.text().map(str.strip)))
def test_prefix(settings: dict[str, str]) -> None:
    """Taking the settings undoes putting the prefix before their names."""
    assert kafka_settings({f"kafka.{name}": text for name, text in settings.items()}) == settings


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"isolation.level": "read_committed"},
        {"isolation.level": "read_uncommitted"},
        {"default.api.timeout.ms": "1"},
        {"group.id": "g", "security.protocol": "SSL"},
    ],
)
def test_nothing_refused(settings: dict[str, str]) -> None:
    """Settings that no rule forbids are left to the client."""
    assert consumer_problems(SERVERS | settings) == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"auto.offset.reset": "earliest"}, AUTO_OFFSET_RESET),
        ({"auto.offset.reset": ""}, AUTO_OFFSET_RESET),
        ({"key.deserializer": "x"}, KEY_DESERIALIZER),
        ({"value.deserializer": "x"}, VALUE_DESERIALIZER),
        ({"enable.auto.commit": "false"}, AUTO_COMMIT),
        ({"interceptor.classes": "x"}, INTERCEPTORS),
        ({"bootstrap.servers": ""}, NO_SERVERS),
    ],
)
def test_refusal(settings: dict[str, str], problem: str) -> None:
    """A setting that Spark's side decides is refused in the JVM connector's words."""
    assert consumer_problems(SERVERS | settings) == [problem]


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("b", ("b", 9092)),
        ("b-1.x_y.example:9094", ("b-1.x_y.example", 9094)),
        ("SASL_SSL://b:1", ("b", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("[fe80::1%eth0]", ("fe80::1%eth0", 9092)),
    ],
)
def test_server(server: str, address: tuple[str, int]) -> None:
    """A server has the form that Java's client reads; clients in Python need no port."""
    assert server_address(server) == address
    assert read_java_settings({"bootstrap.servers": f"a:1,{server},"}).problems == ()


@pytest.mark.parametrize(
    "server", ["b:port", "b:", ":9092", "b:0", "b:65536", "http://b:9092/", "b:9092;c:9092", "::1"]
)
def test_what_is_no_server(server: str) -> None:
    """A server that Kafka's clients cannot connect to is refused before they try, and not repeated.

    It may be a connection string of Event Hubs, with its key. Clients of others may take it.
    """
    settings = {"bootstrap.servers": f"a:1, {server}"}
    assert consumer_problems(settings) == []
    assert [*read_java_settings(settings).problems] == [
        "Option 'kafka.bootstrap.servers' must be host:port, separated by commas: number 2 is not"
    ]


@pytest.mark.parametrize("level", ["", "READ_COMMITTED", "serializable"])
def test_isolation_level(level: str) -> None:
    """Records are read with one of the two isolation levels that Kafka has."""
    assert consumer_problems(SERVERS | {"isolation.level": level}) == [
        (
            "Option 'kafka.isolation.level' must be 'read_uncommitted' or 'read_committed', "
            f"got '{level}'"
        )
    ]


@pytest.mark.parametrize("timeout", ["", "0", "-1", "1.5", "1s", "x", "²"])
def test_refused_api_timeout(timeout: str) -> None:
    """Every call to a cluster has a bound that is a positive number of milliseconds."""
    assert consumer_problems(SERVERS | {"default.api.timeout.ms": timeout}) == [
        (
            "Option 'kafka.default.api.timeout.ms' must be a positive number of milliseconds, "
            f"got '{timeout}'"
        )
    ]


def test_order_of_refusals() -> None:
    """Everything refused is told at once, in the JVM connector's order, the servers last."""
    names = (
        "interceptor.classes",
        "enable.auto.commit",
        "value.deserializer",
        "key.deserializer",
        "auto.offset.reset",
    )
    assert consumer_problems(dict.fromkeys(names, "x")) == [
        AUTO_OFFSET_RESET,
        KEY_DESERIALIZER,
        VALUE_DESERIALIZER,
        AUTO_COMMIT,
        INTERCEPTORS,
        NO_SERVERS,
    ]


@pytest.mark.parametrize(
    ("settings", "milliseconds"),
    [(SERVERS, 30_000), (SERVERS | {"default.api.timeout.ms": "1500"}, 1_500)],
)
def test_api_timeout(settings: dict[str, str], milliseconds: int) -> None:
    """A call may take half a minute unless the user says otherwise."""
    assert api_timeout_ms(settings) == milliseconds
