import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.json_text import (
    is_integer,
    partition_number,
    read_json_object,
    read_json_pairs,
)


def objects(values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.text(max_size=5), values, max_size=3)


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | objects(inner), max_leaves=8
)


@given(objects(trees))
def test_a_json_object_is_read(value):
    assert read_json_object(json.dumps(value), "{}") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "{",
        "{}{}",
        "null",
        "true",
        "1",
        '"a"',
        "[]",
        '{"a":1,"a":1}',
        '{"a":[{"b":1,"b":2}]}',
    ],
)
def test_what_is_no_object_or_has_a_key_twice_is_quoted_next_to_an_example(text):
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        read_json_object(text, '{"an":"example"}')
    assert str(caught.value) == f'Expected e.g. {{"an":"example"}}, got {text}'


@given(st.lists(st.tuples(st.text(max_size=3), trees), max_size=4))
def test_pairs_keep_their_order_and_repeated_keys(pairs):
    text = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs)
    assert read_json_pairs(f"{{{text}}}", "{}") == pairs


@pytest.mark.parametrize(
    "text", ["", "x", "null", "[]", '[["a",1]]', '{"a":{"b":1,"b":2}}', '{"a":[{"b":1,"b":2}]}']
)
def test_what_is_no_object_or_has_a_key_twice_below_is_quoted_next_to_an_example(text):
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        read_json_pairs(text, '{"an":"example"}')
    assert str(caught.value) == f'Expected e.g. {{"an":"example"}}, got {text}'


def test_json_that_is_nested_too_deep_is_refused():
    with pytest.raises(ValueError, match=r"^Expected e\.g\. \{\}, got \[\["):
        read_json_object("[" * 100_000, "{}")


@given(st.integers(0, 2**31 - 1))
def test_numbers_of_partitions_are_read(number):
    assert partition_number(str(number)) == number


@pytest.mark.parametrize(
    "text", ["", " ", "x", "-1", "+1", " 1", "1 ", "1.0", "1_0", "0x1", "٣", "²"]
)
def test_a_partitions_number_is_nothing_but_decimal_digits(text):
    with pytest.raises(ValueError, match=r"^not a partition number: ") as caught:
        partition_number(text)
    assert str(caught.value) == f"not a partition number: {text!r}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, True),
        (-1, True),
        (2**70, True),
        (True, False),
        (False, False),
        (1.0, False),
        ("1", False),
        (None, False),
    ],
)
def test_an_integer_is_neither_a_boolean_nor_a_fraction(value, expected):
    assert is_integer(value) is expected
