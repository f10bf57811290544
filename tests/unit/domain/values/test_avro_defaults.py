import io
import json
import math
import struct
from typing import Any

import fastavro
import pytest

from pyspark_kafka.domain.values import avro_defaults
from pyspark_kafka.domain.values.avro_defaults import encode_default, encode_long
from pyspark_kafka.domain.values.avro_schema import parse_avro_schema

from .test_avro_schema import field, record


def encoded(type_: Any, default: Any) -> bytes:
    schema = parse_avro_schema(json.dumps(type_))
    return encode_default(schema, schema.type, default)


FIXED = {"type": "fixed", "name": "F", "size": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("type_", "default", "value"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("float", 1, 1.0),
        ("double", 0.1, 0.1),
        ("string", "ä€", "ä€"),
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        (FIXED, "\u0080a", b"\x80a"),
        (ENUM, "B", "B"),
        (["null", "string"], None, None),
        (["string", "null"], "x", "x"),
        (["int", "string"], "x", "x"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
        (
            record(field("a", "int"), field("b", "string", default="y")),
            {"a": 1},
            {"a": 1, "b": "y"},
        ),
    ],
)
def test_defaults_are_encoded_as_values(type_, default, value):
    assert fastavro.schemaless_reader(io.BytesIO(encoded(type_, default)), type_, None) == value


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("null", 0),
        ("boolean", 1),
        ("int", 2**31),
        ("int", True),
        ("int", 1.0),
        ("long", -(2**63) - 1),
        ("float", True),
        ("double", "1"),
        ("string", 1),
        ("bytes", "€"),
        ("string", "\ud800"),
        (FIXED, "abc"),
        (FIXED, 7),
        (ENUM, "C"),
        (["null", "string"], 1),
        ({"type": "array", "items": "int"}, {}),
        ({"type": "map", "values": "int"}, []),
        (record(field("a", "int")), {}),
        (record(field("a", "int")), None),
    ],
)
def test_defaults_that_are_not_valid_are_refused(type_, default):
    with pytest.raises(ValueError, match="default"):
        encoded(type_, default)


@pytest.mark.parametrize(("default", "value"), [(10**400, math.inf), (-(10**400), -math.inf)])
def test_numbers_that_are_too_large_are_infinite(default, value):
    """As in Java, a number beyond the type is infinite."""
    assert encoded("double", default) == struct.pack("<d", value)
    assert encoded("float", 1e39 * value) == struct.pack("<f", value)


@pytest.mark.parametrize("number", [0, -1, 63, -64, 64, 2**31, -(2**31), 2**63 - 1, -(2**63)])
def test_longs_are_zig_zag_varints(number):
    assert fastavro.schemaless_reader(io.BytesIO(encode_long(number)), "long", None) == number


def test_defaults_have_a_limit(monkeypatch):
    """The defaults of records multiply, and may contain themselves for ever."""
    with pytest.raises(ValueError, match="too large"):
        encoded(record(field("next", "R", default={})), {})
    monkeypatch.setattr(avro_defaults, "MAX_VALUES", 3)
    numbers = {"type": "array", "items": "int"}
    assert encoded(numbers, [1, 1])
    with pytest.raises(ValueError, match="too large"):
        encoded(numbers, [1, 1, 1])
