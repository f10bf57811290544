"""Values of each format in a real Kafka, and both clients: what becomes of bad records."""

import io
import json
from typing import Any, Final, NamedTuple

import fastavro
import pytest

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry, guid_of
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.values.framing.wire_format import guid_header, header_name, id_prefix
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.dead_letter import DeadLetter
from pyspark_kafka.domain.values.errors import (
    BadRecordStats,
    FailureReason,
    MalformedValueError,
    describe_failure,
)
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, SchemaType
from pyspark_kafka.testing import KafkaWorld, Record

from ..servers.http_server import serving
from ..servers.registry_stub import RegistryStub

Rows = list[tuple[Any, ...]]

USER: Final[dict[str, Any]] = {"name": "user", "type": "string"}
ID: Final[dict[str, Any]] = {"name": "id", "type": "long", "default": -1}


def avro(*fields: dict[str, Any]) -> Schema:
    return Schema(
        SchemaType.AVRO, json.dumps({"type": "record", "name": "Order", "fields": fields})
    )


def encoded(schema: Schema, **record: Any) -> bytes:
    content = io.BytesIO()
    fastavro.schemaless_writer(content, json.loads(schema.text), record)
    return content.getvalue()


ORDER: Final = avro(ID, USER)
MESSAGE: Final = Schema(
    SchemaType.PROTOBUF, 'syntax = "proto3";\nmessage Order { int64 id = 1; string user = 2; }\n'
)


class Case(NamedTuple):
    """A good value of a format, a bad one, and what is kept and reported of that."""

    value_format: str
    good: bytes
    bad: bytes
    kept: dict[str, Any] | None
    reason: FailureReason
    field: str
    schema: Schema | None = None


CASES: Final = (
    Case(
        "json",
        b'{"id":1,"user":"ada"}',
        b'{"id":"x","user":"eve"}',
        {"id": None, "user": "eve"},
        FailureReason.TYPE_MISMATCH,
        "id",
    ),
    Case(
        "avro",
        encoded(ORDER, id=1, user="ada"),
        b"\x02\x0aev",
        None,
        FailureReason.TRUNCATED,
        "user",
        ORDER,
    ),
    Case(
        "protobuf",
        b"\x08\x01\x12\x03ada",
        b"\x08\x01\x12\x01\xff",
        None,
        FailureReason.BAD_UTF8,
        "user",
        MESSAGE,
    ),
)


class Reader:
    def __init__(self, world: KafkaWorld, topic: str, **options: str) -> None:
        self.partition = TopicPartition(topic, 0)
        self._world = world
        self._options = options

    def read_into(self, rows: Rows, *columns: str, **more: str) -> tuple[tuple[object, ...], ...]:
        events = MemorySourceEvents()
        container = self._world.container(**self._options, **more, subscribe=self.partition.topic)
        container.events.override(events)
        schema = container.value_schemas().resolve()
        for batch in container.typed_read(schema).read(OffsetRange(self.partition, 0, -1)):
            rows += zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
        return events.named("records_failed")

    def rows(self, *columns: str, **more: str) -> tuple[Rows, tuple[tuple[object, ...], ...]]:
        rows: Rows = []
        reports = self.read_into(rows, *columns, **more)
        return rows, reports


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.value_format)
def test_a_bad_record_in_each_mode(world, schema_registry, case):
    topic, letters = world.topic(), world.topic()
    options, framing, schema_id = {"valueSchema": "id bigint, user string"}, b"", ""
    if case.schema is not None:
        registry = open_registry(RegistryOptions(schema_registry))
        number = registry.register(f"{topic}-value", case.schema)
        framing = id_prefix(number, (0,) if case.value_format == "protobuf" else None)
        options, schema_id = {"schema__registry__url": schema_registry}, str(number)
    good, bad = framing + case.good, framing + case.bad
    world.produce(TopicPartition(topic, 0), [Record(value) for value in (good, bad, None, good)])
    reader = Reader(world, topic, valueFormat=case.value_format, **options)
    ada = {"id": 1, "user": "ada"}
    error = describe_failure(case.reason, case.field, schema_id)

    before: Rows = []
    with pytest.raises(MalformedValueError) as caught:
        reader.read_into(before, "offset", "value")
    assert before == [(0, ada)]
    told = f"record at offset 1 of {topic}-0 cannot be decoded: {error}. To keep reading, set"
    assert told in str(caught.value)

    columns = ("offset", "value", "valueError", "valueBytes")
    kept, reports = reader.rows(*columns, mode="PERMISSIVE", includeErrors="true")
    assert kept == [
        (0, ada, None, None),
        (1, case.kept, error, bad),
        (2, None, None, None),
        (3, ada, None, None),
    ]
    assert reports == ((BadRecordStats({case.reason: 1}), reader.partition, 1),)

    dropped, reports = reader.rows("offset", "value", mode="DROPMALFORMED")
    assert dropped == [(0, ada), (2, None), (3, ada)]
    assert reports == ((BadRecordStats({case.reason: 1}), reader.partition, 1),)

    rest, reports = reader.rows("offset", "value", deadLetterTopic=letters)
    assert rest == dropped
    assert reports == ((BadRecordStats({case.reason: 1}, 1), reader.partition, 1),)
    [row] = world.records(TopicPartition(letters, 0))
    letter = DeadLetter.from_headers([(pair["key"], pair["value"]) for pair in row["headers"]])
    assert letter is not None
    assert (row["value"], letter.origin, letter.offset) == (bad, reader.partition, 1)
    assert (letter.reason, letter.error) == (case.reason.name, error)


def test_ids_in_headers(world):
    memory, topic = MemorySchemaRegistry(), world.topic()
    old, new = avro(USER), ORDER
    ids = [memory.register(f"{topic}-value", schema) for schema in (old, new)]
    unknown = guid_of(MESSAGE)

    def record(value: bytes, *guids: str) -> Record:
        name = header_name("value")
        return Record(value, headers=tuple((name, guid_header(guid)) for guid in guids))

    ada, bob = encoded(old, user="ada"), encoded(new, id=2, user="bob")
    records = [record(ada, guid_of(old)), record(bob, guid_of(new))] * 2
    records += [record(ada, unknown), record(ada, guid_of(new), guid_of(old))]
    records += [record(id_prefix(ids[1]) + bob), record(bob)]
    world.produce(TopicPartition(topic, 0), records)
    with serving(RegistryStub(memory).respond) as url:
        registry = {"schema__registry__url": url, "valueFraming": "confluent-header"}
        reader = Reader(world, topic, valueFormat="avro", includeErrors="true", **registry)
        found, _ = reader.rows("value", "valueError")
    good = [({"id": -1, "user": "ada"}, None), ({"id": 2, "user": "bob"}, None)]
    assert found == [
        *good,
        *good,
        (None, describe_failure(FailureReason.UNKNOWN_SCHEMA, schema_id=unknown)),
        *good,
        (None, describe_failure(FailureReason.NO_FRAMING)),
    ]
