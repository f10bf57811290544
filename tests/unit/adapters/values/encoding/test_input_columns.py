from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type

TYPE = parse_struct(
    "flag boolean, number bigint, text string, data binary, time timestamp_ntz, "
    "parts array<string>, pairs map<string, bigint>"
)

ROWS: list[dict[str, Any] | None] = [
    None
    if number % 7 == 3
    else {
        "flag": None if number % 5 == 0 else number % 3 == 0,
        "number": None if number % 4 == 0 else number,
        "text": None if number % 6 == 0 else f"text {number}",
        "data": b"\xff" * (number % 3),
        "time": number * 1_000_000,
        "parts": None if number % 8 == 0 else [f"{number}", None, "x"][: number % 4],
        "pairs": [(f"{number}", number), ("n", None)][: number % 3],
    }
    for number in range(40)
]


def encode(array: pa.Array[Any]) -> list[bytes | None]:
    encoder = JsonEncoder(ValueOptions("value", "json"), TYPE)
    return encoder.encode(array).to_pylist()


def plain() -> Any:
    return pa.array(ROWS, arrow_type(TYPE))


@pytest.mark.parametrize(("start", "end"), [(0, 40), (1, 40), (8, 9), (3, 37), (13, 13)])
def test_slices_are_read_as_the_rows_they_show(start, end):
    assert encode(plain()[start:end]) == encode(plain())[start:end]


@pytest.mark.parametrize("start", [0, 5])
def test_fields_may_be_slices_themselves(start):
    whole = plain()
    fields = [whole.field(number)[start:] for number in range(len(TYPE.fields))]
    array = pa.StructArray.from_arrays(fields, names=list(TYPE.names))
    for value, row in zip(encode(array), ROWS[start:], strict=True):
        assert row is None or value == encode(pa.array([row], arrow_type(TYPE)))[0]


@pytest.mark.parametrize(
    ("field", "layout"),
    [
        ("text", pa.large_string()),
        ("text", pa.string_view()),
        ("text", pa.dictionary(pa.int8(), pa.string())),
        ("data", pa.large_binary()),
        ("data", pa.binary_view()),
        ("time", pa.timestamp("ns")),
        ("time", pa.timestamp("s")),
        ("parts", pa.large_list(pa.string())),
        ("parts", pa.list_(pa.large_string())),
        ("number", pa.int32()),
    ],
    ids=str,
)
def test_other_layouts_are_read_as_well(field, layout):
    rows = plain()
    fields = [rows.field(number) for number in range(len(TYPE.fields))]
    place = TYPE.names.index(field)
    original = fields[place]
    if pa.types.is_dictionary(layout):
        fields[place] = original.dictionary_encode()
    else:
        fields[place] = original.cast(layout)
    assert fields[place].type != original.type
    changed = pa.StructArray.from_arrays(fields, names=list(TYPE.names), mask=rows.is_null())
    assert encode(changed) == encode(rows)
