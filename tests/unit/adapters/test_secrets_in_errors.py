"""Errors of options that have secrets, and what is pickled of a query."""

import ast
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path

import pytest

import pyspark_kafka
from pyspark_kafka.adapters.kafka_python.settings import OWN_SETTINGS
from pyspark_kafka.adapters.security.tls_context import Rotating
from pyspark_kafka.adapters.spark.batch_reader import KafkaBatchReader
from pyspark_kafka.adapters.spark.tasks import input_partitions
from pyspark_kafka.bootstrap import checks
from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.bootstrap.spark import ContainerUseCases
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.errors import OptionsError, PysparkKafkaError
from pyspark_kafka.domain.options import value_table
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.settings_table import KAFKA_PYTHON_NAMES, SETTINGS
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.sink_table import SINK_TABLE
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.options.source_table import TABLE
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.secrets import is_secret
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.registry import RegistryOptions

from .options import sink_of, source_of

SOURCE = Path(pyspark_kafka.__file__).parent
SECRET = "canary-6f1c"  # noqa: S105
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required username="u" password="{SECRET}";'

SECRETS = [
    *(setting.name for setting in SETTINGS if is_secret(setting.name)),
    # librdkafka's own, kafka-python's own, and misspelled ones.
    *("ssl.key.pem", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config"),
    *("sasl_plain_password", "ssl_password", "sasl.pasword", "sasl.jaas.confg"),
]

OPTIONS = sorted(
    {
        *(option.name for option in (*TABLE, *SINK_TABLE)),
        *(option.name for option in (*value_table.TABLE, *value_table.SINK_TABLE)),
        *(f"kafka.{setting.name}" for setting in SETTINGS),
        *(f"kafka.{name}" for name in (*OWN_SETTINGS, *KAFKA_PYTHON_NAMES)),
        *(f"kafka.{name}" for name in KAFKA_PYTHON_NAMES.values()),
        *("schema.registry.url", "schema.registry.request.timeout.ms", "schema.registry.proxy"),
        *("schema.registry.ssl.keystore.location", "schema.registry.ssl.keystore.type"),
    }
)
"""Every option of a read and a write, and settings of each client."""

PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\nMIIE{SECRET}\n-----END PRIVATE KEY-----\n"
PASTED = {"a private key": PRIVATE_KEY, "a URL": f"s3://AKIA:ab/{SECRET}@bucket/x?sig={SECRET}"}

LOGINS: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "TLS": {"security.protocol": "SSL"},
    "PLAIN": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    "GSSAPI": {"security.protocol": "SASL_PLAINTEXT"},
    "OAUTHBEARER": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"},
}


def broken_jaas() -> Iterator[str]:
    """Yield JAAS lines that end too early, and that have a character too many."""
    for position in range(len(MODULE) + 1, len(JAAS)):
        yield JAAS[:position]
        for sign in '";= ':
            yield JAAS[:position] + sign + JAAS[position:]


def shown(call: Callable[[], object]) -> str:
    """Return all that Python shows of the error of a call, or else of its result."""
    try:
        return repr(call())
    except PysparkKafkaError as error:
        return "".join(traceback.format_exception(error)) + repr(error)


def refusal(client: str, settings: Mapping[str, str]) -> str:
    """Return what is shown of a query whose client may refuse its settings."""

    def start() -> None:
        parsed = source_of(client, {f"kafka.{name}": value for name, value in settings.items()})
        assert SECRET not in repr(parsed)
        with closing_clients(container_for(parsed)) as container:
            container.offset_fetcher()
            container.record_reader()

    return shown(start)


@pytest.mark.parametrize("login", LOGINS)
def test_no_error_shows_a_secret(client, login):
    refused = [refusal(client, {**LOGINS[login], name: SECRET}) for name in SECRETS]
    assert any("Traceback" in text for text in refused)
    assert not [text for text in refused if SECRET in text]


def test_no_error_shows_a_broken_jaas_line():
    login = LOGINS["PLAIN"]
    broken = [read_java_settings({**login, "sasl.jaas.config": text}) for text in broken_jaas()]
    refused = [str(settings.problems) for settings in broken if settings.problems]
    assert len(refused) > len(JAAS)
    assert not [text for text in refused if SECRET in text]


def test_no_error_shows_a_password_in_a_wrong_place(client):
    """A password may stand before the servers, or instead of the login module."""
    for servers in (f"u:{SECRET}@h:1", f"SASL_SSL://u:{SECRET}@h:1"):
        told = refusal(client, {"bootstrap.servers": servers})
        assert "'kafka.bootstrap.servers' must be host:port, without a user" in told
        assert SECRET not in told
    told = refusal(client, {**LOGINS["PLAIN"], "sasl.jaas.config": f"{SECRET} required a=b;"})
    assert "the login module is not supported" in told
    assert SECRET not in told


@pytest.mark.parametrize("pasted", PASTED)
def test_nothing_shows_a_secret_in_a_wrong_option(caplog, monkeypatch, client, pasted):
    # Looking for plug-ins and reading the machine's certificates take longer than all the rest.
    monkeypatch.setattr(checks, "has_plugins", lambda _group: False)
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    common = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{MODULE} required username="u" password="p";',
        "client": client,
        "valueFormat": "json",
        "valueSchema": "a int",
        "schema.registry.url": "http://127.0.0.1:1",
    }
    leaks, refused = [], 0
    with caplog.at_level(1):
        for name, side in product(OPTIONS, (source, sink)):
            given = {key: value for key, value in common.items() if key.lower() != name.lower()}
            told = shown(partial(side, {**given, name: PASTED[pasted]}))
            refused += "Traceback" in told
            if SECRET in told or SECRET in caplog.text:
                leaks.append((name, told, caplog.text))
            caplog.clear()
    assert len(OPTIONS) < 2 * refused < 4 * len(OPTIONS)
    assert not leaks


FORMATS = {
    "json": "a int",
    "avro": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
    "protobuf": 'syntax = "proto3"; message R { int32 a = 1; }',
}


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("name", FORMATS)
def test_nothing_shows_a_secret_in_an_option_of_a_format(name, pasted):
    common = {"valueFormat": name, "valueSchema": FORMATS[name], "valueFraming": "none"}
    options = dict.fromkeys(one.name for one in (*value_table.TABLE, *value_table.SINK_TABLE))
    told = {
        (option, plan.__name__): shown(partial(plan, {**common, option: PASTED[pasted]}))
        for option, plan in product(options, (plan_read, plan_write))
    }
    assert sum("Traceback" in text for text in told.values()) > len(options)
    assert not [(place, text) for place, text in told.items() if SECRET in text]


def plan_read(given: Mapping[str, str]) -> None:
    with ContainerUseCases().driver(source_of("confluent", given)) as driver:
        driver.value_schemas().resolve()


def plan_write(given: Mapping[str, str]) -> None:
    with ContainerUseCases().sink(sink_of("confluent", given)) as sink:
        sink.sink_encoding().prepare({"value": parse_struct("a int")})


def test_errors_of_options_are_not_chained():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    makers = {OptionsError.__name__} | {
        node.name
        for _, node in nodes
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns) == OptionsError.__name__
    }
    chained = {
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, node in nodes
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func).rpartition(".")[2] in makers
        and isinstance(node.cause, ast.Name)
    }
    assert not chained
    assert {"options_error", "_unusable"} <= makers


def test_no_log_shows_a_secret_of_changed_files(caplog, tmp_path):
    file = tmp_path / "store"

    def read() -> None:
        if file.exists():
            raise ValueError(f"Option 'x': '{PASTED['a URL']}' cannot be read")

    rotating = Rotating([str(file)], read)
    file.touch()
    rotating.current()
    assert "cannot be used; new connections use what was read before" in caplog.text
    assert SECRET not in caplog.text


def source(given: Mapping[str, str]) -> SourceOptions:
    """Return the checked options of a read."""
    subscribed = {} if given.keys() & {"assign", "subscribePattern"} else {"subscribe": "t"}
    parsed = parse_source_options({**subscribed, **given}, QueryKind.STREAM)
    checks.check_source(parsed)
    return parsed


def sink(given: Mapping[str, str]) -> SinkOptions:
    """Return the checked options of a write."""
    parsed = parse_sink_options({"topic": "t", **given}, QueryKind.STREAM)
    checks.check_sink(parsed)
    return parsed


@pytest.mark.parametrize(
    ("url", "storage_options"),
    [
        ("s3://bucket/path", f'{{"secret": "{SECRET}"'),
        ("s3://bucket/path", f'["{SECRET}"]'),
        ("s3://bucket/path", SECRET),
        (f"nowhere://key:{SECRET}@bucket/path", "{}"),
    ],
)
def test_no_error_shows_the_secret_of_a_storage(url, storage_options):
    """A storage that is not supported, and options that are no JSON, are not repeated."""
    options = {"metadataPath": url, "metadataStorageOptions": storage_options}
    with pytest.raises(PysparkKafkaError) as refused:
        container_for(source_of("confluent", options)).metadata_log()
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_no_error_shows_a_key_in_place_of_a_file_of_a_registry():
    settings = (("ssl.truststore.location", PRIVATE_KEY),)
    with pytest.raises(PysparkKafkaError, match="cannot be read") as refused:
        open_registry(RegistryOptions("https://127.0.0.1:1", settings))
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_partitions_have_no_options():
    options = source_of("confluent", {"kafka.sasl.password": SECRET})
    ranges = [OffsetRange(TopicPartition("t", 0), 0, 5)]
    reader = KafkaBatchReader(ContainerUseCases(), options, Projection(("value",)))
    assert SECRET.encode() in pickle.dumps(reader)
    assert SECRET.encode() not in pickle.dumps(input_partitions([tuple(ranges)]))
