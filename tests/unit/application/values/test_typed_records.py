from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from dependency_injector import providers

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.values.errors import (
    BadRecordStats,
    DecodedTooLargeError,
    FailureReason,
    MalformedValueError,
    NewSchemaError,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.ports.values.value_types import typed_record_schema
from tests.line_values import MAX_ROWS, VALUE_FORMAT

from ..conftest import Kit, tp

SCHEMA = "id bigint, user string"
BAD = FailureReason.TYPE_MISMATCH


class Reader:
    """Reads partition 0 of the topic ``t`` with typed values."""

    def __init__(self, kit: Kit, options: Mapping[str, str]) -> None:
        given = {
            "kafka.bootstrap.servers": "memory",
            "client": "memory",
            "subscribe": "t",
            "valueFormat": "line",
            **({} if "schema.registry.url" in options else {"valueSchema": SCHEMA}),
            **options,
        }
        self.kit = kit
        self.letters = Mock(**{"flush.return_value": 0})
        self.registry = MemorySchemaRegistry()
        self.options = parse_source_options(given, QueryKind.STREAM, UNRESTRICTED)

    def container(self) -> Container:
        container = container_for(self.options)
        container.memory_cluster.override(self.kit.cluster)
        container.events.override(self.kit.events)
        container.value_format.override(providers.Callable(lambda _name: VALUE_FORMAT))
        container.dead_letters.override(providers.Callable(lambda _topic: self.letters))
        if self.options.registry is not None:
            container.schema_registry.override(self.registry)
        return container

    def batches(self) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        self.read_into(found)
        return found

    def read_into(self, found: list[pa.RecordBatch]) -> None:
        container = self.container()
        schema = container.value_schemas().resolve()
        for batch in container.typed_read(schema).read(OffsetRange(tp(0), 0, -1)):
            assert batch.schema.equals(typed_record_schema(schema))
            found.append(batch)

    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches() for row in batch.to_pylist()]


def produce(kit: Kit, *values: bytes | None, key: bytes | None = None) -> None:
    for value in values:
        kit.cluster.produce("t", value, key=key, partition=0)


def pairs(rows: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    return [(row["offset"], row["value"]) for row in rows]


ADA = {"id": 1, "user": "ada"}
BOB = {"id": 2, "user": "bob"}


def test_values_become_structs_in_their_place(kit):
    produce(kit, b"1,ada", None, b"2,bob", key=b"k")
    rows = Reader(kit, {}).rows()
    assert [*rows[0]][:3] == ["key", "value", "topic"]
    assert pairs(rows) == [(0, ADA), (1, None), (2, BOB)]
    assert {row["key"] for row in rows} == {b"k"}
    assert kit.events.named("records_failed") == ()


def test_only_the_columns_of_the_query_are_returned(kit):
    """Other columns are read for errors and dead letters, and not returned."""
    produce(kit, b"1,ada")
    left_out = dict.fromkeys(
        ["includeOffset", "includeTopic", "includePartition", "includeTimestamp"], "false"
    )
    given = {"includeKey": "false", "includeTimestampType": "false", "deadLetterTopic": "bad"}
    assert Reader(kit, left_out | given).rows() == [{"value": ADA}]


def test_fields_become_columns(kit):
    produce(kit, b"1,ada", None)
    given = {"flattenValue": "true", "keyFormat": "line", "keySchema": "k string"}
    rows = Reader(kit, given).rows()
    assert [*rows[0]][:4] == ["key", "id", "user", "topic"]
    assert [(row["id"], row["user"]) for row in rows] == [(1, "ada"), (None, None)]


def test_the_first_bad_record_fails_the_query(kit):
    produce(kit, b"1,ada", b"2,bob", b"x,eve", b"y,eve", b"3,joe")
    found: list[pa.RecordBatch] = []
    with pytest.raises(MalformedValueError) as caught:
        Reader(kit, {}).read_into(found)
    assert [batch.column("offset").to_pylist() for batch in found] == [[0, 1]]
    assert (caught.value.partition, caught.value.offset) == (tp(0), 2)
    assert "another type than the schema (field 'id')" in str(caught.value)


def test_a_bad_first_record_is_not_preceded_by_an_empty_batch(kit):
    produce(kit, b"x,eve")
    found: list[pa.RecordBatch] = []
    with pytest.raises(MalformedValueError, match="The value of the record at offset 0 of t-0"):
        Reader(kit, {}).read_into(found)
    assert found == []


def test_bad_records_are_kept_with_their_errors(kit):
    produce(kit, b"1,ada", b"x,eve", b"short", None)
    rows = Reader(kit, {"includeErrors": "true"}).rows()
    assert [row["value"] for row in rows] == [ADA, {"id": None, "user": None}, None, None]
    assert [row["valueError"] for row in rows] == [
        None,
        "it has another type than the schema (field 'id')",
        "it ends too early",
        None,
    ]
    assert [row["valueBytes"] for row in rows] == [None, b"x,eve", b"short", None]
    [(found, partition, offset)] = kit.events.named("records_failed")
    assert found == BadRecordStats({BAD: 1, FailureReason.TRUNCATED: 1})
    assert (partition, offset) == (tp(0), 1)


def test_bad_records_are_dropped_and_counted(kit):
    produce(kit, b"1,ada", b"x,eve", b"2,bob")
    reader = Reader(kit, {"mode": "DROPMALFORMED"})
    assert pairs(reader.rows()) == [(0, ADA), (2, BOB)]
    [(found, *_)] = kit.events.named("records_failed")
    assert found == BadRecordStats({BAD: 1})


def test_bad_records_alone_leave_no_batch(kit):
    produce(kit, b"x,eve", b"short")
    assert Reader(kit, {"mode": "DROPMALFORMED"}).batches() == []


def test_the_letters_before_a_record_are_acknowledged_before_it(kit):
    """Spark ends a query with ``limit`` after any record."""
    produce(kit, b"x,eve", b"1,ada")
    reader = Reader(kit, {"deadLetterTopic": "bad", "mode": "DROPMALFORMED"})
    container = reader.container()
    schema = container.value_schemas().resolve()
    next(iter(container.typed_read(schema).read(OffsetRange(tp(0), 0, -1))))
    assert [name for name, *_ in reader.letters.mock_calls] == ["write", "flush"]


def test_bad_records_become_dead_letters(kit):
    given = {"keyFormat": "line", "keySchema": "k bigint", "deadLetterTopic": "bad"}
    reader = Reader(kit, given)
    for key, value in ((b"1", b"1,ada"), (b"x", b"x,eve"), (b"2", b"x,joe"), (b"3", b"2,bob")):
        produce(kit, value, key=key)
    reader.letters.flush.return_value = 2
    assert pairs(reader.rows()) == [(0, ADA), (3, BOB)]
    assert [name for name, *_ in reader.letters.mock_calls] == ["write", "write", "flush"]
    by_key, by_value = (call.args[0] for call in reader.letters.write.call_args_list)
    assert (by_key.column, by_value.column) == ("key", "value")
    assert by_key.decoder == by_value.decoder == "tests.line_values.LineDecoder"
    assert by_key.records.column("value").to_pylist() == [b"x,eve"]
    assert by_value.records.column("key").to_pylist() == [b"2"]
    assert {"topic", "partition", "timestamp", "headers"} <= {*by_key.records.schema.names}
    assert by_value.errors.to_pylist() == ["it has another type than the schema (field 'id')"]
    assert by_value.reasons.tolist() == [BAD]
    [(found, *_)] = kit.events.named("records_failed")
    assert found == BadRecordStats({BAD: 2}, dead_letters=2)


def test_a_batch_that_is_too_large_is_decoded_in_halves(kit):
    values = [b"%d,u" % number for number in range(3 * MAX_ROWS + 1)]
    produce(kit, *values)
    batches = Reader(kit, {}).batches()
    assert len(batches) > 3
    assert [row["value"]["id"] for batch in batches for row in batch.to_pylist()] == [
        *range(len(values))
    ]


def test_a_record_that_is_too_large_alone_fails_the_query(kit, monkeypatch):
    monkeypatch.setattr("tests.line_values.MAX_ROWS", 0)
    produce(kit, b"1,ada", b"2,bob")
    with pytest.raises(DecodedTooLargeError, match="decoded values of 1 records"):
        Reader(kit, {}).rows()


def test_the_text_of_corrupt_records(kit):
    """The struct has the text and is not null then; bytes that are no text are replaced."""
    produce(kit, b"1,ada", b"x,eve", b"short", None, b"\xff")
    reader = Reader(kit, {"mode": "PERMISSIVE"})
    [value] = reader.options.values
    values = (replace(value, format="json", corrupt_record_column="_bad"),)
    reader.options = replace(reader.options, values=values)
    rows = reader.rows()
    nothing = {"id": None, "user": None}
    assert [row["value"] for row in rows] == [
        ADA | {"_bad": None},
        nothing | {"_bad": "x,eve"},
        nothing | {"_bad": "short"},
        None,
        nothing | {"_bad": "\ufffd"},
    ]


REGISTRY = {"schema.registry.url": "http://127.0.0.1:1"}


def framed(schema_id: int, *values: bytes) -> list[bytes | None]:
    return [id_prefix(schema_id) + value for value in values]


def schema(text: str) -> Schema:
    return Schema(SchemaType.AVRO, text)


def test_values_are_read_as_the_subjects_latest_version(kit):
    reader = Reader(kit, REGISTRY | {"includeErrors": "true"})
    number = reader.registry.register("t-value", schema(SCHEMA))
    produce(kit, *framed(number, b"1,ada"), *framed(99, b"2,bob"), b"3,joe")
    rows = reader.rows()
    assert pairs(rows) == [(0, ADA), (1, None), (2, None)]
    assert [row["valueError"] for row in rows] == [
        None,
        "the schema registry has no schema with its id, schema id 99",
        "it has no schema id (check 'valueFraming' or 'keyFraming')",
    ]


def test_a_newer_schema_fails_the_query(kit):
    reader = Reader(kit, REGISTRY | {"onNewSchema": "fail", "valueSchemaVersion": "2"})
    registry = reader.registry
    older = registry.register("t-value", schema(f"{SCHEMA}, old int"))
    current = registry.register("t-value", schema(SCHEMA))
    other = registry.register("u-value", schema(f"{SCHEMA}, other int"))
    newer = registry.register("t-value", schema(f"{SCHEMA}, new int"))
    produce(kit, *framed(older, b"1,ada"), *framed(current, b"2,bob"), *framed(other, b"1,ada"))
    produce(kit, *framed(newer, b"4,eve"), *framed(current, b"2,bob"))
    found: list[pa.RecordBatch] = []
    with pytest.raises(NewSchemaError) as caught:
        reader.read_into(found)
    assert [batch.column("offset").to_pylist() for batch in found] == [[0, 1, 2]]
    assert (caught.value.partition, caught.value.offset) == (tp(0), 3)
    assert "has version 3 of the subject 't-value'" in str(caught.value)
    assert "restart the query with 'valueSchemaVersion' set to 3" in str(caught.value)


def test_a_newer_schema_is_read_as_the_querys(kit):
    reader = Reader(kit, REGISTRY | {"valueSchemaVersion": "1"})
    reader.registry.register("t-value", schema(SCHEMA))
    newer = reader.registry.register("t-value", schema(f"{SCHEMA}, new int"))
    produce(kit, *framed(newer, b"1,ada"))
    assert pairs(reader.rows()) == [(0, ADA)]


def test_a_new_schema_cannot_fail_a_query_that_has_its_own(kit):
    """There is no version to compare with."""
    given = REGISTRY | {"onNewSchema": "fail", "valueSchema": SCHEMA}
    with pytest.raises(OptionsError, match="onNewSchema 'fail' needs a schema of the registry"):
        Reader(kit, given).rows()
