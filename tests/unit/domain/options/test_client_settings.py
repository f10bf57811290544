"""The producer's settings: what Java's client takes, what it refuses, and what it makes of them.

What is expected was seen with ``ProducerConfig`` of Kafka's client 3.9.2, Spark 4.2's.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.options.client_settings import (
    ProducerSettings,
    consumer_problems,
    kafka_settings,
    producer_settings,
    read_java_settings,
)
from pyspark_kafka.domain.options.servers import server_address
from pyspark_kafka.domain.options.settings_table import (
    ALL_REPLICAS,
    COMPRESSIONS,
    ROUND_ROBIN,
    SETTINGS,
    Ignored,
    ProducerField,
    Refused,
)
from pyspark_kafka.domain.security.oauth import ClientCredentials
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.domain.security.tls import Store

from .given import ACKS, AUTO_COMMIT, INTERCEPTORS, NO_SERVERS, RETRIES

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


def test_settings_are_options_that_begin_with_kafka():
    given_options = {
        "kafka.bootstrap.servers": " b:9092 ",
        "kafka.kafka.x": "1",
        "kafkaconsumer.polltimeoutms": "2",
        "subscribe": "kafka.t",
    }
    assert kafka_settings(given_options) == {"bootstrap.servers": "b:9092", "kafka.x": "1"}


def test_secrets_are_hidden_where_settings_are_represented():
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
def test_values_of_settings_are_represented_without_secrets(value, shown):
    assert shown in repr(value)
    assert "hush" not in repr(value)


def test_settings_of_java_have_one_spelling():
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
def test_taking_settings_undoes_putting_the_prefix_before_them(settings):
    assert kafka_settings({f"kafka.{name}": text for name, text in settings.items()}) == settings


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_settings_that_no_rule_forbids_are_left_to_the_client(level):
    settings = {"isolation.level": level, "default.api.timeout.ms": "1", "group.id": "g"}
    assert consumer_problems(SERVERS) == consumer_problems(SERVERS | settings) == []


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
def test_settings_that_spark_decides_are_refused(settings, problem):
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
def test_a_server_has_the_form_that_javas_client_reads(server, address):
    assert server_address(server) == address
    assert read_java_settings({"bootstrap.servers": f"a:1,{server},"}).problems == ()


@pytest.mark.parametrize(
    "server", ["b:port", "b:", ":9092", "b:0", "b:65536", "http://b:9092/", "b:9092;c:9092", "::1"]
)
def test_what_is_no_server(server):
    """A server that Kafka's clients cannot connect to is refused before they try, and not repeated.

    It may be a connection string of Event Hubs, with its key. Clients of others may take it.
    """
    settings = {"bootstrap.servers": f"a:1, {server}"}
    assert consumer_problems(settings) == []
    assert [*read_java_settings(settings).problems] == [
        "Option 'kafka.bootstrap.servers' must be host:port, separated by commas: number 2 is not"
    ]


LEVEL = "'kafka.isolation.level' must be 'read_uncommitted' or 'read_committed', got"
TIMEOUT = "'kafka.default.api.timeout.ms' must be a positive number of milliseconds, got"


@pytest.mark.parametrize(
    ("name", "texts", "problem"),
    [
        ("isolation.level", ["", "READ_COMMITTED", "serializable"], LEVEL),
        ("default.api.timeout.ms", ["", "0", "-1", "1.5", "1s", "x", "²"], TIMEOUT),
    ],
)
def test_other_isolation_levels_and_timeouts_are_refused(name, texts, problem):
    for text in texts:
        assert consumer_problems(SERVERS | {name: text}) == [f"Option {problem} '{text}'"]


def test_all_refusals_are_reported_in_the_jvm_connectors_order():
    names = ("interceptor.classes", "enable.auto.commit", "value.deserializer", "key.deserializer")
    refused = [AUTO_OFFSET_RESET, KEY_DESERIALIZER, VALUE_DESERIALIZER, AUTO_COMMIT, INTERCEPTORS]
    given_settings = dict.fromkeys([*names, "auto.offset.reset"], "x")
    assert consumer_problems(given_settings) == [*refused, NO_SERVERS]


@pytest.mark.parametrize(
    ("settings", "milliseconds"),
    [(SERVERS, 30_000), (SERVERS | {"default.api.timeout.ms": "1500"}, 1_500)],
)
def test_a_call_may_take_half_a_minute_by_default(settings, milliseconds):
    assert read_java_settings(settings).timeout_ms == milliseconds


PACKAGE: Final = "org.apache.kafka.clients.producer"
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

WRITES: Final = {setting.name: setting.write for setting in SETTINGS if setting.write}
FIELDS: Final = {
    name: write.name
    for name, write in WRITES.items()
    if isinstance(write, ProducerField) and write.name
}
WITHOUT_EFFECT: Final = {
    name: write.reason for name, write in WRITES.items() if isinstance(write, Ignored)
}
REFUSED: Final = {
    name: write.message for name, write in WRITES.items() if isinstance(write, Refused)
}
OF_READS: Final = {
    setting.name for setting in SETTINGS if isinstance(setting.read, Ignored) or setting.jvm
}

IN_FLIGHT: Final = (
    "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer."
)
CONFLICTS: Final = {
    "acks": ("1", ACKS),
    "retries": ("0", RETRIES),
    "max.in.flight.requests.per.connection": ("6", IN_FLIGHT),
}

NUMBERS: Final = {
    "batch.size": (0, INT32_MAX),
    "buffer.memory": (0, INT64_MAX),
    "delivery.timeout.ms": (1, INT32_MAX),
    "max.block.ms": (0, INT64_MAX),
    "max.in.flight.requests.per.connection": (1, INT32_MAX),
    "max.request.size": (0, INT32_MAX),
    "retries": (0, INT32_MAX),
    "transaction.timeout.ms": (1, INT32_MAX),
}
LEVELS: Final = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131_072, 22)}
BOUNDS: Final = NUMBERS | {f"compression.{codec}.level": bounds for codec, bounds in LEVELS.items()}
BOOLEANS: Final = {"true": True, "FALSE": False}
CHOICES: Final[Mapping[str, Mapping[str, object]]] = {
    "acks": {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "0": 0, "1": 1},
    "compression.type": {codec: codec for codec in COMPRESSIONS},
    "enable.idempotence": BOOLEANS,
    "partitioner.class": {
        "": None,
        f"{PACKAGE}.internals.DefaultPartitioner": None,
        f"{PACKAGE}.RoundRobinPartitioner": ROUND_ROBIN,
        "package.module:Class.method": "package.module:Class.method",
    },
    "partitioner.ignore.keys": BOOLEANS,
}
REFUSALS: Final = {
    "acks": (["ALL", "2", ""], "must be all, -1, 0 or 1"),
    "compression.type": (
        ["GZIP", "uncompressed", ""],
        "must be one of none, gzip, snappy, lz4, zstd",
    ),
    "enable.idempotence": (["1", "yes", ""], "must be true or false"),
    "partitioner.class": (
        ["x", "my.Partitioner", ":f", "m:", "m:f:g", "m.:f", "m:f()"],
        (
            f"must be {PACKAGE}.RoundRobinPartitioner, or a function of Python's as "
            "'module:function': no Java class runs here"
        ),
    ),
    "partitioner.ignore.keys": (["1", "yes", ""], "must be true or false"),
}


def read(**settings: str) -> ProducerSettings:
    """Settings that can be used; ``__`` stands for a dot."""
    found, problems = producer_settings(
        {name.replace("__", "."): text for name, text in settings.items()}
    )
    assert problems == []
    return found


def texts(name: str) -> st.SearchStrategy[str]:
    if name in CHOICES:
        return st.sampled_from(sorted(CHOICES[name]))
    return st.integers(*BOUNDS[name]).map(str)


def test_defaults_are_those_of_javas_producer():
    assert producer_settings({}) == (ProducerSettings(), [])
    assert (read().acks, read().is_idempotent, read().retries) == (ALL_REPLICAS, True, INT32_MAX)


def test_every_setting_is_tried():
    assert BOUNDS.keys() | CHOICES.keys() == WRITES.keys() - WITHOUT_EFFECT.keys() - REFUSED.keys()
    assert {*FIELDS.values(), "compression_level"} == {
        field.name for field in fields(ProducerSettings)
    }


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_within_the_bounds_are_read(name):
    for bound in NUMBERS[name]:
        found, problems = producer_settings({name: str(bound)})
        assert (getattr(found, FIELDS[name]), problems) == (bound, [])


@pytest.mark.parametrize("name", BOUNDS)
def test_other_numbers_are_refused_with_the_bounds(name):
    least, most = BOUNDS[name]
    for text in (str(least - 1), str(most + 1), "", "x", "1.0", "1e3", "9" * 5_000):
        _, problems = producer_settings({name: text})
        assert problems == [
            f"Option 'kafka.{name}' must be a whole number from {least} to {most}, got '{text}'"
        ]


@pytest.mark.parametrize(("name", "meanings"), CHOICES.items())
def test_choices_are_read_as_java_reads_them(name, meanings):
    for text, meaning in meanings.items():
        found, problems = producer_settings({name: text})
        assert (getattr(found, FIELDS[name]), problems) == (meaning, [])


@pytest.mark.parametrize(("name", "refusal"), REFUSALS.items())
def test_other_choices_are_refused_with_the_choices(name, refusal):
    wrong, problem = refusal
    for text in wrong:
        assert producer_settings({name: text})[1] == [
            f"Option 'kafka.{name}' {problem}, got '{text}'"
        ]


@pytest.mark.parametrize("codec", LEVELS)
def test_only_the_level_of_the_chosen_codec_has_an_effect(codec):
    levels = {f"compression.{name}.level": str(most) for name, (_, most) in LEVELS.items()}
    most = LEVELS[codec][1]
    found, problems = producer_settings(levels | {"compression.type": codec})
    assert (found.compression, found.compression_level, problems) == (codec, most, [])


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip"])
def test_a_codec_without_a_level_of_its_own_has_its_default(codec):
    settings = {"compression.type": codec, "compression.gzip.level": "-1"}
    found, problems = producer_settings(settings | {"compression.zstd.level": "1"})
    assert (found.compression_level, problems) == (None, [])


def test_the_sticky_partitioner_ignores_keys():
    sticky = read(partitioner__class=f"{PACKAGE}.UniformStickyPartitioner")
    assert (sticky.partitioner, sticky.ignores_keys) == (None, True)
    assert read(partitioner__class=f"{PACKAGE}.internals.DefaultPartitioner") == read()


@given(st.sets(st.sampled_from(sorted(CONFLICTS)), min_size=1))
def test_settings_that_rule_idempotence_out_turn_it_off(names):
    settings = {name: CONFLICTS[name][0] for name in names}
    found, problems = producer_settings(settings)
    assert (found.is_idempotent, problems) == (False, [])
    assert producer_settings(settings | {"enable.idempotence": "false"}) == (found, [])


@given(st.sets(st.sampled_from(sorted(CONFLICTS))))
def test_settings_that_rule_out_an_idempotence_that_is_asked_for_are_reported(names):
    settings = {name: CONFLICTS[name][0] for name in names} | {"enable.idempotence": "true"}
    found, problems = producer_settings(settings)
    assert found.is_idempotent
    assert problems == [problem for name, (_, problem) in CONFLICTS.items() if name in names]


def test_a_setting_that_cannot_be_read_contradicts_nothing():
    settings = {"acks": "2", "enable.idempotence": "true", "retries": "-1"}
    problems = producer_settings(settings)[1]
    assert [problem.split("'")[1] for problem in problems] == ["kafka.acks", "kafka.retries"]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: texts(name) for name in (BOUNDS.keys() | CHOICES.keys()) - CONFLICTS.keys()
        },
    ),
    st.dictionaries(st.sampled_from(sorted(WITHOUT_EFFECT)), st.text()),
)
def test_settings_that_may_be_set_alone_may_be_set_together(settings, others):
    found, problems = producer_settings(settings)
    assert problems == []
    assert producer_settings(settings | others) == (found, [])
    for name in FIELDS.keys() & settings.keys():
        meaning = CHOICES[name][settings[name]] if name in CHOICES else int(settings[name])
        assert getattr(found, FIELDS[name]) == meaning


@given(st.sets(st.sampled_from(sorted(BOUNDS.keys() | CHOICES.keys() | REFUSED.keys()))))
def test_all_problems_are_reported_together(names):
    problems = producer_settings(dict.fromkeys(names, "?"))[1]
    refused = [problem for name, problem in REFUSED.items() if name in names]
    assert problems[: len(refused)] == refused
    assert [problem.split("'")[1] for problem in problems[len(refused) :]] == [
        f"kafka.{name}" for name in sorted(names - REFUSED.keys())
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("key.serializer", "is not supported as keys are serialized with ByteArraySerializer."),
        ("value.serializer", "is not supported as value are serialized with ByteArraySerializer."),
        ("interceptor.classes", "is not supported: no Java class runs here; "),
        ("transactional.id", "is not supported: set the option 'deliveryGuarantee' to "),
    ],
)
@pytest.mark.parametrize("text", ["", "x"])
def test_settings_that_a_sink_decides_are_refused_with_any_value(name, start, text):
    [problem] = producer_settings({name: text})[1]
    assert problem.startswith(f"Kafka option '{name}' {start}")


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_settings_without_effect_say_why(name):
    assert WITHOUT_EFFECT[name]
    assert name in OF_READS


def test_settings_of_others_are_left_alone():
    others = {"bootstrap.servers": "b:1", "sasl.password": "hush", "group.id": "g", "": ""}
    assert producer_settings(others) == (ProducerSettings(), [])


def test_a_read_takes_settings_of_writing():
    # One setting is every client's, not the producer's alone.
    of_clients = {"max.in.flight.requests.per.connection"}
    assert WRITES.keys() - REFUSED.keys() - of_clients <= OF_READS
