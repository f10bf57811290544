import json
import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import StructField, StructType, parse_struct
from pyspark_kafka.domain.values.registry import SchemaType
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type
from verification.fuzz.guarded import guarded_copy

INNER = parse_struct("x int, y string")
NESTED = parse_struct(
    "id bigint, name string, ratio double, is_new boolean, inner struct<x int, y string>, "
    "`all` array<struct<x int, y string>>, by_name map<string, array<smallint>>"
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
INNERS = st.fixed_dictionaries({"x": st.integers(-(2**31), 2**31 - 1), "y": TEXT})
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "name": TEXT,
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "is_new": st.booleans(),
        "inner": INNERS,
        "all": st.lists(INNERS | st.none(), max_size=3),
        "by_name": st.dictionaries(
            TEXT, st.lists(st.integers(-(2**15), 2**15 - 1) | st.none(), max_size=3), max_size=3
        ),
    }
)


def encoder_of(data_type: StructType, **settings: str) -> JsonEncoder:
    named = tuple((name.lower(), value) for name, value in settings.items())
    return JsonEncoder(ValueOptions("value", "json", settings=named), data_type)


def one_column(data_type: types.DataType, **settings: str) -> JsonEncoder:
    return encoder_of(StructType((StructField("x", data_type),)), **settings)


def texts_of(encoded: Any) -> list[str]:
    """Return what stands behind ``{"x":`` in each value."""
    return [value.decode()[5:-1] for value in encoded.to_pylist()]


def test_rows_are_objects():
    rows = [{"id": 7, "name": 'a "b"', "ratio": 1.0, "is_new": True, "inner": {"y": "z"}}]
    encoded = encoder_of(NESTED).encode(pa.array(rows, arrow_type(NESTED)))
    expected = rb'{"id":7,"name":"a \"b\"","ratio":1.0,"is_new":true,"inner":{"y":"z"}}'
    assert encoded.to_pylist() == [expected]


@given(st.lists(ROWS, max_size=5))
def test_a_json_parser_reads_the_same_rows(rows):
    given_rows = [*rows, None]
    array = pa.array(
        [row and {**row, "by_name": list(row["by_name"].items())} for row in given_rows],
        arrow_type(NESTED),
    )
    encoded = encoder_of(NESTED).encode(array).to_pylist()
    assert [value and json.loads(value) for value in encoded] == given_rows


def assert_fewest_digits(number: Any, kind: Any, data_type: types.DataType, least: float) -> None:
    """Python finds the same digits; Java has at least two, which matters near zero."""
    array = pa.StructArray.from_arrays([pa.array([number], kind)], names=["x"])
    (text,) = texts_of(one_column(data_type).encode(array))
    if not math.isfinite(number):
        assert text in {'"NaN"', '"Infinity"', '"-Infinity"'}
    elif abs(float(number)) <= least:
        assert type(number)(text) == number
    else:
        assert Decimal(text) == Decimal(str(number))


@given(st.integers(0, 2**64 - 1))
@example(1)
@example(2)
@example(20)
@example(0x0010000000000000)
@example(0x7FEFFFFFFFFFFFFF)
def test_a_double_has_the_fewest_digits(bits):
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    assert_fewest_digits(number, pa.float64(), types.DOUBLE, 1e-322)


@given(st.integers(0, 2**32 - 1))
@example(1)
@example(71)
@example(0x00800000)
@example(0x7F7FFFFF)
def test_a_float_has_the_fewest_digits(bits):
    number = np.uint32(bits).view(np.float32)
    assert_fewest_digits(number, pa.float32(), types.FLOAT, 1e-43)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_a_decimal_keeps_its_digits(unscaled, scale):
    """Python writes decimals as Java's ``BigDecimal`` does."""
    digits = tuple(map(int, str(abs(unscaled))))
    number = Decimal((unscaled < 0, digits, -scale))
    array = pa.array([{"x": number}], pa.struct([("x", pa.decimal128(38, scale))]))
    assert texts_of(one_column(types.DecimalType(38, scale)).encode(array)) == [str(number)]


@pytest.mark.parametrize("is_ascii", [False, True])
def test_characters_are_escaped_at_every_place_of_a_text(*, is_ascii):
    letters = "abcdefghijklmnopqrst"
    texts = [
        letters[:place] + special + letters[place:size]
        for size in range(len(letters))
        for place in range(size + 1)
        for special in ("", '"', "\\", "\n", "\x01", "é", "€", "😀")
    ]
    array = pa.StructArray.from_arrays([pa.array(texts)], names=["x"])
    settings = {"writeNonAsciiCharacterAsCodePoint": "true"} if is_ascii else {}
    written = texts_of(one_column(types.STRING, **settings).encode(array))
    # Python writes the digits of a code point in lower case, and Jackson in upper case.
    expected = [json.dumps(text, ensure_ascii=is_ascii) for text in texts]
    assert [text.lower() for text in written] == expected


@pytest.mark.parametrize("size", range(1, 10))
def test_nothing_behind_the_last_text_is_read(size):
    text = guarded_copy(b"abcdefghi"[:size])
    offsets = pa.py_buffer(struct.pack("<ii", 0, size))
    column = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(text)])  # type: ignore[arg-type]  # the stubs know bytes only
    array = pa.StructArray.from_arrays([column], names=["x"])
    assert texts_of(one_column(types.STRING).encode(array)) == [f'"{bytes(text).decode()}"']


def test_texts_longer_than_the_memory_are_written():
    rows = [{"name": letter * size} for letter in '"aé' for size in (1, 10_000, 300_000)]
    encoded: Any = encoder_of(NESTED).encode(pa.array(rows, arrow_type(NESTED)))
    assert [json.loads(value) for value in encoded.to_pylist()] == rows


def test_many_elements_are_written_behind_the_prefix():
    row = {"all": [{"x": number} for number in range(20_000)]}
    encoded: Any = encoder_of(NESTED).encode(
        pa.array([row, None, row], arrow_type(NESTED)), b"\0id"
    )
    first, second, third = encoded.to_pylist()
    assert second is None
    assert first == third
    assert json.loads(first.removeprefix(b"\0id")) == row


def test_times_are_in_the_zone_of_their_column():
    array = pa.array([{"x": 0}], pa.struct([("x", pa.timestamp("us", "America/New_York"))]))
    assert texts_of(one_column(types.TIMESTAMP).encode(array)) == [
        '"1969-12-31T19:00:00.000-05:00"'
    ]


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "1970-01-01T00:00:00.000Z"),
        ("Z", "1970-01-01T00:00:00.000Z"),
        ("GMT+2", "1970-01-01T02:00:00.000+02:00"),
        ("UTC-03:30", "1969-12-31T20:30:00.000-03:30"),
        ("+0100", "1970-01-01T01:00:00.000+01:00"),
        ("Asia/Kolkata", "1970-01-01T05:30:00.000+05:30"),
        ("PST", "1969-12-31T16:00:00.000-08:00"),
        ("+05:30:15", "1970-01-01T05:30:15.000+05:30:15"),
    ],
)
def test_times_are_in_the_zone_of_the_option(zone, text):
    array = pa.array([{"x": 0}], pa.struct([("x", pa.timestamp("ms", "Europe/Berlin"))]))
    assert texts_of(one_column(types.TIMESTAMP, timeZone=zone).encode(array)) == [f'"{text}"']


@pytest.mark.parametrize(
    ("pattern", "offset", "text"),
    [
        ("HH:mm:ssXXX", "+05:41:16", "05:41:16+05:41"),
        ("HH:mm:ssXXX", "-00:44:30", "23:15:30-00:44"),
        ("HH:mm:ssXXX", "-00:00:30", "23:59:30Z"),
        ("HH:mm:ssxxx", "-00:00:30", "23:59:30+00:00"),
        ("HH:mm:ssXXXXX", "-00:00:30", "23:59:30-00:00:30"),
        ("HH:mm:ssxxxxx", "+00:00", "00:00:00+00:00"),
    ],
)
def test_a_pattern_says_whether_offsets_have_seconds(pattern, offset, text):
    """As Java's ``appendOffset`` has it: only five letters write them."""
    array = pa.array([{"x": 0}], pa.struct([("x", pa.timestamp("us", "UTC"))]))
    encoder = one_column(types.TIMESTAMP, timestampFormat=pattern, timeZone=offset)
    assert texts_of(encoder.encode(array)) == [f'"{text}"']


@pytest.mark.parametrize("zone", ["Mars/Base", "+99:99", "+25", "-18:30", "europe/paris"])
def test_an_unknown_zone_is_refused(zone):
    with pytest.raises(OptionsError, match="is not a time zone of this machine"):
        one_column(types.TIMESTAMP, timeZone=zone)


@pytest.mark.parametrize(
    ("option", "pattern", "part"),
    [
        ("timestampFormat", "yy", "yy"),
        ("timestampFormat", "EEE dd", "EEE"),
        ("timestampNTZFormat", "HH:mm XXX", "XXX"),
        ("dateFormat", "yyyy HH", "HH"),
        ("dateFormat", "yyyy#MM", "#"),
    ],
)
def test_a_pattern_that_cannot_be_written_is_refused(option, pattern, part):
    with pytest.raises(OptionsError, match=f"'{option}' is '{pattern}': '{part}' is"):
        one_column(types.TIMESTAMP, **{option: pattern})


@pytest.mark.parametrize("key", [types.BINARY, INNER, types.ArrayType(types.LONG)])
def test_keys_without_a_text_are_refused(key):
    with pytest.raises(OptionsError, match="Map keys cannot be written as JSON: 'x\\.key' is of"):
        one_column(types.MapType(key, types.LONG))


def test_intervals_are_refused():
    with pytest.raises(OptionsError, match="Intervals cannot be written as JSON: 'x' is of type"):
        one_column(types.DAY_TIME_INTERVAL)


def test_the_schema_is_a_json_schema():
    schema = encoder_of(NESTED).schema
    assert schema.type is SchemaType.JSON
    properties = json.loads(schema.text)["properties"]
    assert properties["id"] == {"oneOf": [{"type": "null"}, {"type": "integer"}]}
    assert list(properties) == list(NESTED.names)
