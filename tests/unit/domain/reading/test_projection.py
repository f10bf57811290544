from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.reading.projection import (
    ALL_COLUMNS,
    COLUMNS,
    WITHOUT_HEADERS,
    Projection,
)


def test_columns() -> None:
    """The columns and their order are the JVM connector's, the headers last."""
    without = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert WITHOUT_HEADERS.columns == without
    assert ALL_COLUMNS.columns == (*without, "headers")


@given(st.permutations(COLUMNS), st.integers(1, len(COLUMNS)))
def test_any_choice(columns: list[str], count: int) -> None:
    """Any columns are projected in the order in which they are wanted."""
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
def test_refusal(columns: tuple[str, ...], problem: str) -> None:
    """A projection names some columns of a record, each of them once."""
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        Projection(columns)
