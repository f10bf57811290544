"""A real schema registry that goes away and comes back, and what it does not have."""

import threading
import time
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.values.errors import FailureReason, RegistryUnavailableError
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, SchemaType
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry
from pyspark_kafka.testing import await_until
from tests.servers.fault_proxy import OPEN, Rules, Traffic, proxied

DOWN: Final = Rules(refuses=True)
SHORT_MS: Final = "300"


@pytest.fixture
def proxy(schema_registry):
    with proxied(schema_registry) as running:
        yield running


@pytest.fixture
def behind(schema_registry, proxy):
    url = f"http://{proxy.address}{urlsplit(schema_registry).path}"
    return lambda timeout_ms: open_registry(
        RegistryOptions(url, (("request.timeout.ms", timeout_ms),))
    )


def avro(name: str) -> Schema:
    return Schema(SchemaType.AVRO, f'{{"type":"fixed","name":"{name}","size":4}}')


def test_a_registry_that_goes_away_and_comes_back(behind, proxy, fresh_name):
    registry, names = behind(SHORT_MS), [fresh_name() for _ in range(2)]
    first, second = (behind("20000").register(name, avro(name)) for name in names)
    assert answer(registry, first) == avro(names[0])
    proxy.set(DOWN)
    for _ in range(2):
        with pytest.raises(RegistryUnavailableError, match="refused"):
            registry.by_id(second)
    assert registry.by_id(first) == avro(names[0])
    proxy.set(OPEN)
    assert answer(registry, second) == avro(names[1])


def answer(registry: SchemaRegistry, schema_id: int) -> Schema:
    """Return a schema of an impatient registry, which a loaded machine may not answer in time."""
    answers: list[Schema] = []

    def is_answered() -> bool:
        with suppress(RegistryUnavailableError):
            answers.append(registry.by_id(schema_id))
        return bool(answers)

    await_until(is_answered)
    return answers[0]


@pytest.mark.parametrize(
    "rules",
    [DOWN, Rules(to_client=Traffic(reset_after=20)), Rules(to_server=Traffic(is_held=True))],
)
def test_a_call_waits_for_a_registry(behind, proxy, fresh_name, rules):
    registry, name = behind("20000"), fresh_name()
    proxy.set(rules)
    back = threading.Timer(0.5, lambda: proxy.set(OPEN))
    back.start()
    try:
        began = time.monotonic()
        schema_id = registry.register(name, avro(name))
        assert time.monotonic() - began >= 0.4
        assert registry.by_id(schema_id) == avro(name)
    finally:
        back.join()


def test_ids_of_records(schema_registry, fresh_name):
    registry, name = open_registry(RegistryOptions(schema_registry)), fresh_name()
    schema_id = registry.register(name, avro(name))
    framing = ValueFraming(ValueOptions("value", "avro", framing=Framing.CONFLUENT), registry)
    ids = [schema_id, 2**31 - 1, 2**32 - 1, 0, schema_id]
    payloads = framing.payloads(pa.array([id_prefix(each) + b"0123" for each in ids]))
    unknown = FailureReason.UNKNOWN_SCHEMA
    assert payloads.reasons.tolist() == [0, unknown, unknown, unknown, 0]
    assert [payloads.schema_id(row) for row in range(5)] == ids


def test_a_registry_without_guids(schema_registry):
    """Apicurio looks up no GUIDs: this is no error of a record, but of the registry."""
    registry = open_registry(RegistryOptions(schema_registry))
    with pytest.raises(RegistryUnavailableError, match="HTTP 404"):
        registry.by_guid("00000000-0000-4000-8000-000000000000")
