import pickle
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import (
    ALL_COLUMNS,
    COLUMNS,
    UNBOUNDED,
    WITHOUT_HEADERS,
    Projection,
    RecordFilter,
    Span,
)
from pyspark_kafka.domain.topic_partition import TopicPartition


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


T0 = TopicPartition("t", 0)

numbers = st.integers(-3, 12)
bounds = st.none() | numbers
spans = st.builds(Span, bounds, bounds)
filters = st.builds(
    RecordFilter, spans, st.none() | st.frozensets(st.integers(0, 4), max_size=3), spans, bounds
)
ranges = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(
    lambda ends: OffsetRange(T0, min(ends), max(ends))
)


@dataclass(frozen=True)
class Record:
    partition: int
    offset: int
    timestamp: int


records = st.builds(Record, st.integers(0, 4), st.integers(0, 9), numbers)


def passes(one: RecordFilter, record: Record) -> bool:
    return (
        one.admits_partition(record.partition)
        and record.offset in one.offsets
        and (one.min_timestamp is None or record.timestamp >= one.min_timestamp)
    )


@pytest.mark.parametrize(
    ("span", "inside"),
    [
        (Span(), [1, 2, 3, 4]),
        (Span(2), [2, 3, 4]),
        (Span(None, 4), [1, 2, 3]),
        (Span(2, 4), [2, 3]),
        (Span(3, 3), []),
        (Span(4, 2), []),
    ],
)
def test_a_span_holds_its_minimum_and_not_its_end(span, inside):
    assert [number for number in range(1, 5) if number in span] == inside


@given(one=spans, other=spans, number=numbers)
def test_both_spans(one, other, number):
    assert (number in one.intersect(other)) == (number in one and number in other)


@given(one=filters, other=filters, record=records)
def test_a_record_passes_two_filters_together_if_it_passes_each(one, other, record):
    assert passes(one.intersect(other), record) == (passes(one, record) and passes(other, record))


@given(one=filters, other=filters, third=filters)
def test_filters_commute_associate_and_are_idempotent(one, other, third):
    assert one.intersect(other) == other.intersect(one)
    assert one.intersect(other).intersect(third) == one.intersect(other.intersect(third))
    assert one.intersect(one) == one
    assert one.intersect(RecordFilter()) == one


@given(one=filters, offset_range=ranges, record=records)
def test_a_narrowed_range_has_every_wanted_offset_of_the_range(one, offset_range, record):
    narrowed = one.narrow(offset_range)
    assert narrowed.partition == offset_range.partition
    assert offset_range.from_offset <= narrowed.from_offset
    assert narrowed.until_offset <= offset_range.until_offset
    given_span = Span(offset_range.from_offset, offset_range.until_offset)
    kept = Span(narrowed.from_offset, narrowed.until_offset)
    assert (record.offset in kept) == (record.offset in given_span and record.offset in one.offsets)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        (UNBOUNDED, (2, 8)),
        (Span(5), (5, 8)),
        (Span(None, 5), (2, 5)),
        (Span(0, 100), (2, 8)),
        (Span(3, 4), (3, 4)),
        (Span(9), (8, 8)),
        (Span(None, 0), (2, 2)),
        (Span(None, -5), (2, 2)),
        (Span(6, 4), (6, 6)),
    ],
)
def test_a_range_is_cut_to_the_offsets_that_are_asked_for(offsets, expected):
    narrowed = RecordFilter(offsets=offsets).narrow(OffsetRange(T0, 2, 8))
    assert (narrowed.from_offset, narrowed.until_offset) == expected


def test_both_filters_have_to_name_a_partition():
    named, others = (
        RecordFilter(partition_numbers=frozenset(numbers)) for numbers in ({1, 2}, {2, 3})
    )
    assert named.intersect(others) == RecordFilter(partition_numbers=frozenset({2}))
    assert named.intersect(RecordFilter()) == RecordFilter().intersect(named) == named


def test_a_range_from_the_first_offset_on_stays_as_it_is():
    whole = OffsetRange(T0, 0, 8)
    assert RecordFilter().narrow(whole) == whole


@pytest.mark.parametrize(
    ("one", "admitted"),
    [
        (RecordFilter(), [0, 1, 2, 3]),
        (RecordFilter(partitions=Span(1, 3)), [1, 2]),
        (RecordFilter(partition_numbers=frozenset({0, 3, 9})), [0, 3]),
        (RecordFilter(Span(1), frozenset({0, 3})), [3]),
        (RecordFilter(partition_numbers=frozenset()), []),
        (RecordFilter(offsets=Span(5, 5), min_timestamp=9), [0, 1, 2, 3]),
    ],
)
def test_a_partition_that_no_wanted_record_is_in_is_left_out(one, admitted):
    assert [number for number in range(4) if one.admits_partition(number)] == admitted


@pytest.mark.parametrize(
    ("one", "narrows"),
    [
        (RecordFilter(), False),
        (RecordFilter(Span(1), frozenset({1})), False),
        (RecordFilter(offsets=Span(0)), True),
        (RecordFilter(offsets=Span(None, 5)), True),
        (RecordFilter(min_timestamp=0), True),
    ],
)
def test_offsets_need_no_lookup_for_a_filter_without_bounds(one, narrows):
    assert one.narrows_offsets is narrows


def test_pickle():
    one = RecordFilter(Span(1, 2), frozenset({1}), Span(3), 4)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
