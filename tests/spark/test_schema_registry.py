"""Typed queries and a real schema registry: many schemas, changes of schemas, outages."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

import fastavro
import pytest
from pyspark.errors import PySparkException

from pyspark_kafka.adapters.value_framing.wire_format import id_prefix
from pyspark_kafka.bootstrap.schema_registries import open_registry
from pyspark_kafka.domain.values.registered_schema import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import RegistryOptions

from ..servers.fault_proxy import OPEN, Rules, proxied
from .queries import OURS, read, read_stream, run_available_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_kafka.brokers import KafkaCluster
    from tests.servers.fault_proxy import FaultProxy

    from .topics import Topics

DOWN: Final = Rules(refuses=True)
UNKNOWN_ID: Final = 2**31 - 1

Fields: TypeAlias = list[dict[str, Any]]

USER: Final[Fields] = [{"name": "user", "type": "string"}]
DRINK: Final[Fields] = [*USER, {"name": "drink", "type": ["null", "string"], "default": None}]
AGE: Final[Fields] = [*DRINK, {"name": "age", "type": "int", "default": -1}]
WITHOUT_USER: Final[Fields] = [AGE[1], AGE[2]]
OTHER_TYPE: Final[Fields] = [{"name": "user", "type": "string"}, {"name": "age", "type": "string"}]


@pytest.fixture
def proxy(schema_registry: str) -> Iterator[FaultProxy]:
    """Run a proxy for the registry."""
    with proxied(schema_registry) as running:
        yield running


class Orders:
    """A topic with records of schemas that a registry has."""

    def __init__(self, topics: Topics, url: str) -> None:
        self.topic = topics.create()
        self._topics = topics
        self._registry = open_registry(RegistryOptions(url))

    def register(self, fields: Fields, subject: str = "") -> int:
        """Register a record with fields, for the topic's values unless a subject is given."""
        text = json.dumps({"type": "record", "name": "Order", "fields": fields})
        schema = Schema(SchemaType.AVRO, text)
        return self._registry.register(subject or f"{self.topic}-value", schema)

    def value(self, schema_id: int, **record: Any) -> bytes:
        """Return a framed record."""
        schema = json.loads(self._registry.by_id(schema_id).text)
        content = io.BytesIO()
        fastavro.schemaless_writer(content, schema, record)
        return id_prefix(schema_id) + content.getvalue()

    def write(self, *values: bytes | None) -> None:
        """Write values."""
        self._topics.values(self.topic, values)


def typed(orders: Orders, url: str, **others: str) -> dict[str, str]:
    """Return the options of a query on the values of orders."""
    registry = {"schema__registry__url": url, "schema__registry__request__timeout__ms": "500"}
    earliest = {"subscribe": orders.topic, "startingOffsets": "earliest"}
    return {**earliest, "valueFormat": "avro", **registry, **others}


def rows(table: DataFrame) -> list[Any]:
    return [tuple(row) for row in table.select("offset", "value.*").orderBy("offset").collect()]


def test_records_of_many_schemas(
    spark: SparkSession, kafka: KafkaCluster, topics: Topics, schema_registry: str, client: str
) -> None:
    """Records of several versions alternate; each is read as the newest one, or is a bad one."""
    orders = Orders(topics, schema_registry)
    first, second, third = (orders.register(fields) for fields in (USER, DRINK, AGE))
    old = [orders.value(first, user=f"old{number}") for number in range(3)]
    new = [orders.value(third, user=f"new{number}", drink=None, age=number) for number in range(3)]
    incompatible = orders.register(OTHER_TYPE, f"{orders.topic}-other")
    removed = orders.register(WITHOUT_USER, f"{orders.topic}-removed")
    orders.write(
        *(value for pair in zip(old, new, strict=True) for value in pair),
        orders.value(second, user="second", drink="tea"),
        None,
        id_prefix(UNKNOWN_ID) + b"x",
        b"not framed",
        orders.value(incompatible, user="eve", age="x"),
        orders.value(removed, drink="tea", age=5),
        old[0],
    )
    given = typed(orders, schema_registry, client=client)
    assert rows(read(spark, kafka, OURS, **given, mode="PERMISSIVE")) == [
        *(
            row
            for number in range(3)
            for row in (
                (2 * number, f"old{number}", None, -1),
                (2 * number + 1, f"new{number}", None, number),
            )
        ),
        (6, "second", "tea", -1),
        *((offset, None, None, None) for offset in range(7, 12)),
        (12, "old0", None, -1),
    ]


def test_errors_of_records(
    spark: SparkSession, kafka: KafkaCluster, topics: Topics, schema_registry: str
) -> None:
    """The error names the record and the id of its schema."""
    orders = Orders(topics, schema_registry)
    orders.register(AGE)
    incompatible = orders.register(OTHER_TYPE, f"{orders.topic}-other")
    orders.write(id_prefix(UNKNOWN_ID), orders.value(incompatible, user="eve", age="x"))
    unknown = f"the schema registry has no schema with its id, schema id {UNKNOWN_ID}."
    other = rf"cannot be read as the schema of the query .*, schema id {incompatible}\."
    for offset, told in enumerate((unknown, other)):
        start = json.dumps({orders.topic: {"0": offset}})
        given = {**typed(orders, schema_registry), "startingOffsets": start}
        record = f"record at offset {offset} of {orders.topic}-0 cannot be decoded"
        with pytest.raises(
            PySparkException, match=rf"\[KAFKA_MALFORMED_VALUE\] .*{record}.*{told}"
        ):
            read(spark, kafka, OURS, **given).collect()


def test_a_registry_that_is_down_while_tasks_run(
    spark: SparkSession,
    kafka: KafkaCluster,
    topics: Topics,
    schema_registry: str,
    proxy: FaultProxy,
    client: str,
) -> None:
    """Tasks fail in any mode, rather than drop records, and succeed when it is back."""
    orders = Orders(topics, schema_registry)
    schema_id = orders.register(USER)
    orders.write(orders.value(schema_id, user="ada"))
    url = f"http://{proxy.address}{urlsplit(schema_registry).path}"
    given = typed(orders, url, client=client, mode="DROPMALFORMED")
    table = read(spark, kafka, OURS, **given)
    proxy.set(DOWN)
    with pytest.raises(PySparkException, match="KAFKA_SCHEMA_REGISTRY_UNAVAILABLE"):
        rows(table)
    proxy.set(OPEN)
    assert rows(table) == [(0, "ada")]


def test_a_stream_goes_on_when_the_registry_is_back(
    spark: SparkSession,
    kafka: KafkaCluster,
    topics: Topics,
    schema_registry: str,
    proxy: FaultProxy,
    tmp_path: Path,
) -> None:
    """A schema that cannot be looked up fails the batch, which is repeated as a whole."""
    orders, letters = Orders(topics, schema_registry), topics.create()
    url = f"http://{proxy.address}{urlsplit(schema_registry).path}"
    first, second = orders.register(USER), orders.register(DRINK)
    orders.write(orders.value(first, user="ada"), orders.value(second, user="bob", drink="tea"))
    given = typed(orders, url, deadLetterTopic=letters)

    def run(rules: Rules) -> list[Any]:
        proxy.set(OPEN)
        stream = read_stream(spark, kafka, OURS, **given).select("offset", "value.user")
        proxy.set(rules)
        found = run_available_now(stream, tmp_path)
        return [tuple(row) for row in found.orderBy("offset").collect()]

    with pytest.raises(PySparkException, match="KAFKA_SCHEMA_REGISTRY_UNAVAILABLE"):
        run(DOWN)
    assert run(OPEN) == [(0, "ada"), (1, "bob")]
    assert read(spark, kafka, OURS, subscribe=letters).count() == 0
