"""Trying values in JSON: what has to hold for any bytes."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from pyspark_kafka.adapters.values.columns import column_set
from pyspark_kafka.adapters.values.encoding.time_zones import zone_names
from pyspark_kafka.adapters.values.json.decoder import JsonDecoder
from pyspark_kafka.adapters.values.json.value_format import parse_json_options
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.domain.values.value_options import ValueOptions
from tests.unit.adapters.values.json.payloads import payloads_of, plain

from .guarded import guarded_array, little_memory
from .inputs import mutated
from .parsers import MAX_BYTES, Parser, decode_quickly

Row = tuple[int, int, Any]

SCHEMAS: Final = (
    "a bigint, b string, c double, d boolean",
    "a int, b float, c decimal(20,4), d date, e timestamp, f timestamp_ntz, g binary, h smallint",
    (
        "a struct<a:bigint,b:string>, b array<string>, c map<string,array<struct<a:tinyint>>>, "
        "d array<array<double>>, e map<string,map<string,bigint>>, f array<struct<a:array<date>>>"
    ),
    ", ".join(f"a_long_name_of_field_{number} string" for number in range(20)) + ", a string",
    "a array<struct<t:timestamp>>, b map<string,timestamp>, c array<struct<t:date>>",
)
LENIENT: Final = dict.fromkeys(
    (
        *("allowComments", "allowUnquotedFieldNames", "allowNumericLeadingZeros"),
        *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars"),
    ),
    "true",
)
PATTERNS: Final = {
    "dateFormat": "d.M.yyyy[ HH]",
    "timestampFormat": "yyyyMMdd[ HH:mm:ss.SSSXXX]",
    "maxNestingDepth": "5",
    "maxNumLen": "30",
}
OPTIONS: Final[tuple[dict[str, str], ...]] = ({}, LENIENT, PATTERNS)
SEPARATOR: Final = b"\x1e"
_NOT_PYTHONS: Final = re.compile(rb"'|[-+]I|[\x80-\xff]|\d{900}|\[{50}|\{{50}")
"""Text that Python's parser reads otherwise than Jackson, or not at all."""

_NOT_JSON: Final = {FailureReason.MALFORMED, FailureReason.TRUNCATED}

NAMES: Final = ("Nowhere/Z{}", "{}", "GMT+{}", "+00:00:{}", "a_long_name_of_field_{}", "\u00e9{}")
"""Of what a record may name in any number: zones, fields and keys."""

WORDS: Final = (
    rb'{ } [ ] : , "a" "b" "c" "d" "e" "f" "g" "h" null true false 0 -1 1.5e3 1e400 NaN -Infinity '
    rb'"x" "\u00e9" "\ud83d" "\ud83d\ude00" "\n" 12345678901234567890 0.1234567890123456789012 '
    rb'"2020-01-02" "2020-01-02T03:04:05.678+01:00" "2020-07-01T00:00:00Europe/Paris" "AQID" '
    rb'"1,5" // /* */ \ " {"a":{"a":1},"a":2} [[1.5],[2]] 007 -0 -0.0 a_b '
    b"'a' \xc3\xa9 \xff \x00"
).split()


def valid_values() -> list[bytes]:
    deep = {"a": {"a": 1, "b": "x"}, "b": ["p", None], "c": {"k": [{"a": 1}, {}]}, "d": [[1.5], []]}
    return [
        json.dumps({"a": 1, "b": "text \u00e9 \U0001f600", "c": 0.1, "d": True}).encode(),
        (
            b'{"a":12,"b":1.5,"c":"1,234.5","d":"2020-02-29","e":"2020-01-02 03:04:05 Asia/Tokyo",'
            b'"f":"2020-01-02T03:04:05.678","g":"AQID","h":-5}'
        ),
        b'{"h":99999,"b":"x\xff"}',
        b'{"a":1234567890123456789012345678901}',
        b'{"d":"5.1.2020 10","e":"20200102 03:04:05.678+01:00","a":1}',
        json.dumps({**deep, "e": {"x": {"y": 1}}, "f": [{"a": ["2020-01-01"]}]}).encode(),
        json.dumps({f"a_long_name_of_field_{number}": number for number in range(20)}).encode(),
    ]


@cache
def _decoder(number: int) -> JsonDecoder:
    schema = SCHEMAS[number % len(SCHEMAS)]
    settings = OPTIONS[number // len(SCHEMAS) % len(OPTIONS)]
    options = ValueOptions("value", "json", settings=tuple(settings.items()))
    decoder = JsonDecoder(parse_struct(schema), parse_json_options(options))
    decoder.decode(payloads_of(valid_values()))
    return decoder


def try_values(number: int, values: Sequence[bytes]) -> list[Row]:
    """Decode a batch, and again with little room and in another order; compare the rows."""
    rows = _decode(number, values)
    with little_memory({column_set: {"_MIN_DATA": 8}}):
        again = _decode(number, values[::-1])
    assert again[::-1] == rows, [
        pair for pair in zip(rows, again[::-1], strict=True) if len(set(map(str, pair))) > 1
    ]
    if number < len(SCHEMAS):
        for value, (reason, _, row) in zip(values, rows, strict=True):
            _hold_peer(value, reason, row)
    return rows


def _decode(number: int, values: Sequence[bytes]) -> list[Row]:
    payloads = replace(payloads_of(values), values=guarded_array(values))
    decoder = _decoder(number)
    decoded = decode_quickly(lambda: decoder.decode(payloads))
    decoded.column.validate(full=True)
    rows = plain(decoded.column)
    assert len(rows) == len(values)
    _hold_statuses(decoded.reasons, decoded.fields, rows)
    return list(zip(decoded.reasons.tolist(), decoded.fields.tolist(), rows, strict=True))


def _hold_statuses(reasons: Any, fields: Any, rows: list[Any]) -> None:
    """A bad row is a struct, without fields if all of it is bad; a good one has no bad field."""
    assert set(np.unique(reasons)) <= set(FailureReason)
    assert (fields[reasons == 0] == -1).all()
    for reason, field, row in zip(reasons, fields, rows, strict=True):
        if reason != 0:
            assert row is not None
            assert field >= 0 or not any(value is not None for value in row.values())


def _hold_peer(value: bytes, reason: int, row: Any) -> None:
    """Check that Python and the decoder agree on which values are JSON."""
    text = value.lstrip(b" \t\r\n")
    if not text:
        assert row is None
        return
    if _NOT_PYTHONS.search(value) or not text.startswith(b"{"):
        return
    try:
        json.JSONDecoder().raw_decode(text.decode())
    except ValueError:
        assert reason in _NOT_JSON, (value, reason)
    else:
        assert reason not in _NOT_JSON, (value, reason)


def many_names(dice: random.Random) -> bytes:
    """Return a value of at most ``MAX_BYTES`` with as many zones, keys or fields as that allows."""
    form = dice.choice(NAMES)
    made = [form.format(number) for number in range(MAX_BYTES // 50)]
    names = dice.choice((made, zone_names()))
    times = [f"2020-01-01 00:00:00 {name}" for name in names]
    value = dice.choice(
        (
            {"a": [{"t": time_} for time_ in times]},
            {"b": dict(zip(names, times, strict=True))},
            {**dict.fromkeys(names), "d": True},
        )
    )
    return json.dumps(value, ensure_ascii=False).encode()[:MAX_BYTES]


def made_value(dice: random.Random, valid: Sequence[bytes]) -> bytes:
    """Return a valid value, a damaged one, one of many names, or words of JSON in a row."""
    kind = dice.random()
    if kind < 0.001:
        return many_names(dice)
    value = dice.choice(valid)
    if kind < 0.2:
        return value
    if kind < 0.4:
        return mutated(dice, value)
    if kind < 0.8:
        for _ in range(dice.choice((1, 2, 3))):
            place = dice.randrange(len(value) + 1)
            cut = place + dice.choice((0, 0, 1, 5, 10))
            value = value[:place] + dice.choice(WORDS) + value[cut:]
        return value
    return (
        b'{"'
        + dice.choice(b"abcdefgh").to_bytes()
        + b'":'
        + b"".join(
            dice.choice(WORDS) + dice.choice((b"", b"", b" ", b",", b":"))
            for _ in range(dice.randrange(8))
        )
        + dice.choice((b"}", b"", b"]}"))
    )


def _read(content: bytes) -> None:
    try_values(content[0] if content else 0, content[1:].split(SEPARATOR))


def _valid() -> list[bytes]:
    return [
        bytes([number]) + SEPARATOR.join(valid_values())
        for number in range(len(SCHEMAS) * len(OPTIONS))
    ]


PARSERS: Final = (Parser("json", _read, (), _valid()),)


def warm_up() -> None:
    try_values(0, [b"{}"])
