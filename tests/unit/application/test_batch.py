"""Ranges of batch queries."""

from __future__ import annotations

import json

import pytest

from pyspark_kafka.domain.errors import StartingOffsetsError
from pyspark_kafka.domain.offset_range import OffsetRange
from pyspark_kafka.domain.options import Query

from .conftest import Kit, tp


def plan(kit: Kit, **options: str) -> tuple[OffsetRange, ...]:
    ranges: tuple[OffsetRange, ...] = (
        kit.container(options, Query.BATCH).batch().plan_input_partitions()
    )
    return ranges


def test_open_ends_stay_open(kit: Kit) -> None:
    """By default each partition is one range whose ends are bound by its task."""
    assert plan(kit) == (OffsetRange(tp(0), -2, -1), OffsetRange(tp(1), -2, -1))


def test_specific_ends_are_kept(kit: Kit) -> None:
    """Offsets of the options stand in the ranges, -2 and -1 among them."""
    starts, ends = json.dumps({"t": {"0": 3, "1": -2}}), json.dumps({"t": {"0": -1, "1": 7}})
    assert plan(kit, startingOffsets=starts, endingOffsets=ends) == (
        OffsetRange(tp(0), 3, -1),
        OffsetRange(tp(1), -2, 7),
    )


def test_ranges_without_offsets_are_left_out(kit: Kit) -> None:
    """A partition that is asked for nothing makes no task."""
    starts, ends = json.dumps({"t": {"0": 3, "1": 2}}), json.dumps({"t": {"0": 3, "1": 7}})
    assert plan(kit, startingOffsets=starts, endingOffsets=ends) == (OffsetRange(tp(1), 2, 7),)


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_offsets_name_every_partition(kit: Kit, option: str) -> None:
    """Offsets for other partitions than there are, are an error."""
    with pytest.raises(StartingOffsetsError, match=r"Specified: Set\(t-0\)"):
        plan(kit, **{option: json.dumps({"t": {"0": 3}})})
