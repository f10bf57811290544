import json
import math
import struct
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.columns import column_set
from pyspark_kafka.adapters.values.json import decoder
from pyspark_kafka.adapters.values.json.decode_kernel import decode_rows
from pyspark_kafka.adapters.values.json.decoder import JsonDecoder
from pyspark_kafka.adapters.values.json.value_format import VALUE_FORMAT, parse_json_options
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values.data_types import StructType, parse_struct
from pyspark_kafka.domain.values.errors import DecodedTooLargeError, FailureReason
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type

from .payloads import payloads_of, plain

NUMBERS: Final = "d double, f float, s string, l bigint"
EXAMPLES: Final = 150


def options_of(ddl: str = "a bigint", **settings_: str) -> ValueOptions:
    given_ = tuple((name.lower(), value) for name, value in settings_.items())
    return ValueOptions("value", "json", schema=ddl, settings=given_)


def decoder_of(ddl: str, **settings_: str) -> JsonDecoder:
    return JsonDecoder(parse_struct(ddl), parse_json_options(options_of(ddl, **settings_)))


def rows_of(ddl: str, *values: bytes | None, **settings_: str) -> list[Any]:
    decoded = decoder_of(ddl, **settings_).decode(payloads_of(values))
    decoded.column.validate(full=True)
    return plain(decoded.column)


def failures_of(ddl: str, *values: bytes) -> list[tuple[FailureReason, str | None]]:
    decoder = decoder_of(ddl)
    decoded = decoder.decode(payloads_of(values))
    return [
        (FailureReason(reason), decoder.field_names[field] if field >= 0 else None)
        for reason, field in zip(decoded.reasons, decoded.fields, strict=True)
    ]


def test_failures_name_the_field():
    ddl = "a bigint, s struct<b:tinyint,c:array<date>>, m map<string,int>, t string"
    assert failures_of(
        ddl,
        b'{"a":1}',
        b'{"a":"x","m":5}',
        b'{"s":{"b":1000}}',
        b'{"s":{"c":["2020-01-01","x"]}}',
        b'{"m":{"k":1.5}}',
        b'{"t":"\xff"}',
        b'{"t":"x',
        b'{"t":x}',
        b"[1]",
        b'{"z":' + b"[" * 1_000 + b"]" * 1_000 + b"}",
        b'{"z":' + b"1" * 1_001 + b"}",
    ) == [
        (FailureReason.NONE, None),
        (FailureReason.TYPE_MISMATCH, "a"),
        (FailureReason.OUT_OF_RANGE, "s.b"),
        (FailureReason.TYPE_MISMATCH, "s.c.element"),
        (FailureReason.TYPE_MISMATCH, "m.value"),
        (FailureReason.BAD_UTF8, "t"),
        (FailureReason.TRUNCATED, None),
        (FailureReason.MALFORMED, None),
        (FailureReason.TYPE_MISMATCH, None),
        (FailureReason.TOO_DEEP, None),
        (FailureReason.TOO_LARGE, None),
    ]


def test_columns_grow_while_rows_are_decoded():
    elements = list(range(3_000))
    text = "x" * 100_000
    values = [json.dumps({"t": text, "l": elements, "m": {"k" * 2_000: elements}}).encode()]
    ddl = "t string, l array<bigint>, m map<string,array<bigint>>"
    expected = {"t": text.encode(), "l": elements, "m": [[b"k" * 2_000, elements]]}
    assert rows_of(ddl, *(values * 3)) == [expected] * 3


def test_a_bad_value_does_not_change_its_neighbours():
    ddl = "a bigint, l array<struct<b:string>>, s struct<c:bigint,d:string>"
    values = [
        b'{"a":1,"l":[{"b":"x"},{"b":"y"}],"s":{"c":1,"d":"z"}}',
        b'{"a":1,"l":[{"b":"x"},5],"s":{"c":"x","d":"z"}}',
        b'{"a":1,"l":[{"b":"x"},{"b":"yy"',
        b'{"l":[{"b":"x"}],"l":[],"s":{"d":"p"},"s":{"c":2}}',
    ]
    alone = [rows_of(ddl, value)[0] for value in values]
    assert rows_of(ddl, *values, *values[::-1]) == alone + alone[::-1]
    assert alone[1] == {"a": 1, "l": None, "s": {"c": None, "d": b"z"}}
    assert alone[2] == {"a": None, "l": None, "s": None}
    assert alone[3] == {"a": None, "l": [], "s": {"c": 2, "d": None}}


def test_the_kernel_goes_on_where_it_needed_a_part():
    rows = rows_of(
        "a array<double>, s array<string>, t array<timestamp_ntz>, n decimal(3,1), b binary",
        b'{"a":[1.5],"s":["x"]}',
        b'{"s":["x","y"],"a":[1.5,0.12345678901234567890123,-0.0]}',
        b'{"a":[2],"s":["x",{"a":[1]},"z"],"t":["1970-01-01T00:00:00","1970-01-01 00:00:01"]}',
        b'{"a":[3],"n":"1.5","b":"AQI="}',
    )
    assert [row["a"] for row in rows] == [
        ["1.5"],
        ["1.5", "0.12345678901234568", "-0.0"],
        ["2.0"],
        ["3.0"],
    ]
    assert [row["s"] for row in rows] == [[b"x"], [b"x", b"y"], [b"x", b'{"a":[1]}', b"z"], None]
    assert [row["t"] for row in rows] == [None, None, [0, 1_000_000], None]
    assert (str(rows[3]["n"]), rows[3]["b"]) == ("1.5", b"\x01\x02")


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_names_are_found_in_any_order(count):
    names = [f"name_{'x' * (number % 20)}{number}" for number in range(count)]
    ddl = ", ".join(f"{name} bigint" for name in names)
    pairs = [f'"{name}":{number}' for number, name in enumerate(names)]
    escaped = [pair.replace("name", "n\\u0061me") for pair in pairs]
    others = [f'"{name}_":1,"{name[:-1]}y":[]' for name in names]
    texts = (pairs, pairs[::-1], escaped, [*others, *pairs], pairs + others)
    values = [("{" + ",".join(text) + "}").encode() for text in texts]
    expected = {name: number for number, name in enumerate(names)}
    assert rows_of(ddl, *values) == [expected] * len(values)


def test_some_fields_of_a_type():
    wanted = parse_struct("c bigint")
    decoder = VALUE_FORMAT.decoder(options_of("a bigint, c bigint"), None, wanted)
    decoded = decoder.decode(payloads_of([b'{"a":"x","bad":"y","c":3}']))
    assert decoder.data_type == wanted
    assert decoded.column.type == arrow_type(wanted)
    assert decoded.column.to_pylist() == [{"c": 3}]
    assert decoded.reasons.tolist() == [0]


def test_a_record_of_many_time_zones(monkeypatch):
    calls: list[int] = []

    def counted(table: int, context: int, first: int, last: int) -> int:
        calls.append(first)
        return decode_rows(table, context, first, last)

    monkeypatch.setattr(decoder, "decode_rows", counted)
    names = [f"Nowhere/Z{number}" for number in range(1_200)]
    zones = [*names, "Asia/Tokyo", "Europe", "Zulu!", "Europe/Berlin", "+01:00", "\u00e9", "PST"]
    times = [{"t": f"2020-01-01 00:00:00 {name}"} for name in [*zones, *zones]]
    ((row),) = rows_of("a array<struct<t:timestamp>>", json.dumps({"a": times}).encode())
    found = {zone: at["t"] for zone, at in zip(zones * 2, row["a"], strict=True) if at["t"]}
    midnight = 1_577_836_800_000_000
    assert found == {
        "Asia/Tokyo": midnight - 9 * 3_600_000_000,
        "Europe/Berlin": midnight - 3_600_000_000,
        "+01:00": midnight - 3_600_000_000,
        "PST": midnight + 8 * 3_600_000_000,
    }
    # The names, three offsets, a part, and room for elements that is doubled.
    assert len(calls) < 20


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=50), st.integers(1, 40))
def test_doubles_are_bit_for_bit_what_python_reads_of_few_digits_and_of_many(numbers, digits):
    texts = [text for number in numbers for text in (repr(number), f"{number:.{digits}e}")]
    texts = [text for text in texts if "inf" not in text]
    rows = rows_of("d double", *(f'{{"d":{text}}}'.encode() for text in texts))
    assert [row["d"] for row in rows] == [repr(float(text)) for text in texts]


@pytest.mark.parametrize(
    ("read", "refused", "limits"),
    [
        ("0." + "1" * 1_000, "0." + "1" * 1_001, {}),
        ("-0." + "1" * 1_000, "1." + "1" * 1_000, {}),
        ("0.11111", "0.111111", {"maxNumLen": "5"}),
        ("-0.11111", "-1.11111", {"maxNumLen": "5"}),
        ("0e11111", "0e111111", {"maxNumLen": "5"}),
        ("0.11e11", "0.111e11", {"maxNumLen": "5"}),
    ],
)
def test_a_zero_alone_is_no_digit_of_a_long_number(read, refused, limits):
    """Before a fraction or an exponent, as in Jackson; all other digits count."""
    texts = [f'{{"p":1,"v":{number},"q":2}}'.encode() for number in (read, refused)]
    for ddl in ("p int, v double, q int", "p int, q int"):
        one, other = rows_of(ddl, *texts, **limits)
        assert one == {"p": 1, **({"v": repr(float(read))} if "v" in ddl else {}), "q": 2}
        assert set(other.values()) == {None}


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.floats(0, allow_nan=False, allow_infinity=False), st.sampled_from(["", "1", "000001"]))
@example(5e-324, "")
@example(1.7976931348623155e308, "1")
def test_doubles_at_halves(number, more):
    """A text halfway between two doubles is rounded to the even one, and beyond it to the next.

    A number of more than 1,000 digits is null.
    """
    above = math.nextafter(number, math.inf)
    assume(not math.isinf(above))
    text = _decimal_text((Fraction(number) + Fraction(above)) / 2) + more
    digits = len(text.removeprefix("0").replace(".", ""))
    row = rows_of("d double", f'{{"d":{text}}}'.encode())[0]
    assert row["d"] == (repr(float(text)) if digits <= 1_000 else None)


def _decimal_text(number: Fraction) -> str:
    """Return all digits of a number whose denominator is a power of two."""
    places = max(number.denominator.bit_length() - 1, 1)
    digits = str(int(number * 10**places)).zfill(places + 1)
    return f"{digits[:-places]}.{digits[-places:]}"


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.floats(0, width=32, allow_nan=False, allow_infinity=False), st.sampled_from(["", "1"]))
@example(3.4028234663852886e38, "")
def test_floats_are_rounded_once(number, more):
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    above = Fraction(2) ** 128
    if bits + 1 < 0x7F800000:
        above = Fraction(struct.unpack("<f", struct.pack("<I", bits + 1))[0])
    text = _decimal_text((Fraction(number) + above) / 2) + more
    low, high = (
        float(np.float32(float(each))) if each < 2**128 else math.inf
        for each in (Fraction(number), above)
    )
    expected = high if more or bits & 1 else low
    assert rows_of("f float", f'{{"f":{text}}}'.encode())[0]["f"] == repr(expected)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(st.characters(exclude_characters="\ufffd")), st.booleans())
@example("\ud83d", True)
@example("\ude00\ud83d", True)
def test_texts_with_and_without_escapes_are_read(text, ascii_only):
    assume(ascii_only or not any("\ud800" <= letter < "\ue000" for letter in text))
    value = json.dumps({"s": text, "m": {text: text}}, ensure_ascii=ascii_only).encode()
    pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    expected = pairs.replace("\ufffd", "?").encode()
    [row] = rows_of("s string, m map<string,string>", value)
    assert row == {"s": expected, "m": [[expected, expected]]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\/\n\u00e9\u4e3b'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab"'), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(JSON, st.sampled_from([None, 1]))
def test_objects_in_a_string_are_written_without_spaces(value, indent):
    """A value that is no text is written again in a field of strings, as Jackson does."""
    text = json.dumps({"s": value, "z": value}, indent=indent, ensure_ascii=False).encode()
    row = rows_of("s string", text)[0]
    expected = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    assert row["s"] == (
        None if value is None else value.encode() if isinstance(value, str) else expected
    )


ROW = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "b": st.text("xyz\u00e9"),
        "c": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5),
        "d": st.fixed_dictionaries({}, optional={"e": st.booleans(), "f": st.lists(st.text("p"))}),
    },
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=20))
def test_rows_are_what_pyarrow_reads(rows):
    """Nested rows are equal to those that pyarrow makes of the Python objects."""
    ddl = "a bigint, b string, c array<double>, d struct<e:boolean,f:array<string>>"
    kind = arrow_type(parse_struct(ddl))
    decoded = decoder_of(ddl).decode(payloads_of([json.dumps(row).encode() for row in rows]))
    assert decoded.column.equals(pa.array(rows, kind))


def test_without_a_schema_or_with_one_that_is_no_ddl_the_option_is_named():
    with pytest.raises(OptionsError, match="'valueSchema' is needed"):
        VALUE_FORMAT.data_type(ValueOptions("value", "json"), None)
    with pytest.raises(OptionsError, match="'keySchema' cannot be used"):
        VALUE_FORMAT.data_type(ValueOptions("key", "json", schema="a b c"), None)


@pytest.mark.parametrize(
    ("ddl", "problem"),
    [
        ("a map<int,int>", "cannot have other keys"),
        ("a interval day to second", "no values of the type interval day to second"),
    ],
)
def test_types_that_json_does_not_have(ddl, problem):
    with pytest.raises(OptionsError, match=problem):
        decoder_of(ddl)


def test_integers_are_timestamps_in_seconds():
    seconds = [2**63 - 1, -(2**63), -(2**63) + 1, 9_223_372_036_854, -9_223_372_036_854, -5]
    values = [f'{{"a":{second}}}'.encode() for second in seconds]
    times = [row["a"] for row in rows_of("a timestamp", *values)]
    assert times == [None] * 3 + [second * 1_000_000 for second in seconds[3:]]
    assert failures_of("a timestamp", *values[:3]) == [(FailureReason.OUT_OF_RANGE, "a")] * 3


def test_a_value_that_arrow_cannot_address_is_too_large(monkeypatch):
    monkeypatch.setattr(column_set, "MAX_SIZE", 5_000)
    small, large = b'{"a":"x"}', json.dumps({"a": "y" * 6_000}).encode()
    with pytest.raises(DecodedTooLargeError):
        decoder_of("a string").decode(payloads_of([small, large]))
    found = decoder_of("a string").decode(payloads_of([large, small]))
    assert found.reasons.tolist() == [FailureReason.TOO_LARGE, FailureReason.NONE]
    assert found.column.to_pylist() == [None, {"a": "x"}]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("timeZone", "Nowhere", "timeZone 'Nowhere' is not a time zone"),
        ("locale", "de-DE", "locale 'de-DE' is not supported"),
        ("maxNestingDepth", "0", "maxNestingDepth must be between 1 and"),
        ("maxNumLen", "-1", "maxNumLen must be between 1 and"),
        ("dateFormat", "EEE", "dateFormat 'EEE' cannot be used: 'EEE' is not supported"),
        ("dateFormat", "", "it is empty"),
        ("timestampFormat", "yyyy[MM[dd]]", "an optional part inside of another"),
        ("timestampFormat", "yyyy]", "']' has no"),
        ("timestampNTZFormat", "yyyy#", "is reserved"),
        ("timestampNTZFormat", "MMM", "'MMM' is not supported"),
        ("timestampFormat", "yyyyyyy", "'yyyyyyy' is not supported"),
    ],
)
def test_options_are_refused_by_name(name, value, problem):
    with pytest.raises(OptionsError, match=problem.replace("[", r"\[").replace("]", r"\]")):
        parse_json_options(options_of(**{name: value}))


def test_the_type_is_the_schemas():
    data_type = VALUE_FORMAT.data_type(options_of("a bigint, b array<string>"), None)
    assert isinstance(data_type, StructType)
    assert str(data_type) == "struct<a:bigint,b:array<string>>"
