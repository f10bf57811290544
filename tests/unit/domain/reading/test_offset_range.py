from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import EARLIEST, LATEST
from pyspark_kafka.domain.reading.offset_range import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import LARGEST_OFFSET

T0 = TopicPartition("t", 0)
bounds = st.lists(st.integers(0, LARGEST_OFFSET), min_size=3, max_size=3).map(sorted)


@given(bounds)
def test_rest(offsets: list[int]) -> None:
    """A range that is cut in two keeps its partition, its end, and, in sum, its size."""
    start, middle, end = offsets
    whole = OffsetRange(T0, start, end)
    rest = whole.starting_at(middle)
    assert (rest.partition, rest.from_offset, rest.until_offset) == (T0, middle, end)
    assert OffsetRange(T0, start, middle).size + rest.size == whole.size


@pytest.mark.parametrize(("start", "end", "size"), [(0, 0, 0), (5, 5, 0), (3, 10, 7)])
def test_size(start: int, end: int, size: int) -> None:
    """A range's size is the number of offsets in it, its end left out."""
    assert OffsetRange(T0, start, end).size == size


@pytest.mark.parametrize(
    ("start", "end", "is_bound"),
    [(0, 0, True), (3, 10, True), (EARLIEST, 10, False), (3, LATEST, False), (-2, -1, False)],
)
def test_is_bound(start: int, end: int, is_bound: bool) -> None:
    """A range is bound when neither of its ends waits for the broker's answer."""
    assert OffsetRange(T0, start, end).is_bound is is_bound


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [(EARLIEST, 10, "t-0[-2, 10)"), (3, LATEST, "t-0[3, -1)"), (-2, -1, "t-0[-2, -1)")],
)
def test_open_range_has_no_size(start: int, end: int, text: str) -> None:
    """A range with an open end has no size yet, and says so."""
    problem = f"{text} has no size before its ends are bound"
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        _ = OffsetRange(T0, start, end).size


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        (LATEST, 10, "not a valid starting offset: -1"),
        (-3, LATEST, "not a valid starting offset: -3"),
        (0, EARLIEST, "not a valid ending offset: -2"),
        (EARLIEST, -3, "not a valid ending offset: -3"),
        (11, 10, "t-0[11, 10) ends before it starts"),
    ],
)
def test_refusal(start: int, end: int, problem: str) -> None:
    """A range starts at an offset or at earliest, and ends there, later or at latest."""
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        OffsetRange(T0, start, end)


def test_rest_beyond_the_end() -> None:
    """A range has no rest beyond its end."""
    with pytest.raises(ValueError, match=r"^t-0\[11, 10\) ends before it starts$"):
        OffsetRange(T0, 3, 10).starting_at(11)


def test_binding_an_open_start() -> None:
    """An open start is bound by starting where the broker says, and the end stays open."""
    assert OffsetRange(T0, EARLIEST, LATEST).starting_at(7) == OffsetRange(T0, 7, LATEST)


@given(bounds)
def test_pickle(offsets: list[int]) -> None:
    """A range survives the pickle with which it reaches its task."""
    stretch = OffsetRange(T0, offsets[0], offsets[-1])
    assert pickle.loads(pickle.dumps(stretch)) == stretch  # noqa: S301
