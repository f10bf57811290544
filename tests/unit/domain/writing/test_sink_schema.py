from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.writing.errors import SinkSchemaError
from pyspark_kafka.domain.writing.sink_schema import TYPES, check_sink_schema

NO_TOPIC: Final = (
    "topic option required when no 'topic' attribute is present. "
    "Use the topic option for setting a topic."
)
NO_VALUE: Final = "Required attribute 'value' not found"
SMALLEST: Final = {"topic": "string", "value": "binary"}

TYPE_OF: Final = {name: st.sampled_from(kinds) for name, kinds in TYPES.items()}
REQUIRED: Final = {name: TYPE_OF[name] for name in SMALLEST}
OPTIONAL: Final = {name: kind for name, kind in TYPE_OF.items() if name not in SMALLEST}
OTHERS: Final = dict.fromkeys(("Key", "HEADERS", "offset", ""), st.text())


def problems(columns: dict[str, str], *, has_topic_option: bool = False) -> tuple[str, ...]:
    with pytest.raises(SinkSchemaError) as caught:
        check_sink_schema(columns, has_topic_option=has_topic_option)
    return caught.value.problems


@given(st.fixed_dictionaries(REQUIRED, optional=OPTIONAL | OTHERS), st.booleans())
def test_columns_may_have_any_of_their_types_and_others_are_ignored(columns, has_topic_option):
    check_sink_schema(columns, has_topic_option=has_topic_option)


@given(st.text())
def test_the_option_overrides_the_column(kind):
    check_sink_schema({"value": "string"}, has_topic_option=True)
    check_sink_schema({"value": "string", "topic": kind}, has_topic_option=True)


def test_encoded_columns_are_structs():
    columns = {"value": "struct<a:int>", "topic": "string", "key": "string"}
    check_sink_schema(columns, has_topic_option=False, encoded=["value"])
    with pytest.raises(SinkSchemaError) as caught:
        check_sink_schema(columns, has_topic_option=False, encoded=["key"])
    assert caught.value.problems == (
        "key attribute unsupported type string. key must be a struct, as 'keyFormat' is set",
        (
            "value attribute unsupported type struct<a:int>. value must be a(n) string or binary. "
            "To write a struct, set the option 'valueFormat'"
        ),
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, (NO_TOPIC, NO_VALUE)),
        ({"topic": "string"}, (NO_VALUE,)),
        ({"value": "string"}, (NO_TOPIC,)),
        ({"TOPIC": "string", "Value": "string"}, (NO_TOPIC, NO_VALUE)),
    ],
)
def test_missing_columns_are_refused_in_the_jvm_connectors_words(columns, expected):
    assert problems(columns) == expected


@pytest.mark.parametrize(
    ("name", "kind", "kinds"),
    [
        ("topic", "int", "string"),
        ("key", "int", "string or binary"),
        ("value", "int", "string or binary"),
        (
            "headers",
            "array<struct<key:string,value:string>>",
            "array<struct<key:string,value:binary>>",
        ),
        ("partition", "bigint", "int"),
        ("timestamp", "date", "timestamp"),
    ],
)
def test_mistyped_columns_are_refused_in_the_jvm_connectors_words(name, kind, kinds):
    assert problems({**SMALLEST, name: kind}) == (
        f"{name} attribute unsupported type {kind}. {name} must be a(n) {kinds}",
    )


@given(st.sets(st.sampled_from(sorted(TYPES)), min_size=1))
def test_all_wrong_columns_are_reported_together(wrong):
    columns = {name: kinds[0] for name, kinds in TYPES.items()} | dict.fromkeys(wrong, "void")
    told = [problem.partition(" ")[0] for problem in problems(columns)]
    assert told == [name for name in TYPES if name in wrong]


def test_a_column_that_exists_twice_is_named():
    names = ["value", "key", "value", "other", "other", "topic", "topic"]
    columns = {"value": "string", "key": "string", "topic": "string"}
    with pytest.raises(SinkSchemaError) as caught:
        check_sink_schema(columns, has_topic_option=True, names=names)
    assert caught.value.problems == (
        "Column 'value' exists 2 times. Drop or rename all but one of them",
    )
    with pytest.raises(SinkSchemaError, match="Column 'topic' exists 2 times"):
        check_sink_schema(columns, has_topic_option=False, names=names)
