"""The offsets that a command names, in a Kafka in memory."""

from __future__ import annotations

import re

import pytest

from pyspark_kafka.application.checkpoints.offset_targets import OffsetTargets
from pyspark_kafka.application.errors import NoCommittedOffsetError, UnusableOffsetsError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.offset_limits import (
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnNoMatch,
    Specific,
    StartingOffsets,
)

from ..conftest import Kit, tp


def targets(kit: Kit) -> OffsetTargets:
    """Return targets for a checkpoint that has a partition that Kafka does not have any more."""
    kit.produce(5)
    kit.produce(3, partition=1)
    return OffsetTargets(kit.container({"assign": '{"t":[0,1],"gone":[0]}'}).offset_reader())


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Earliest(), {tp(0): 0, tp(1): 0}),
        (Latest(), {tp(0): 5, tp(1): 3}),
        (GlobalTimestamp(2**60, OnNoMatch.LATEST), {tp(0): 5, tp(1): 3}),
        (Specific(PartitionOffsets({tp(0): 2})), {tp(0): 2}),
        (Specific(PartitionOffsets({tp(0): -1, tp(1): -2})), {tp(0): 5, tp(1): 0}),
        (Specific(PartitionOffsets(), (("t", -1),)), {tp(0): 5, tp(1): 3}),
    ],
)
def test_offsets_in_kafka(kit: Kit, limit: StartingOffsets, expected: object) -> None:
    """All partitions that exist get an offset, and a file may name some of them only."""
    assert targets(kit).resolve(limit) == expected


def test_a_group(kit: Kit) -> None:
    """Its committed offsets count; without one the command fails."""
    fetcher = kit.container().offset_fetcher()
    fetcher.commit("g", PartitionOffsets({tp(0): 4, tp(1): 1}))
    made = targets(kit)
    assert made.resolve(CommittedOffsets("g")) == {tp(0): 4, tp(1): 1}
    with pytest.raises(NoCommittedOffsetError, match="'other' has committed no offset"):
        made.resolve(CommittedOffsets("other"))


@pytest.mark.parametrize(
    ("offsets", "topics", "problem"),
    [
        ({tp(0): 6}, (), "offset 6 of t-0 is not in Kafka, which has offsets 0 to 5"),
        ({tp(7): 0}, (), "does not have Set(t-7)"),
        ({}, (("u", -1), ("t", -1)), "does not have u."),
    ],
)
def test_offsets_that_cannot_be_used(
    kit: Kit, offsets: dict[object, int], topics: tuple[tuple[str, int], ...], problem: str
) -> None:
    """Offsets outside of the log, and of other partitions, are refused."""
    limit = Specific(PartitionOffsets(offsets), topics)  # type: ignore[arg-type]
    with pytest.raises(UnusableOffsetsError, match=re.escape(problem)):
        targets(kit).resolve(limit)
