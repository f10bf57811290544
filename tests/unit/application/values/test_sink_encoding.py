from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.framing import wire_format
from pyspark_kafka.application.values import sink_encoding
from pyspark_kafka.application.values.sink_encoding import SinkEncoding
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import StructField, StructType
from pyspark_kafka.domain.values.errors import (
    IncompatibleSchemaError,
    UnencodableValueError,
    UnknownSchemaError,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.record_schema import HEADERS
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry
from pyspark_kafka.ports.values.value_format import ValueEncoder, ValueFormat

TYPE = StructType((StructField("x", types.LONG),))
OTHER = StructType((StructField("y", types.LONG),))
REGISTRY = {"schema.registry.url": "http://localhost:1"}


class Numbers(ValueEncoder):
    """Encodes the first field as a text; a negative one does not fit."""

    def __init__(self, schema: str) -> None:
        self._schema = Schema(SchemaType.AVRO, schema)

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def record_name(self) -> str:
        return "shop.Number"

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        rows: Any = column.to_pylist()
        for number, row in enumerate(rows):
            if row is not None and row["x"] < 0:
                raise UnencodableValueError("value", number, "x", "is negative")
        return pa.array(
            [None if row is None else prefix + str(row["x"]).encode() for row in rows], pa.binary()
        )


def number_encoder(
    options: ValueOptions, schema: Schema | None, data_type: StructType
) -> ValueEncoder:
    if schema is not None and str(data_type) != schema.text:
        raise OptionsError([f"{data_type} is not {schema.text}"])
    return Numbers(options.schema or str(data_type))


def message_encoder(
    options: ValueOptions, schema: Schema | None, data_type: StructType
) -> ValueEncoder:
    if schema is None:
        raise OptionsError(["a schema is needed"])
    return number_encoder(options, schema, data_type)


def no_decoder(*_: object) -> Any:
    pytest.fail("nothing is decoded")


NUMBERS = ValueFormat(no_decoder, no_decoder, number_encoder)
MESSAGES = ValueFormat(no_decoder, no_decoder, message_encoder)
READ_ONLY = ValueFormat(no_decoder, no_decoder)


class Subjects(SchemaRegistry):
    """A registry in memory, which counts registrations and takes no second schema."""

    guid: str | None = None

    def __init__(self, **subjects: str) -> None:
        self.subjects = {name.replace("_", "-"): [text] for name, text in subjects.items()}
        self.registrations: list[str] = []

    @property
    def url(self) -> str:
        return "memory"

    def by_id(self, schema_id: int, subject: str | None = None) -> Schema:
        raise AssertionError(schema_id, subject)

    def by_guid(self, guid: str, subject: str | None = None) -> Schema:
        raise AssertionError(guid, subject)

    def version(
        self, subject: str, version: int | None = None, *, deleted: bool = False
    ) -> SubjectVersion:
        assert not deleted
        texts = self.subjects.get(subject)
        if texts is None:
            raise UnknownSchemaError(self.url, f"subject {subject}")
        number = version or len(texts)
        schema = Schema(SchemaType.AVRO, texts[number - 1])
        return SubjectVersion(subject, number, self._id(subject), schema, self.guid)

    def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
        if self.subjects.get(subject) != [schema.text]:
            raise UnknownSchemaError(self.url, f"schema of {subject}")
        return SubjectVersion(subject, 1, self._id(subject), schema, self.guid)

    def register(self, subject: str, schema: Schema) -> int:
        self.registrations.append(subject)
        if self.subjects.setdefault(subject, [schema.text]) != [schema.text]:
            raise IncompatibleSchemaError(f"The schema of {subject}", "it differs")
        return self._id(subject)

    def close(self) -> None:
        pass

    def _id(self, subject: str) -> int:
        return 1 + list(self.subjects).index(subject)


def sink(**given: str) -> SinkOptions:
    needed = {"kafka.bootstrap.servers": "memory", "client": "memory", "valueFormat": "avro"}
    named = {name.replace("_", "."): value for name, value in given.items()}
    return parse_sink_options({**needed, **named}, QueryKind.BATCH, UNRESTRICTED)


def encoding(options: SinkOptions, registry: SchemaRegistry | None = None) -> SinkEncoding:
    def opened() -> SchemaRegistry:
        assert registry is not None
        return registry

    formats = {"avro": NUMBERS, "message": MESSAGES, "ro": READ_ONLY}.__getitem__
    return SinkEncoding(options, formats, opened, wire_format, lambda path: f"in {path}".encode())


def batch_of(rows: list[int | None], **columns: Any) -> pa.RecordBatch:
    structs = [None if row is None else {"x": row} for row in rows]
    value = pa.array(structs, pa.struct([("x", pa.int64())]))
    return pa.RecordBatch.from_pydict({"value": value, **columns})


def framed(schema_id: int, text: str) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + text.encode()


def test_a_struct_becomes_a_binary():
    doing = encoding(sink(topic="t"))
    batch = doing.encode(batch_of([1, None, 3], key=pa.array(["a", "b", "c"])))
    assert batch.to_pydict() == {"value": [b"1", None, b"3"], "key": ["a", "b", "c"]}


def test_the_driver_registers_the_schema_of_a_topic():
    registry, options = Subjects(), sink(topic="t", **REGISTRY)
    [column] = encoding(options, registry).prepare({"value": TYPE}).encoded
    assert (column.schema_id, column.schema, registry.registrations) == (1, None, ["t-value"])
    assert registry.subjects == {"t-value": [str(TYPE)]}


def test_tasks_take_what_the_driver_has_registered():
    registry, options = Subjects(), sink(topic="t", **REGISTRY)
    task = encoding(encoding(options, registry).prepare({"value": TYPE}))
    assert task.encode(batch_of([7, None]))["value"].to_pylist() == [framed(1, "7"), None]


def test_a_task_without_a_driver_registers_once():
    registry = Subjects(other="x")
    task = encoding(sink(topic="t", **REGISTRY), registry)
    for _ in range(2):
        assert task.encode(batch_of([7]))["value"].to_pylist() == [framed(2, "7")]
    assert registry.registrations == ["t-value"]


def test_rows_have_the_schemas_of_their_topics():
    registry, options = Subjects(), sink(**REGISTRY)
    task = encoding(options, registry)
    assert task.prepare({"value": TYPE}).encoded[0].schema_id is None
    assert registry.registrations == []
    topics = pa.array(["b", "a", "b", None, "a"])
    batch = task.encode(batch_of([1, 2, None, 4, 5], topic=topics))
    assert batch["value"].to_pylist() == [
        framed(1, "1"),
        framed(2, "2"),
        None,
        None,
        framed(2, "5"),
    ]
    assert registry.registrations == ["b-value", "a-value"]
    one_topic = task.encode(batch_of([1, 2], topic=pa.array(["a", "a"])))
    assert one_topic["value"].to_pylist() == [framed(2, "1"), framed(2, "2")]
    assert len(registry.registrations) == 2
    no_topic = task.encode(batch_of([1], topic=pa.array([None], pa.string())))
    assert no_topic["value"].to_pylist() == [None]


def test_the_oldest_encoders_are_forgotten(monkeypatch):
    monkeypatch.setattr(sink_encoding, "MAX_ENCODERS", 2)
    registry = Subjects()
    task = encoding(sink(**REGISTRY), registry)
    for topic in ("a", "b", "a", "c", "b", "a"):
        [value] = task.encode(batch_of([1], topic=pa.array([topic])))["value"].to_pylist()
        assert value == framed(1 + "abc".index(topic), "1")
    assert registry.registrations == ["a-value", "b-value", "c-value", "a-value"]


def test_an_error_names_the_row_of_the_batch():
    task = encoding(sink(**REGISTRY), Subjects())
    topics = pa.array(["b", "a", "b", "a"])
    with pytest.raises(UnencodableValueError, match=r"row 3 of a batch .* field 'x' is negative"):
        task.encode(batch_of([1, 2, 3, -4], topic=topics))


def test_ids_may_be_in_headers():
    options = sink(topic="t", valueFraming="confluent-header", **REGISTRY)
    headers = pa.array(
        [None, [{"key": "a", "value": b"1"}], [], [{"key": "b", "value": None}]], HEADERS
    )
    batch = encoding(options, Subjects()).encode(batch_of([1, 2, None, 4], headers=headers))
    assert batch["value"].to_pylist() == [b"1", b"2", None, b"4"]
    own = {"key": "__value_schema_id", "value": framed(1, "")}
    assert batch["headers"].to_pylist() == [
        [own],
        [{"key": "a", "value": b"1"}, own],
        [],
        [{"key": "b", "value": None}, own],
    ]
    assert batch.schema.field("headers").type == HEADERS


@pytest.mark.parametrize(
    "given", [{}, {"useLatestVersion": "true"}, {"autoRegisterSchemas": "false"}]
)
@pytest.mark.parametrize("framing", ["confluent-header", "confluent"])
def test_guids_are_in_headers(framing, given):
    registry = Subjects(t_value=str(TYPE))
    registry.guid = "89791762-2336-4186-9674-299b90a802e2"
    options = sink(topic="t", valueFraming=framing, **REGISTRY, **given)
    driver = encoding(options, registry)
    batch = encoding(driver.prepare({"value": TYPE})).encode(batch_of([1]))
    if framing == "confluent":
        assert batch["value"].to_pylist() == [framed(1, "1")]
        return
    guid = bytes.fromhex("8979176223364186 9674299b90a802e2")
    assert batch["value"].to_pylist() == [b"1"]
    assert batch["headers"].to_pylist() == [[{"key": "__value_schema_id", "value": b"\1" + guid}]]


def test_an_id_is_in_the_header_before_the_registry_finds_the_schema():
    """Where a replica does not have a new schema yet, its id is written."""

    class Late(Subjects):
        def look_up(self, subject: str, schema: Schema) -> SubjectVersion:
            raise UnknownSchemaError(self.url, f"schema of {subject} {schema}")

    options = sink(topic="t", valueFraming="confluent-header", **REGISTRY)
    batch = encoding(options, Late()).encode(batch_of([1]))
    header = {"key": "__value_schema_id", "value": framed(1, "")}
    assert batch["headers"].to_pylist() == [[header]]


def test_headers_are_added_where_there_are_none():
    options = sink(valueFraming="confluent-header", **REGISTRY)
    topics = pa.array(["b", "a"])
    batch = encoding(options, Subjects()).encode(batch_of([1, 2], topic=topics))
    assert batch["headers"].to_pylist() == [
        [{"key": "__value_schema_id", "value": framed(1, "")}],
        [{"key": "__value_schema_id", "value": framed(2, "")}],
    ]


def test_the_latest_version_is_used():
    registry = Subjects(t_value=str(TYPE))
    options = sink(topic="t", useLatestVersion="true", **REGISTRY)
    [column] = encoding(options, registry).prepare({"value": TYPE}).encoded
    assert column.schema == Schema(SchemaType.AVRO, str(TYPE))
    assert registry.registrations == []
    with pytest.raises(OptionsError, match="struct<y:bigint> is not struct<x:bigint>"):
        encoding(options, registry).prepare({"value": OTHER})


def test_a_version_can_be_named():
    registry = Subjects(t_value=str(TYPE))
    registry.subjects["t-value"].append("newer")
    options = sink(topic="t", valueSchemaVersion="1", **REGISTRY)
    [column] = encoding(options, registry).prepare({"value": TYPE}).encoded
    assert column.schema == Schema(SchemaType.AVRO, str(TYPE))


@pytest.mark.parametrize("version", [{"useLatestVersion": "true"}, {"valueSchemaVersion": "1"}])
@pytest.mark.parametrize("topic", [{"topic": "t"}, {}], ids=["one topic", "topics of rows"])
def test_a_format_may_need_the_schema_of_the_registry(version, topic):
    """As Protobuf does, whose schemas cannot be derived from rows."""
    given = sink(**{**version, **topic, **REGISTRY, "valueFormat": "message"})
    registry = Subjects(t_value=str(TYPE))
    prepared = encoding(given, registry).prepare({"value": TYPE})
    encoded = encoding(prepared, registry).encode(batch_of([7], topic=pa.array(["t"])))
    assert encoded["value"].to_pylist() == [framed(1, "7")]
    assert registry.registrations == []


def test_nothing_is_registered_if_the_options_say_so():
    options = sink(topic="t", autoRegisterSchemas="false", **REGISTRY)
    registry = Subjects(t_value=str(TYPE))
    [column] = encoding(options, registry).prepare({"value": TYPE}).encoded
    assert (column.schema_id, registry.registrations) == (1, [])
    with pytest.raises(UnknownSchemaError):
        encoding(options, Subjects()).prepare({"value": TYPE})


def test_a_refused_schema_is_an_error_of_the_driver():
    options = sink(topic="t", **REGISTRY)
    with pytest.raises(IncompatibleSchemaError):
        encoding(options, Subjects(t_value="other")).prepare({"value": TYPE})


def test_subjects_may_be_named_by_records():
    registry = Subjects()
    encoding(sink(subjectNameStrategy="RecordNameStrategy", **REGISTRY), registry).prepare(
        {"value": TYPE}
    )
    assert registry.registrations == ["shop.Number"]


def test_a_format_without_encoder_is_refused():
    options = sink(topic="t", valueFormat="ro")
    with pytest.raises(OptionsError, match="The format 'ro' cannot be written"):
        encoding(options).prepare({"value": TYPE})


def test_columns_that_rows_do_not_have_are_left_out():
    doing = encoding(sink(topic="t", keyFormat="avro"))
    assert [column.options.column for column in doing.prepare({"value": TYPE}).encoded] == ["value"]
    assert doing.encode(batch_of([1])).to_pydict() == {"value": [b"1"]}


def test_the_driver_reads_the_files_of_schemas():
    doing = encoding(sink(topic="t", valueSchema="/s/order.avsc"))
    [value] = doing.prepare({}).values
    assert (value.schema, value.schema_file) == ("in /s/order.avsc", None)


def test_micro_batches_share_what_is_registered():
    registry = Subjects()
    doing = encoding(sink(topic="t", **REGISTRY), registry)
    assert doing.prepare({"value": TYPE}) is doing.prepare({"value": TYPE})
    assert registry.registrations == ["t-value"]
