"""Schemas of writers that differ from the query's."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from pyspark_kafka.adapters.values.protobuf.decoder import ProtobufDecoder
from pyspark_kafka.adapters.values.protobuf.schemas import compiled_messages
from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.domain.values.errors import FailureReason as Reason
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.ports.values.value_format import Payloads, WriterSchema

from ..json.payloads import payloads_of
from .oracle import decoder_of, outcomes
from .schemas import registered
from .wire import number, sized

FIRST: Final = "message Order { int64 id = 1; string name = 2; Line line = 4; }"
NEXT: Final = "message Order { int64 id = 1; string title = 2; int32 added = 3; Line line = 4; }"
LINE: Final = "message Line { sint32 count = 1; repeated int32 codes = 2; }"


def schema(text: str, line: str = LINE) -> Schema:
    return registered(f'syntax = "proto3"; package shop; {text} {line}')


def decoder(text: str) -> ProtobufDecoder:
    message = compiled_messages(schema(text)).named("shop.Order")
    return decoder_of(message, message_type(message, ProtobufSettings()))


def written(values: Sequence[bytes], writers: Sequence[int], *schemas: WriterSchema) -> Payloads:
    plain = payloads_of(values)
    of_rows = np.array(writers, np.int32)
    return Payloads(plain.values, plain.starts, plain.ends, plain.reasons, of_rows, schemas)


def test_versions_in_one_batch():
    old, new = WriterSchema(1, schema(FIRST)), WriterSchema(2, schema(NEXT))
    value = number(1, 7) + sized(2, b"n") + sized(4, number(1, 3))
    batch = written([value, value + number(3, 9)] * 2, [0, 1, 0, 1], old, new)
    line = {"count": -2, "codes": []}
    assert outcomes(decoder(FIRST).decode(batch)) == [{"id": 7, "name": "n", "line": line}] * 4
    rows: list[Any] = [{"id": 7, "title": "n", "added": added, "line": line} for added in (None, 9)]
    assert outcomes(decoder(NEXT).decode(batch)) == rows * 2


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("message Order { sint64 id = 1; }", LINE, "id"),
        ("message Order { fixed64 id = 1; }", LINE, "id"),
        ("message Order { double id = 1; }", LINE, "id"),
        ("message Order { int64 id = 1; Line name = 2; int32 line = 4; }", LINE, "line"),
        (FIRST, "message Line { int32 count = 1; }", "line.count"),
        ("message Other { int64 id = 1; }", LINE, None),
        ("message Order {", LINE, None),
    ],
)
def test_schemas_that_cannot_be_read(text, line, field):
    writers = WriterSchema(1, schema(text, line)), WriterSchema(2, schema(FIRST))
    batch = written([number(1, 7), number(1, 8)], [0, 1], *writers)
    reader = decoder(FIRST)
    result = reader.decode(batch)
    assert outcomes(result) == [Reason.INCOMPATIBLE_SCHEMA, {"id": 8, "name": None, "line": None}]
    assert [reader.field_names[one] if one >= 0 else None for one in result.fields] == [field, None]


@pytest.mark.parametrize("wanted", ["repeated Line lines", "map<string, Line> lines"])
def test_fields_in_repeated_messages_that_cannot_be_read(wanted):
    text = f"message Order {{ {wanted} = 1; }}"
    reader = decoder(text)
    other = WriterSchema(
        1, schema(text, "message Line { sint32 count = 1; repeated float codes = 2; }")
    )
    result = reader.decode(written([b""], [0], other))
    inner = "value" if wanted.startswith("map") else "element"
    assert reader.field_names[result.fields[0]] == f"lines.{inner}.codes"


@pytest.mark.parametrize(
    "text",
    [
        "message Order { bool id = 1; bytes name = 2; bytes line = 4; }",
        "message Order { uint32 id = 1; repeated string name = 2; repeated Line line = 4; }",
        "message Order { int64 id = 1; double other = 9; }",
        "message Order { Kind id = 1; } enum Kind { A = 0; }",
    ],
)
def test_schemas_that_can_be_read(text):
    batch = written([number(1, 1)], [0], WriterSchema(1, schema(text)))
    rows = outcomes(decoder(FIRST).decode(batch))
    assert rows == [{"id": 1, "name": None, "line": None}]


def test_the_message_of_a_value_is_what_its_indexes_say():
    text = schema(f"message Other {{}} {FIRST}")
    writers = [WriterSchema(1, text, indexes) for indexes in ((1,), (0,), (9,), (1, 0))]
    batch = written([number(1, 7)] * 4, range(4), *writers)
    rows = outcomes(decoder(FIRST).decode(batch))
    assert rows[0] == {"id": 7, "name": None, "line": None}
    assert rows[1:] == [Reason.INCOMPATIBLE_SCHEMA, Reason.UNKNOWN_MESSAGE, Reason.UNKNOWN_MESSAGE]


def test_the_message_of_a_value_may_be_named():
    """Names are of outermost messages, without the package."""
    text = schema(f"message Other {{ message Inner {{}} }} {FIRST}")
    names = ["Order", "Other", "Inner", "Other.Inner", ""]
    writers = [WriterSchema(1, text, message_name=name) for name in names]
    batch = written([number(1, 7)] * 5, range(5), *writers)
    rows = outcomes(decoder(FIRST).decode(batch))
    assert rows[0] == {"id": 7, "name": None, "line": None}
    assert rows[1:] == [Reason.INCOMPATIBLE_SCHEMA, *[Reason.UNKNOWN_MESSAGE] * 3]


def test_schemas_of_other_languages():
    writer = WriterSchema(1, Schema(SchemaType.JSON, "{}"))
    rows = outcomes(decoder(FIRST).decode(written([b""], [0], writer)))
    assert rows == [Reason.INCOMPATIBLE_SCHEMA]


def test_reasons_that_values_have_already():
    writer = WriterSchema(1, schema("message Other {}"))
    batch = written([b"", b"", b""], [0, -1, -2], writer)
    batch.reasons[0], batch.reasons[2] = Reason.NO_FRAMING, Reason.UNKNOWN_SCHEMA
    rows = outcomes(decoder("message Order { int64 id = 1; }").decode(batch))
    assert rows == [Reason.NO_FRAMING, {"id": None}, Reason.UNKNOWN_SCHEMA]


def test_the_results_of_schemas_are_kept_and_forgotten_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr("pyspark_kafka.adapters.values.protobuf.writer_checks.MAX_WRITERS", 1)
    one = decoder(FIRST)
    writers = [WriterSchema(number, schema(FIRST)) for number in range(3)]
    for _ in range(2):
        rows = outcomes(one.decode(written([number(1, 1)] * 3, range(3), *writers)))
        assert rows == [{"id": 1, "name": None, "line": None}] * 3
