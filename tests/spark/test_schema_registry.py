"""Typed queries and a real schema registry: many schemas, changes of schemas, outages."""

import io
import json
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from pyspark_kafka.adapters.values.framing.wire_format import id_prefix, parse_framing
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.values.errors import FailureReason, describe_failure
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, SchemaType
from tests.slowness import bound_s

from ..servers.fault_proxy import OPEN, Rules, proxied
from .queries import OURS, read, read_stream, run_available_now
from .topics import Topics

DOWN: Final = Rules(refuses=True)
UNKNOWN_ID: Final = 2**31 - 1

Fields: TypeAlias = list[dict[str, Any]]

USER: Final[Fields] = [{"name": "user", "type": "string"}]
DRINK: Final[Fields] = [*USER, {"name": "drink", "type": ["null", "string"], "default": None}]
AGE: Final[Fields] = [*DRINK, {"name": "age", "type": "int", "default": -1}]
WITHOUT_USER: Final[Fields] = [AGE[1], AGE[2]]
OTHER_TYPE: Final[Fields] = [{"name": "user", "type": "string"}, {"name": "age", "type": "string"}]

KEY: Final = "int64 id = 1; string name = 2;"
NEWER_KEY: Final = "int64 id = 1; string title = 2; int32 added = 3;"
SHORTER_KEY: Final = "int64 id = 1;"
OTHER_KEY: Final = "string id = 1;"

SECONDS: Final = bound_s(120)
TIMEOUT: Final = "schema__registry__request__timeout__ms"
SHORT_MS: Final = "1000"


@pytest.fixture
def proxy(schema_registry):
    with proxied(schema_registry) as running:
        yield running


class Orders:
    """A topic with records of schemas that a registry has."""

    def __init__(self, topics: Topics, url: str) -> None:
        self.topic = topics.create()
        self._topics = topics
        self._registry = open_registry(RegistryOptions(url))

    def register(self, fields: Fields, subject: str = "value") -> int:
        text = json.dumps({"type": "record", "name": "Order", "fields": fields})
        return self._registry.register(f"{self.topic}-{subject}", Schema(SchemaType.AVRO, text))

    def key_prefix(self, fields: str, subject: str = "key") -> bytes:
        schema = Schema(SchemaType.PROTOBUF, f'syntax = "proto3";\nmessage Order {{ {fields} }}\n')
        return id_prefix(self._registry.register(f"{self.topic}-{subject}", schema), (0,))

    def value(self, schema_id: int, **record: Any) -> bytes:
        schema = json.loads(self._registry.by_id(schema_id).text)
        content = io.BytesIO()
        fastavro.schemaless_writer(content, schema, record)
        return id_prefix(schema_id) + content.getvalue()

    def write(self, *values: bytes | None) -> None:
        self._topics.values(self.topic, values)

    def write_pairs(self, *pairs: tuple[bytes | None, bytes | None]) -> None:
        self._topics.pairs(self.topic, pairs)


def typed(orders: Orders, url: str, **others: str) -> dict[str, str]:
    earliest = {"subscribe": orders.topic, "startingOffsets": "earliest"}
    return {**earliest, "valueFormat": "avro", "schema__registry__url": url, **others}


def rows(table: DataFrame, *columns: str) -> list[Any]:
    selected = table.select("offset", "value.*", *columns)
    return [tuple(row) for row in selected.orderBy("offset").collect()]


def id_of(prefix: bytes) -> int:
    found, _ = parse_framing(prefix)
    assert isinstance(found, int)
    return found


def test_records_of_many_schemas(spark, kafka, topics, schema_registry, client):
    orders = Orders(topics, schema_registry)
    first, second, third = (orders.register(fields) for fields in (USER, DRINK, AGE))
    old_key, new_key = (orders.key_prefix(fields) for fields in (KEY, NEWER_KEY))
    incompatible = orders.register(OTHER_TYPE, "other")
    removed = orders.register(WITHOUT_USER, "removed")
    incompatible_key = orders.key_prefix(OTHER_KEY, "other-key")
    old = old_key + b"\x08\x07\x12\x01a", orders.value(first, user="old")
    new = new_key + b"\x08\x08\x18\x05", orders.value(third, user="new", drink=None, age=9)
    no_schema = id_prefix(UNKNOWN_ID, (0,))
    orders.write_pairs(
        *(pair for _ in range(3) for pair in (old, new)),
        (
            orders.key_prefix(SHORTER_KEY, "shorter-key") + b"\x08\x09",
            orders.value(second, user="second", drink="tea"),
        ),
        (None, None),
        (no_schema, id_prefix(UNKNOWN_ID) + b"x"),
        (b"not framed", b"not framed"),
        (incompatible_key + b"\x0a\x01x", orders.value(incompatible, user="eve", age="x")),
        (old[0], orders.value(removed, drink="tea", age=5)),
        old,
    )
    framings = {"keyFormat": "protobuf", "includeErrors": "true", "mode": "PERMISSIVE"}
    table = read(spark, kafka, OURS, **typed(orders, schema_registry, client=client), **framings)

    def told(reason: FailureReason, schema_id: int | str = "", field: str = "") -> str:
        return describe_failure(reason, field, schema_id)

    unknown, not_framed = FailureReason.UNKNOWN_SCHEMA, FailureReason.NO_FRAMING
    unfit, none = FailureReason.INCOMPATIBLE_SCHEMA, (None, None, None)
    key = 7, "a", None
    found_old = "old", None, -1, None, *key, None
    found_new = "new", None, 9, None, 8, None, 5, None
    assert rows(table, "valueError", "key.*", "keyError") == [
        (offset, *found)
        for offset, found in enumerate(
            [
                *(found for _ in range(3) for found in (found_old, found_new)),
                ("second", "tea", -1, None, 9, None, None, None),
                (*none, None, *none, None),
                (*none, told(unknown, UNKNOWN_ID), *none, told(unknown, UNKNOWN_ID)),
                (*none, told(not_framed), *none, told(not_framed)),
                (
                    *none,
                    told(unfit, incompatible, "age"),
                    *none,
                    told(unfit, id_of(incompatible_key), "id"),
                ),
                (*none, told(unfit, removed, "user"), *key, None),
                found_old,
            ]
        )
    ]


def test_a_stream_goes_on_when_the_registry_is_back(
    spark, kafka, topics, schema_registry, proxy, tmp_path
):
    orders, letters = Orders(topics, schema_registry), topics.create()
    url = f"http://{proxy.address}{urlsplit(schema_registry).path}"
    first, second = orders.register(USER), orders.register(DRINK)
    orders.write(orders.value(first, user="ada"), orders.value(second, user="bob", drink="tea"))
    given = typed(orders, url, deadLetterTopic=letters)

    def run(rules: Rules, **more: str) -> list[Any]:
        proxy.set(OPEN)
        stream = read_stream(spark, kafka, OURS, **given, **more).select("offset", "value.user")
        proxy.set(rules)
        found = run_available_now(stream, tmp_path)
        return [tuple(row) for row in found.orderBy("offset").collect()]

    with pytest.raises(PySparkException, match="KAFKA_SCHEMA_REGISTRY_UNAVAILABLE"):
        run(DOWN, **{TIMEOUT: SHORT_MS})
    assert run(OPEN) == [(0, "ada"), (1, "bob")]
    assert read(spark, kafka, OURS, subscribe=letters).count() == 0
