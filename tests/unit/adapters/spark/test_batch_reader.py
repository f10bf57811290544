"""Bounds from Spark's filters."""

import datetime as dt

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from pyspark_kafka.adapters.spark.batch_reader import FilteringBatchReader, is_exact, parse_filter
from pyspark_kafka.bootstrap.spark import ContainerUseCases
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection, RecordFilter, Span
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.typed_schema import TypedColumn, TypedSchema, typed_schema
from pyspark_kafka.domain.values.value_options import ValueOptions

from ..options import source_of

PARTITION = ("partition",)
OFFSET = ("offset",)
TIMESTAMP = ("timestamp",)


@pytest.mark.parametrize(("column", "bound"), [(PARTITION, "partitions"), (OFFSET, "offsets")])
@pytest.mark.parametrize(
    ("kind", "span"),
    [
        (EqualTo, Span(5, 6)),
        (GreaterThan, Span(6)),
        (GreaterThanOrEqual, Span(5)),
        (LessThan, Span(None, 5)),
        (LessThanOrEqual, Span(None, 6)),
    ],
)
def test_spark_need_not_evaluate_comparisons_that_are_bounds(column, bound, kind, span):
    pushed = kind(column, 5)
    assert parse_filter(pushed) == RecordFilter(**{bound: span})
    assert is_exact(pushed)


BERLIN_SUMMER = dt.timezone(dt.timedelta(hours=2))
SECOND = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("pushed", "least"),
    [
        (GreaterThanOrEqual(TIMESTAMP, SECOND), 1_000),
        (GreaterThan(TIMESTAMP, SECOND), 1_001),
        (EqualTo(TIMESTAMP, SECOND), 1_000),
        (In(TIMESTAMP, (SECOND, SECOND - dt.timedelta(milliseconds=7))), 993),
        (In(TIMESTAMP, (None, SECOND)), 1_000),
        # No record lies within a millisecond.
        (GreaterThanOrEqual(TIMESTAMP, SECOND + dt.timedelta(microseconds=999)), 1_000),
        (GreaterThan(TIMESTAMP, SECOND + dt.timedelta(microseconds=999)), 1_001),
        (
            GreaterThanOrEqual(TIMESTAMP, dt.datetime(1970, 1, 1, 2, 0, 1, tzinfo=BERLIN_SUMMER)),
            1_000,
        ),
        (
            GreaterThanOrEqual(TIMESTAMP, dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)),
            1_700_000_000_000,
        ),
    ],
)
def test_a_lower_bound_of_time_applies_and_spark_evaluates_the_filter_too(pushed, least):
    assert parse_filter(pushed) == RecordFilter(min_timestamp=least)
    assert not is_exact(pushed)


def test_a_time_without_a_zone_is_local():
    local = SECOND.astimezone().replace(tzinfo=None)
    assert parse_filter(GreaterThanOrEqual(TIMESTAMP, local)) == RecordFilter(min_timestamp=1_000)


@pytest.mark.parametrize("kind", [LessThan, LessThanOrEqual])
def test_there_is_no_upper_bound_of_time(kind):
    """An older record may follow a newer one."""
    pushed = kind(TIMESTAMP, SECOND)
    assert parse_filter(pushed) is None
    assert not is_exact(pushed)


@pytest.mark.parametrize(
    ("pushed", "bounds", "exact"),
    [
        (In(PARTITION, (7, 1, 7)), RecordFilter(partition_numbers=frozenset({1, 7})), True),
        (In(PARTITION, (None, 1)), RecordFilter(partition_numbers=frozenset({1})), True),
        (In(OFFSET, (9, 3, 5)), RecordFilter(offsets=Span(3, 10)), False),
        (In(OFFSET, (None, 3)), RecordFilter(offsets=Span(3, 4)), False),
        (In(OFFSET, (3,)), RecordFilter(offsets=Span(3, 4)), False),
    ],
)
def test_several_partitions_are_exact_and_several_offsets_a_range(pushed, bounds, exact):
    assert parse_filter(pushed) == bounds
    assert is_exact(pushed) is exact


@pytest.mark.parametrize(
    "pushed",
    [
        EqualTo(PARTITION, None),
        EqualTo(OFFSET, 1.5),
        GreaterThan(OFFSET, "5"),
        In(PARTITION, ()),
        In(PARTITION, (None,)),
        In(("topic",), ("t",)),
        In(("timestampType",), (0, 1)),
        EqualTo(("topic",), "t"),
        EqualTo(("key",), b"k"),
        EqualTo(("timestampType",), 1),
        GreaterThanOrEqual(("timestampType",), 1),
        EqualTo(("value", "partition"), 1),
        EqualNullSafe(PARTITION, 1),
        IsNull(OFFSET),
        IsNotNull(OFFSET),
        Not(EqualTo(PARTITION, 1)),
        Not(In(PARTITION, (1,))),
        StringStartsWith(("topic",), "t"),
    ],
    ids=repr,
)
def test_what_is_left_to_spark(pushed):
    assert parse_filter(pushed) is None
    assert not is_exact(pushed)


def test_a_value_of_another_kind_leaves_the_filter_to_spark():
    """A value of another type may still match."""
    pushed = In(("partition",), (1, 2.0))
    assert parse_filter(pushed) is None
    assert not is_exact(pushed)


def reader_of(columns: Projection | TypedSchema) -> FilteringBatchReader:
    """Return a reader that plans nothing."""
    return FilteringBatchReader(ContainerUseCases(), source_of("memory"), columns)


def test_a_field_with_the_name_of_a_column_is_left_to_spark():
    """With flattened values ``offset`` may be a number of the producer's."""
    flat = ValueOptions("value", "json", flatten=True)
    typed = [TypedColumn(flat, parse_struct("offset bigint"))]
    schema = typed_schema(Projection(("value", "partition")), typed)
    pushed = [EqualTo(("offset",), 5), EqualTo(("partition",), 2)]
    reader = reader_of(schema)
    assert [*reader.pushFilters([*pushed])] == pushed[:1]
    assert reader._filter == RecordFilter(partitions=Span(2, 3))
    assert [*reader_of(ALL_COLUMNS).pushFilters([*pushed])] == []
