import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pyspark_kafka.cli.tail import record_json, record_line
from pyspark_kafka.domain.text import Rendering

TIME = datetime(2026, 1, 31, 12, 0, 0, 5_000, UTC)
ROW = {
    "topic": "t",
    "partition": 1,
    "offset": 7,
    "timestamp": TIME,
    "key": b"k",
    "value": b'{"a":1}',
    "headers": [{"key": "trace", "value": b"\xff"}],
}


def shown(rendering: Rendering = Rendering.TEXT, **columns: Any) -> Any:
    found = json.loads(record_json({**ROW, **columns}, rendering))
    return {name: found[name] for name in ("key", "value", "headers", "error") if name in found}


def test_a_line_of_json_has_the_place_time_and_headers_of_a_record():
    assert json.loads(record_json(ROW, Rendering.JSON)) == {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": "2026-01-31T12:00:00.005Z",
        "key": "k",
        "value": {"a": 1},
        "headers": [{"key": "trace", "value": "\\xff"}],
    }


def test_nothing_of_a_record_acts_on_a_terminal():
    """JSON escapes what is not ASCII: half a surrogate pair cannot be printed otherwise."""
    value = {"a": "\ud800\x7f\x9b\u202e\u00e4"}
    line = record_json({**ROW, "value": json.dumps(value).encode()}, Rendering.JSON)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["value"] == value


def test_bytes_as_hex():
    assert shown(Rendering.HEX, value=b"\x01") == {
        "key": "6b",
        "value": "01",
        "headers": [{"key": "trace", "value": "ff"}],
    }


def test_what_json_has_no_type_for_is_text_and_bytes_are_base64():
    value = {"amount": Decimal("1.50"), "at": TIME, "raw": b"\x00\x01"}
    assert shown(value=value, valueBytes=None, valueError=None, headers=None) == {
        "key": "k",
        "value": {"amount": "1.50", "at": "2026-01-31 12:00:00.005000+00:00", "raw": "AAE="},
        "headers": [],
    }


def test_a_value_that_cannot_be_decoded():
    row = {**ROW, "value": None, "valueBytes": b"x\xff", "valueError": "it ends too early"}
    found = json.loads(record_json(row, Rendering.TEXT))
    assert (found["value"], found["error"]) == ("x\\xff", "it ends too early")
    assert record_line(row, Rendering.TEXT).endswith("  k  x\\xff  (it ends too early)")


def test_a_record_as_a_line():
    row = {**ROW, "key": None, "value": b"a\nb\x1b[2J"}
    assert record_line(row, Rendering.TEXT) == (
        "2026-01-31T12:00:00.005Z  t-1 @ 7  null  a\\nb\\x1b[2J"
    )
    assert record_line({**ROW, "value": b'{"a":"\xc3\xa9"}'}, Rendering.JSON).endswith(
        '  k  {"a": "é"}'
    )
