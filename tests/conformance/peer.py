"""The tests of the JVM connector's own suites, by name, and their counterparts here.

A test marks each of its counterparts, whose assertions it makes as well, with
``@peer("Suite", "the name of the test there", Held.SPARK)``. Tests without a counterpart are in
``NOT_APPLICABLE`` or ``MISSING`` with the reason. ``report.py`` makes a page of them.
"""

import enum
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import pytest


class Held(enum.Enum):
    """How a test holds this library to a test of the JVM connector, the strongest way first."""

    BESIDE_JVM = "beside the JVM connector"
    SPARK = "through Spark"
    LIBRARY = "without Spark"
    EMBEDDED = "embedding only"


def peer(suite: str, name: str, held: Held) -> pytest.MarkDecorator:
    """Mark a test as the counterpart of one of the JVM connector's."""
    return pytest.mark.peer(suite, name, held)


def _peer_tests() -> Iterator[tuple[str, str]]:
    suite = ""
    for line in Path(__file__).with_name("peer_tests.txt").read_text("utf-8").splitlines():
        if line.startswith(" "):
            yield suite, line.strip()
        else:
            suite = line


PEER_TESTS: Final = {
    suite: tuple(name for _, name in named)
    for suite, named in groupby(_peer_tests(), key=itemgetter(0))
}
"""Every suite of the JVM connector with the names of its own tests.

Five tests there have the name ``comparison <one> <=> <two>``; they differ in the offsets.
"""

_REAL_TIME: Final = (
    "Real-time mode is a trigger of Spark's engine that its Python data sources do not have. "
    "`pyspark_kafka.continuous` runs beside the engine."
)
_GROUP: Final = (
    "The JVM connector joins the group only with deprecated offset fetching, and its test asserts "
    "nothing without; here no group is joined, and `commitOffsetsToGroup` is what shows one."
)
_ONE_READER: Final = (
    "`spark.sql.streaming.disabledV2MicroBatchReaders` has no effect on Python data sources: Spark "
    "always drives them as V2, and `KafkaSource` here is for other drivers."
)
_SQL_STATE: Final = (
    "The tests give exceptions SQL states of their own. Spark gives every error of a Python data "
    "source the state 38000; ours have the states of their conditions."
)
_FETCHED_DATA: Final = (
    "Spark assigns no partition to a Python worker, so a task keeps no records for the next one: "
    "it fetches its own range, and what it has fetched ends with it."
)


def _whole(suites: tuple[str, ...], reason: str) -> dict[tuple[str, str], str]:
    return {(suite, name): reason for suite in suites for name in PEER_TESTS[suite]}


def _some(suite: str, reasons: Mapping[str, str]) -> dict[tuple[str, str], str]:
    return {(suite, name): reason for name, reason in reasons.items()}


NOT_APPLICABLE: Final[dict[tuple[str, str], str]] = {
    **_whole(tuple(suite for suite in PEER_TESTS if "RealTime" in suite), _REAL_TIME),
    **_whole(("KafkaMicroBatchV1SourceSuite",), _ONE_READER),
    **_whole(
        ("KafkaSparkConfSuite",),
        "The test reads the capacity of the consumer cache from a `SparkConf` by its old name. "
        "Spark passes its configuration to no Python data source.",
    ),
    **_whole(
        ("KafkaDelegationTokenSuite",),
        "The tests obtain delegation tokens with Spark's token manager. Spark keeps them in the "
        "JVM and passes them to no Python data source.",
    ),
    **_some(
        "KafkaMicroBatchSourceSuiteBase",
        {"allow group.id prefix": _GROUP, "allow group.id override": _GROUP},
    ),
    **_some(
        "KafkaRelationSuiteV1",
        {
            "V1 Source is used when set through SQLConf": (
                "Spark has no V1 sources in Python; the setting has no effect on this source."
            )
        },
    ),
    **_some(
        "KafkaOffsetRangeCalculatorSuite",
        {
            "with minPartition = 3: N TopicPartitions to N offset ranges with executors": (
                "A Python data source cannot choose the executor of a task."
            )
        },
    ),
    **_whole(("KafkaExceptionsSuite",), _SQL_STATE),
    **_whole(("FetchedDataPoolSuite",), _FETCHED_DATA),
}
"""Why a Python data source cannot have what a test checks."""

MISSING: Final[dict[tuple[str, str], str]] = {}
"""Features that a Python data source can have, and this one does not."""
