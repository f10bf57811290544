"""What a batch query's start and end may be, alone and beside one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.options.batch_ends import ending_problems, mismatches, starting_problems
from pyspark_kafka.domain.reading.offset_limits import (
    ByTimestamp,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnNoMatch,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

from .given import (
    BASE,
    ENDING_EARLIEST,
    OFFSETS_EXAMPLE,
    STARTING_LATEST,
    T0,
    T1,
    named,
    problems,
    specific,
)

if TYPE_CHECKING:
    from pyspark_kafka.domain.reading.offset_limits import OffsetLimit

OTHERS = "The specified start offset and end offset should have the same topic-partitions.\n"
TIME = GlobalTimestamp(5, OnNoMatch.ERROR)


def times(first: int, second: int | None = None) -> ByTimestamp:
    more = () if second is None else ((T1, second),)
    return ByTimestamp(((T0, first), *more), OnNoMatch.ERROR)


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        (Earliest(), []),
        (TIME, []),
        (times(5), []),
        (specific({T0: 5, T1: -2}, u=-2), []),
        (Latest(), [STARTING_LATEST]),
        (
            specific({T0: -1, T1: -1}, u=-1, v=-2),
            [
                "startingOffsets for t-0 can't be latest for batch queries on Kafka",
                "startingOffsets for t-1 can't be latest for batch queries on Kafka",
                "startingOffsets for topic u can't be latest for batch queries on Kafka",
            ],
        ),
    ],
)
def test_start(starting: OffsetLimit, expected: list[str]) -> None:
    """A batch query does not begin at the end, in no partition and no topic."""
    assert starting_problems(starting) == expected


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (Latest(), []),
        (TIME, []),
        (times(5), []),
        (specific({T0: 5, T1: -1}, u=-1), []),
        (Earliest(), [ENDING_EARLIEST]),
        (
            specific({T0: -2, T1: -1}, u=-2, v=-1),
            [
                "ending offset for t-0 can't be earliest for batch queries on Kafka",
                "ending offset for topic u can't be earliest for batch queries on Kafka",
            ],
        ),
    ],
)
def test_end(ending: OffsetLimit, expected: list[str]) -> None:
    """A batch query does not end at the start, in no partition and no topic."""
    assert ending_problems(ending) == expected


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        (
            specific({T0: 1, T1: 1}),
            specific({T0: 2}),
            [
                (
                    f"{OTHERS}Topic-partitions for start offset: t-0, t-1, "
                    "topic-partitions for end offset: t-0."
                )
            ],
        ),
        (
            times(1),
            times(1, 2),
            [
                (
                    f"{OTHERS}Topic-partitions for start offset: t-0, "
                    "topic-partitions for end offset: t-0, t-1."
                )
            ],
        ),
        (
            specific({T0: 5, T1: 1}),
            specific({T0: 1, T1: 1}),
            [
                (
                    "The specified start offset 5 is greater than the end offset 1 "
                    "for topic t partition 0."
                )
            ],
        ),
        (
            specific({T0: 5}),
            specific({T0: 0}),
            [
                (
                    "The specified start offset 5 is greater than the end offset 0 "
                    "for topic t partition 0."
                )
            ],
        ),
        (
            times(5, 6),
            times(1, 2),
            [
                (
                    "The specified start timestamp 5 is greater than the end timestamp 1 "
                    "for topic t partition 0."
                ),
                (
                    "The specified start timestamp 6 is greater than the end timestamp 2 "
                    "for topic t partition 1."
                ),
            ],
        ),
        # Neither end is compared where it is open.
        (specific({T0: -2, T1: 5}), specific({T0: 0, T1: -1}), []),
        (times(5), times(-1), []),
        # The partitions of whole topics are not known yet.
        (specific({T0: 5}), specific({}, t=-1), []),
        (specific({}, t=-2), specific({T0: 5}), []),
        # Ends of two kinds are compared when both are offsets of the log.
        (specific({T0: 5}), times(1), []),
        (times(5), specific({T1: 1}), []),
        (Earliest(), specific({T0: 0}), []),
        (GlobalTimestamp(5, OnNoMatch.ERROR), GlobalTimestamp(1, OnNoMatch.LATEST), []),
    ],
)
def test_both_ends(starting: OffsetLimit, ending: OffsetLimit, expected: list[str]) -> None:
    """Ends of one kind name the same partitions, and no start lies behind its end."""
    assert mismatches(starting, ending) == expected


def test_partitions_are_reported_in_order() -> None:
    """Partitions that differ are listed by topic and number."""
    ten = TopicPartition("t", 10)
    [text] = mismatches(specific({ten: 1, T1: 1, T0: 1}), specific({ten: 1}))
    assert text.splitlines()[1] == (
        "Topic-partitions for start offset: t-0, t-1, t-10, topic-partitions for end offset: t-10."
    )


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"startingOffsets": "latest"}, [STARTING_LATEST]),
        ({"endingOffsets": "earliest"}, [ENDING_EARLIEST]),
        ({"endingOffsets": "abc"}, [named("endingOffsets", f"{OFFSETS_EXAMPLE}abc")]),
        (
            {"startingOffsets": "latest", "endingOffsets": "earliest"},
            [STARTING_LATEST, ENDING_EARLIEST],
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":-2,"1":1}}'},
            ["ending offset for t-0 can't be earliest for batch queries on Kafka"],
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            [
                (
                    "The specified start offset 5 is greater than the end offset 4 "
                    "for topic t partition 0."
                )
            ],
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"t":{"0":5}}',
                "endingOffsetsByTimestamp": '{"t":{"0":4}}',
            },
            [
                (
                    "The specified start timestamp 5 is greater than the end timestamp 4 "
                    "for topic t partition 0."
                )
            ],
        ),
    ],
)
def test_batch_options(limits: dict[str, str], expected: list[str]) -> None:
    """The options of a batch query are held against these rules."""
    assert problems(BASE | limits, QueryKind.BATCH) == tuple(expected)


def test_ends_that_are_overruled_are_not_compared() -> None:
    """An end that another option stands above cannot be wrong."""
    raw = {
        **BASE,
        "startingTimestamp": "5",
        "startingOffsets": "latest",
        "endingTimestamp": "1",
        "endingOffsets": "earliest",
    }
    options = parse_source_options(raw, QueryKind.BATCH)
    assert options.starting_offsets == GlobalTimestamp(5, OnNoMatch.ERROR)
    assert options.ending_offsets == GlobalTimestamp(1, OnNoMatch.LATEST)
