from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.values.columns.column_set import MAX_SIZE, ColumnSet, ColumnSizes
from pyspark_kafka.adapters.values.columns.layout import columns_of
from pyspark_kafka.domain.values.errors import DecodedTooLargeError

from .scripts import Script

ATOMS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.decimal128(18, 3): st.integers(-(10**18) + 1, 10**18 - 1).map(
        lambda number: Decimal(number).scaleb(-3)
    ),
}


def structs(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(children, min_size=1, max_size=3).map(
        lambda types: pa.struct([pa.field(f"f{n}", one) for n, one in enumerate(types)])
    )


def nested(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    lists = children.map(lambda type_: pa.list_(pa.field("element", type_)))
    maps = children.map(lambda type_: pa.map_(pa.string(), type_))
    return structs(children) | lists | maps


TYPES = structs(st.recursive(st.sampled_from(list(ATOMS)), nested, max_leaves=6))


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(type_):
        fields = {field.name: values_of(field.type) for field in type_}
        return st.none() | st.fixed_dictionaries(fields)
    if pa.types.is_list(type_):
        return st.none() | st.lists(values_of(type_.value_type), max_size=4)
    if pa.types.is_map(type_):
        keys = ATOMS[type_.key_type]
        entries = st.dictionaries(keys, values_of(type_.item_type), max_size=3)
        return st.none() | entries.map(lambda one: list(one.items()))
    return st.none() | ATOMS[type_]


@st.composite
def typed_rows(draw: st.DrawFn) -> tuple[pa.DataType, list[Any], list[Any]]:
    """A struct type, its rows, and for each row another one that is put and removed before it."""
    type_ = draw(TYPES)
    rows = draw(st.lists(values_of(type_), max_size=5))
    return type_, rows, [draw(values_of(type_)) for _ in rows]


@settings(max_examples=150, deadline=None)
@given(typed_rows())
def test_the_array_has_the_rows_that_were_put(typed):
    type_, rows, _ = typed
    script = Script(type_)
    for row in rows:
        script.put(row)
    array, _ = script.run(len(rows))
    array.validate(full=True)
    assert array.equals(pa.array(rows, type_))


@settings(max_examples=150, deadline=None)
@given(typed_rows())
def test_a_row_that_is_removed_leaves_nothing_behind(typed):
    type_, rows, bad_rows = typed
    script = Script(type_)
    for number, (row, bad) in enumerate(zip(rows, bad_rows, strict=True)):
        if bad is not None:
            script.put_fields(bad)
        script.truncate(number)
        script.put(row)
    array, _ = script.run(len(rows))
    array.validate(full=True)
    assert array.equals(pa.array(rows, type_))


def test_fields_that_were_not_put_are_null():
    type_ = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    script = Script(type_)
    script.put({"a": 1})
    script.put({"b": {}})
    array, _ = script.run(2)
    assert array.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": {"c": None}}]


def test_lists_grow_while_they_are_filled():
    entry = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    type_ = pa.struct([("entries", pa.list_(entry))])
    row = {"entries": [{"a": n, "b": [str(n)] * 3} for n in range(500)]}
    script = Script(type_)
    script.put(row)
    array, grown = script.run(1)
    assert array.to_pylist() == [row]
    assert grown > 5


def test_texts_grow_while_they_are_filled():
    script = Script(pa.struct([("a", pa.string())]))
    rows = [{"a": "x" * size} for size in (10, 5_000, 1_000_000)]
    for row in rows:
        script.put(row)
    array, grown = script.run(3)
    assert array.to_pylist() == rows
    assert grown == 2


def test_a_batch_begins_with_the_room_that_the_one_before_needed():
    type_ = pa.struct([("a", pa.string()), ("b", pa.string()), ("c", pa.list_(pa.int64()))])
    script = Script(type_)
    rows = [{"a": "x" * 5_000, "b": "", "c": [1] * 100}] * 10
    for row in rows:
        script.put(row)
    sizes = ColumnSizes(script.columns)
    first, grown = script.run(10, 60_000, sizes)
    assert grown > 0
    second, grown = script.run(10, 60_000, sizes)
    assert grown == 0
    assert first.equals(second)


def test_a_large_row_does_not_decide_the_memory_of_many_small_ones():
    type_ = pa.struct([("c", pa.list_(pa.int64()))])
    sizes = ColumnSizes(columns_of(type_))
    sizes.note(2, rows=1, values=2**30, share=1.0)
    assert sizes.values(2, rows=100, data_bytes=1_000) == 1_100


def test_a_column_does_not_grow_past_what_arrow_addresses():
    columns = ColumnSet(columns_of(pa.struct([("a", pa.string())])), 1, 0)
    with pytest.raises(DecodedTooLargeError):
        columns.grow(1, MAX_SIZE + 1)


def test_columns_have_the_paths_of_their_fields():
    type_ = pa.struct(
        [
            ("a", pa.struct([("b", pa.int8())])),
            ("c", pa.list_(pa.field("element", pa.struct([("d", pa.int8())])))),
            ("e", pa.map_(pa.string(), pa.int8())),
        ]
    )
    paths = [column.path for column in columns_of(type_)]
    assert paths == ["", "a", "a.b", "c", "c.element", "c.element.d", "e", "e", "e.key", "e.value"]
