import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.reading.records import (
    ALL_COLUMNS,
    COLUMNS,
    WITHOUT_HEADERS,
    Projection,
)


def test_the_columns_are_the_jvm_connectors_with_headers_last():
    without = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert WITHOUT_HEADERS.columns == without
    assert ALL_COLUMNS.columns == (*without, "headers")


@given(st.permutations(COLUMNS), st.integers(1, len(COLUMNS)))
def test_columns_are_projected_in_the_order_of_the_choice(columns, count):
    projection = Projection(tuple(columns[:count]))
    assert projection.columns == tuple(columns[:count])
    assert [column for column in COLUMNS if column in projection] == [
        column for column in COLUMNS if column in columns[:count]
    ]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ((), "a projection needs at least one column"),
        (("key", "Value", "x"), "not a column of a Kafka record: Value, x"),
        (("key", "value", "key"), "duplicate column"),
    ],
)
def test_a_projection_names_known_columns_once(columns, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        Projection(columns)
