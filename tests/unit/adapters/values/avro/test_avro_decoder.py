import io
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.avro import decode_kernel
from pyspark_kafka.adapters.values.avro import decoder as decoder_module
from pyspark_kafka.adapters.values.avro.decoder import AvroDecoder
from pyspark_kafka.adapters.values.columns import column_set
from pyspark_kafka.adapters.values.columns.map_kernel import MAX_COMPARED
from pyspark_kafka.domain.values.avro_defaults import encode_long
from pyspark_kafka.domain.values.errors import DecodedTooLargeError
from pyspark_kafka.domain.values.registry import ImportedSchema, Schema, SchemaType
from pyspark_kafka.ports.values.value_format import DecodedValues, ValueDecoder, WriterSchema

from .corpus import (
    CASES,
    NODE,
    POINT,
    array,
    big_endian,
    decimal,
    enum,
    fixed,
    logical,
    map_,
    one,
    record,
)
from .decoding import decoder_of, payloads_of, plain, reasons_of, rows_of
from .strategies import evolved, expected, records, values_of


def text(value: str) -> bytes:
    return encode_long(len(value.encode())) + value.encode()


def decoded(schema: Any, *payloads: bytes | None, wanted: str | None = None) -> DecodedValues:
    found = decoder_of(schema, wanted).decode(payloads_of(payloads))
    found.column.validate(full=True)
    return found


MILLIS = one(logical("long", "timestamp-millis"))
PAIR = record(("a", "int"), ("b", ["null", "string"]))


@pytest.mark.parametrize(
    ("schema", "payload", "reason", "field"),
    [
        (PAIR, b"", "TRUNCATED", "a"),
        (PAIR, b"\x02", "TRUNCATED", "b"),
        (PAIR, b"\x02\x02\x04x", "TRUNCATED", "b"),
        (PAIR, b"\x02\x02\x01", "BAD_LENGTH", "b"),
        (PAIR, b"\x02\x04", "BAD_UNION", "b"),
        (PAIR, b"\x02\x01", "BAD_UNION", "b"),
        (PAIR, b"\x02\x02\x02\xc0", "BAD_UTF8", "b"),
        (PAIR, b"\x02\x00\x00", "TRAILING_BYTES", ""),
        (PAIR, b"\x80\x80\x80\x80\x80\x00\x00", "BAD_VARINT", "a"),
        (PAIR, b"\xff\xff\xff\xff\x1f\x00", "BAD_VARINT", "a"),
        (one("long"), b"\x80" * 10 + b"\x00", "BAD_VARINT", "a"),
        (one("long"), b"\xff" * 9 + b"\x02", "BAD_VARINT", "a"),
        (one("long"), b"\x80" * 3, "TRUNCATED", "a"),
        (one("boolean"), b"\x02", "MALFORMED", "a"),
        (one("boolean"), b"", "TRUNCATED", "a"),
        (one("float"), b"\0\0\0", "TRUNCATED", "a"),
        (one("double"), b"\0\0\0\0\0\0\0", "TRUNCATED", "a"),
        (one(fixed(2)), b"a", "TRUNCATED", "a"),
        (one("bytes"), b"\x03", "BAD_LENGTH", "a"),
        (one(enum("A")), b"\x02", "BAD_ENUM", "a"),
        (one(enum("A")), b"\x01", "BAD_ENUM", "a"),
        (one(enum("A")), b"", "TRUNCATED", "a"),
        (one(["int", "string"]), b"\x04", "BAD_UNION", "a"),
        (one(["int", "string"]), b"", "TRUNCATED", "a"),
        (one(["int", "string"]), b"\x02\x02\xff", "BAD_UTF8", "a.member1"),
        (one(array("int")), b"\x01", "TRUNCATED", "a"),
        (one(array("int")), b"\x08\x02\x00", "BAD_LENGTH", "a"),
        (one(array("int")), b"\x04\x02\x80\x80", "TRUNCATED", "a.element"),
        (one(array("int")), b"\xff" * 9 + b"\x01\x00", "BAD_LENGTH", "a"),
        (one(array("int")), b"\x01\x01\x00", "BAD_LENGTH", "a"),
        (one(array("double")), b"\x04" + b"\0" * 15, "BAD_LENGTH", "a"),
        (one(map_("int")), b"\x02\x02\xff\x02\x00", "BAD_UTF8", "a.key"),
        (one(map_("int")), b"\x04\x02k\x02\x02k\x02\x00", "MALFORMED", "a"),
        (one(array(record(name="Empty"))), encode_long(2**40) + b"\x00", "TOO_LARGE", "a"),
        (one(array(fixed(0))), encode_long(2**40) + b"\x00", "TOO_LARGE", "a"),
        (one(decimal(4)), b"\x00", "BAD_LENGTH", "a"),
        (one(decimal(4)), b"\x04\x27\x10", "OUT_OF_RANGE", "a"),
        (one(decimal(4)), b"\x04\x01", "TRUNCATED", "a"),
        (one(decimal(4)), b"\x80", "TRUNCATED", "a"),
        (MILLIS, b"\xfe" + b"\xff" * 8 + b"\x01", "OUT_OF_RANGE", "a"),
        (MILLIS, b"\x80", "TRUNCATED", "a"),
        (MILLIS, b"", "TRUNCATED", "a"),
    ],
)
def test_a_bad_value_has_a_reason_and_a_field(schema, payload, reason, field):
    decoder = decoder_of(schema)
    found = decoder.decode(payloads_of([payload]))
    assert reasons_of(found) == [reason]
    number = int(found.fields[0])
    assert (decoder.field_names[number] if number >= 0 else "") == field
    assert rows_of(found) == [None]


@pytest.mark.parametrize(
    ("skipped", "payload", "reason"),
    [
        ("string", b"\x04x", "TRUNCATED"),
        ("string", b"\x01", "BAD_LENGTH"),
        ("string", b"\x80", "TRUNCATED"),
        ("int", b"\x80", "TRUNCATED"),
        ("double", b"\0", "TRUNCATED"),
        (["null", "int"], b"\x04", "BAD_UNION"),
        (array("null"), encode_long(2**40) + b"\x00", "TOO_LARGE"),
        (array("int"), b"\x01\x40", "BAD_LENGTH"),
        (array("int"), b"\x01\x80", "TRUNCATED"),
    ],
)
def test_skipped_fields_are_checked_as_far_as_they_are_read(skipped, payload, reason):
    decoder = decoder_of(record(("s", skipped), ("a", "int")), "a int")
    found = decoder.decode(payloads_of([payload]))
    assert reasons_of(found) == [reason]
    assert decoder.field_names[found.fields[0]] == "s"


def test_a_bad_value_does_not_affect_its_neighbours():
    for case in CASES:
        schema, payloads = case.writer, case.payloads()
        decoder = decoder_of(schema, settings=case.settings)
        alone = [decoder.decode(payloads_of([payload])) for payload in payloads]
        together = decoder.decode(payloads_of(payloads))
        together.column.validate(full=True)
        columns = pa.concat_arrays([each.column for each in alone])
        assert list(map(plain, together.column)) == list(map(plain, columns))
        assert together.reasons.tolist() == [each.reasons[0] for each in alone]
        assert together.fields.tolist() == [each.fields[0] for each in alone]


def test_a_null_is_a_value_where_the_schema_admits_it():
    """A nullable record may be null. Spark fails for every value of such a schema."""
    found = decoded(["null", POINT], b"\x00", b"\x02\x02\x04")
    assert rows_of(found) == [None, {"x": 1, "y": 2}]
    assert reasons_of(found) == ["NONE", "NONE"]


def writer(schema_id: int, schema: Any) -> WriterSchema:
    return WriterSchema(schema_id, Schema(SchemaType.AVRO, json.dumps(schema)))


def decoded_with(
    decoder: ValueDecoder, schemas: Sequence[WriterSchema], *values: tuple[int, bytes]
) -> DecodedValues:
    numbers, payloads = zip(*values, strict=True)
    return decoder.decode(payloads_of(payloads, numbers, tuple(schemas)))


def test_each_value_is_read_with_its_writers_schema(caplog):
    """Writers may alternate; a schema that cannot be read is a failure of its values alone."""
    new = record(("b", ["null", "string"]), ("a", "int"))
    schemas = [writer(7, one("int")), writer(8, new), writer(9, one("string"))]
    broken = WriterSchema(10, Schema(SchemaType.AVRO, "{"))
    reader = decoder_of(record(("a", "long"), ("b", ["null", "string"], None)))
    values = [(0, b"\x02"), (1, b"\x02\x02x\x04"), (0, b"\x06"), (2, b"\x02y"), (3, b"\x02")]
    values.append((-1, b"\x0a\x00"))
    with caplog.at_level(logging.WARNING):
        found = decoded_with(reader, [*schemas, broken], *values)
    rows = [{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 3, "b": None}, None, None]
    assert rows_of(found) == [*rows, {"a": 5, "b": None}]
    incompatible = ["INCOMPATIBLE_SCHEMA"] * 2
    assert reasons_of(found) == ["NONE", "NONE", "NONE", *incompatible, "NONE"]
    assert reader.field_names[found.fields[3]] == "a"
    messages = [entry.getMessage() for entry in caplog.records]
    assert messages[0] == (
        "Cannot read all values of schema 9: field 'a': string cannot be read as long"
    )
    assert messages[1].startswith("Cannot read values of schema 10: ")


def test_a_warning_names_some_fields(caplog):
    reader = record(*((f"f{number}", "int") for number in range(9)))
    with caplog.at_level(logging.WARNING):
        decoded_with(decoder_of(reader), [writer(7, record())], (0, b""))
    (entry,) = caplog.records
    missing = "the value's schema has no such field, and it has no default"
    fields = "; ".join(f"field 'f{number}': {missing}" for number in range(3))
    assert entry.getMessage() == f"Cannot read all values of schema 7: {fields}; and 6 more"


def test_a_schema_is_compiled_once(monkeypatch):
    schema = Schema(
        SchemaType.AVRO, json.dumps(one("F")), imports=(ImportedSchema("f", json.dumps(fixed(1))),)
    )
    reader = decoder_of(one(fixed(1)))
    first = decoded_with(reader, [WriterSchema("g", schema)], (0, b"x"))
    monkeypatch.delattr("pyspark_kafka.adapters.values.avro.decoder.parse_schema")
    second = decoded_with(reader, [WriterSchema("g", schema)], (0, b"x"))
    assert rows_of(first) == rows_of(second) == [{"a": b"x"}]


def test_columns_grow():
    """Long texts, long lists and large maps need more room than a batch begins with."""
    schema = record(("s", "string"), ("l", array(POINT)), ("m", map_("string")))
    points = b"".join(encode_long(2 * n) + encode_long(n) for n in range(3000))
    entries = b"".join(text(f"key{n}") + text("v" * 9) for n in range(3000))
    small = text("x") + b"\x00\x00"
    large = (
        text("y" * 100_000)
        + encode_long(3000)
        + points
        + b"\x00"
        + encode_long(3000)
        + entries
        + b"\x00"
    )
    found = decoded(schema, small, large, small)
    rows = rows_of(found)
    assert rows[0] == rows[2] == {"s": "x", "l": [], "m": []}
    assert rows[1]["s"] == "y" * 100_000
    assert rows[1]["l"] == [{"x": 2 * n, "y": n} for n in range(3000)]
    assert rows[1]["m"] == [(f"key{n}", "v" * 9) for n in range(3000)]


@pytest.mark.parametrize("entries", [2, MAX_COMPARED, MAX_COMPARED + 1, 1000])
@pytest.mark.parametrize("twin", [0, 1])
def test_a_map_has_each_key_once(entries, twin):
    keys = [f"k{n}" for n in range(entries)]
    unequal = b"".join(text(key) + b"\x02" for key in keys)
    doubled = b"".join(text(key) + b"\x02" for key in [*keys[:-1], keys[-1 - twin]])
    inner = encode_long(entries) + unequal + b"\x00"
    good = b"\x04" + text("a") + inner + text("b") + inner + b"\x00"
    bad = b"\x02" + text("a") + encode_long(entries) + (doubled if twin else unequal) + b"\x00\x00"
    found = decoded(one(map_(map_("int"))), good, bad, good)
    assert reasons_of(found) == ["NONE", "MALFORMED" if twin else "NONE", "NONE"]
    assert len(rows_of(found)[2]["a"][1][1]) == entries


def test_long_keys_that_differ_at_the_end_are_two():
    keys = ["x" * 40 + suffix for suffix in "abcdefghijklmn"]
    payload = encode_long(len(keys)) + b"".join(text(key) + b"\x02" for key in keys) + b"\x00"
    assert reasons_of(decoded(one(map_("int")), payload)) == ["NONE"]


def test_elements_without_bytes_are_limited_for_each_value():
    schema = one(array(array(record(name="Empty"))))
    limit = decode_kernel.MAX_EMPTY_ELEMENTS
    below = b"\x04" + (encode_long(limit // 2) + b"\x00") * 2 + b"\x00"
    above = b"\x06" + (encode_long(limit // 2) + b"\x00") * 3 + b"\x00"
    found = decoded(schema, below, above, below)
    assert reasons_of(found) == ["NONE", "TOO_LARGE", "NONE"]
    assert [len(inner) for inner in rows_of(found)[0]["a"]] == [limit // 2] * 2


def test_defaults_are_limited_for_each_value():
    grown = record(("x", "int"), ("d", "string", "z" * 10_000), name="Point")
    reader = {"avroSchema": json.dumps(one(array(grown)))}
    decoder = decoder_of(one(array(record(("x", "int"), name="Point"))), settings=reader)
    below, above = (encode_long(n) + b"\x02" * n + b"\x00" for n in (10, 2000))
    found = decoder.decode(payloads_of([below, above, below]))
    assert reasons_of(found) == ["NONE", "TOO_LARGE", "NONE"]
    assert rows_of(found)[2]["a"][9] == {"x": 1, "d": "z" * 10_000}


def test_skipped_records_in_themselves_are_limited():
    schema = record(("n", NODE), ("a", "int"))
    decoder = decoder_of(schema, "a int")
    depth = decode_kernel.STACK_WORDS - 1
    below, above = (b"\x02\x02" * n + b"\x02\x00\x0a" for n in (depth, depth + 1))
    found = decoder.decode(payloads_of([below, above, below]))
    assert reasons_of(found) == ["NONE", "TOO_DEEP", "NONE"]
    assert rows_of(found)[0] == {"a": 5}


@pytest.mark.parametrize("nested", [array("Tree"), map_("Tree")])
def test_skipped_trees_are_limited(nested):
    schema = record(("n", record(("t", nested), name="Tree")), ("a", "int"))
    key = b"" if nested == array("Tree") else b"\x00"
    found = decoded(schema, (b"\x02" + key) * 5000, wanted="a int")
    assert reasons_of(found) == ["TOO_DEEP"]


def test_defaults_in_deep_arrays_are_read():
    deep: Any = record(("x", "int"), name="Deep")
    grown: Any = record(("x", "int"), ("d", "int", 1), name="Deep")
    for _ in range(40):
        deep, grown = array(deep), array(grown)
    decoder = decoder_of(one(deep), settings={"avroSchema": json.dumps(one(grown))})
    found = decoder.decode(payloads_of([b"\x02" * 40 + b"\x04" + b"\x00" * 40]))
    assert reasons_of(found) == ["NONE"]
    assert str(rows_of(found)[0]).count("{'x': 2, 'd': 1}") == 1


def test_records_that_use_each_other_are_skipped():
    """A chain of a thousand records is not deeper than the stack of Python."""
    links = (record(("a", f"S{number}"), name=f"S{number + 1}") for number in range(999))
    chain = [record(("a", "int"), name="S0"), *links]
    fields = [(f"f{number}", one) for number, one in enumerate(chain)]
    schema = record(("l", array(record(*fields, name="Chain"))), ("a", "int"))
    found = decoded(schema, b"\x02" + b"\x04" * 1000 + b"\x00\x06", wanted="a int")
    assert rows_of(found) == [{"a": 3}]


def test_programs_of_many_writers(monkeypatch):
    monkeypatch.setattr(decoder_module, "_MAX_PROGRAMS", 3)
    decoder = decoder_of(one("int"))
    compiled: list[int | str] = []
    compile_ = AvroDecoder._compile

    def counted(self: AvroDecoder, writer: Any, schema_id: int | str) -> Any:
        compiled.append(schema_id)
        return compile_(self, writer, schema_id)

    monkeypatch.setattr(AvroDecoder, "_compile", counted)
    schema = Schema(SchemaType.AVRO, json.dumps(one("int")))
    payloads = payloads_of([encode_long(7), encode_long(8)])
    for first in (0, 2, 0, 0):
        writers = tuple(WriterSchema(first + number, schema) for number in range(2))
        numbers = np.array([0, 1], np.int32)
        found = decoder.decode(replace(payloads, writers=numbers, schemas=writers))
        assert rows_of(found) == [{"a": 7}, {"a": 8}]
    assert compiled == [0, 1, 2, 3, 0, 1]


def test_a_value_that_arrow_cannot_address_is_too_large(monkeypatch):
    monkeypatch.setattr(column_set, "MAX_SIZE", 5000)
    small, large = text("x"), text("y" * 6000)
    decoder = decoder_of(one("string"))
    with pytest.raises(DecodedTooLargeError):
        decoder.decode(payloads_of([small, large]))
    found = decoder.decode(payloads_of([large, small]))
    assert reasons_of(found) == ["TOO_LARGE", "NONE"]
    assert rows_of(found) == [None, {"a": "x"}]


@pytest.mark.parametrize(
    ("number", "size", "fits"),
    [
        (10**38 - 1, 16, True),
        (1 - 10**38, 16, True),
        (10**38, 16, False),
        (-(10**38), 16, False),
        (-(((10**38 >> 64) + 1) << 64), 16, False),
        (-(1 << 64), 9, True),
        (7, 30, True),
        (-7, 30, True),
        (2**130 + 7, 17, False),
        (-(2**130) + 7, 17, False),
        (2**127, 17, False),
    ],
)
def test_decimals_have_at_most_their_digits(number, size, fits):
    found = decoded(one(decimal(38)), encode_long(size) + big_endian(number, size))
    assert reasons_of(found) == ["NONE" if fits else "OUT_OF_RANGE"]
    assert rows_of(found) == ([{"a": Decimal(number)}] if fits else [None])


@pytest.mark.parametrize("number", [0, 1, -1, 10**18, -(10**18), 10**19 - 1, 1 - 10**19])
@pytest.mark.parametrize("scale", [2, 3, 19, 21])
def test_columns_of_decimals_may_have_more_scale(number, scale):
    payload = encode_long(9) + big_endian(number, 9)
    found = decoded(one(decimal(19, 2)), payload, wanted=f"a decimal({17 + scale},{scale})")
    assert reasons_of(found) == ["NONE"]
    assert rows_of(found) == [{"a": Decimal(number).scaleb(-2)}]


def test_dates_can_be_read_as_timestamps_without_a_zone():
    days = encode_long(-3), encode_long(2**31 - 1)
    found = decoded(one(logical("int", "date")), *days, wanted="a timestamp_ntz")
    assert plain(found.column[0]) == {"a": -3 * 86_400_000_000}
    assert reasons_of(found) == ["NONE", "OUT_OF_RANGE"]


@pytest.mark.parametrize("sign", [1, -1])
def test_milliseconds_have_the_range_of_microseconds(sign):
    limit = (2**63 - 1) // 1000
    values = (encode_long(sign * limit), encode_long(sign * (limit + 1)))
    found = decoded(MILLIS, *values)
    assert plain(found.column[0]) == {"a": sign * limit * 1000}
    assert reasons_of(found) == ["NONE", "OUT_OF_RANGE"]


def test_milliseconds_become_microseconds_and_dates_are_days_of_whole_milliseconds():
    millis = logical("long", "timestamp-millis")
    payload = b"\x01"
    found = decoded(one(millis), payload, wanted="a date")
    assert plain(found.column[0]) == {"a": 0}
    days = decoded(one("long"), encode_long(86_400_000 * 3), b"\xff" * 9 + b"\x01", wanted="a date")
    assert plain(days.column[0]) == {"a": 3}
    assert reasons_of(days) == ["NONE", "OUT_OF_RANGE"]
    double = decoded(one("int"), b"\x05", wanted="a double")
    assert rows_of(double) == [{"a": -3.0}]
    nanos = decoded(one(logical("long", "timestamp-nanos")), b"\x06")
    assert rows_of(nanos) == [{"a": 3}]
    settings = {"avroSchema": json.dumps(one("float"))}
    floated = decoder_of(one("long"), "a double", settings).decode(
        payloads_of([encode_long(16777217)])
    )
    assert rows_of(floated) == [{"a": 16777216.0}]


_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def written(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


@settings(max_examples=80, deadline=None, suppress_health_check=_SLOW)
@given(st.data())
def test_values_that_fastavro_writes_are_read(data):
    schema = data.draw(records())
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=5))
    decoded = decoder_of(schema).decode(payloads_of([written(schema, one) for one in values]))
    decoded.column.validate(full=True)
    assert set(reasons_of(decoded)) == {"NONE"}
    assert [plain(one) for one in decoded.column] == [expected(one, schema) for one in values]


@settings(max_examples=120, deadline=None, suppress_health_check=_SLOW)
@given(st.data())
def test_values_are_read_with_another_schema_as_fastavro_reads_them(data):
    writer = data.draw(records())
    reader = data.draw(evolved(writer))
    values = data.draw(st.lists(values_of(writer), min_size=1, max_size=3))
    payloads = [written(writer, one) for one in values]
    read = [fastavro.schemaless_reader(io.BytesIO(payload), writer, reader) for payload in payloads]
    decoder = decoder_of(writer, settings={"avroSchema": json.dumps(reader)})
    decoded = decoder.decode(payloads_of(payloads))
    decoded.column.validate(full=True)
    assert set(reasons_of(decoded)) == {"NONE"}
    assert [plain(one) for one in decoded.column] == [expected(one, reader) for one in read]
