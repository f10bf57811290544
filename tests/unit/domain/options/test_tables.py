"""Every option alone, of sources and of sinks: its default, what it is read from and refuses."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from pyspark_kafka.domain.options.option import Option, QueryKind
from pyspark_kafka.domain.options.sink_table import SINK_TABLE, DeliveryGuarantee
from pyspark_kafka.domain.options.source_table import RACK_PLACES, TABLE
from pyspark_kafka.domain.options.value_table import SINK_TABLE as WRITTEN_VALUES
from pyspark_kafka.domain.options.value_table import TABLE as VALUES
from pyspark_kafka.domain.reading.offset_limits import (
    CommittedOffsets,
    Earliest,
    Latest,
    OnMissingCommit,
    OnNoMatch,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

from .given import (
    BASE,
    OFFSETS_EXAMPLE,
    SERVERS,
    T0,
    T1,
    TIMESTAMPS_EXAMPLE,
    named,
    problems,
    sink_problems,
    specific,
)

TIME_HELP = (
    "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), "
    "minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us.\n"
)
LONGEST = 9_223_372_036_854_775_807


def not_a_number(*texts: str) -> dict[str, str]:
    return {text: f'For input string: "{text}"' for text in texts}


@dataclass(frozen=True)
class Case:
    """The facts about one option; ``bad`` are texts with the problems that they make."""

    default: object
    good: Mapping[str, object]
    bad: Mapping[str, str] = field(default_factory=dict)


def flag(*, default: bool) -> Case:
    good = {"true": True, "FALSE": False}
    return Case(default, good, not_a_number("x", "", "1", " true"))


def positive(name: str, default: int | None, most: int) -> Case:
    below = dict.fromkeys(["0", "-1"], f"{name} must be positive")
    wrong = not_a_number("a", "1.0", "", str(most + 1), str(-most - 2))
    return Case(default, {"1": 1, str(most): most}, below | wrong)


INT32_MAX = 2**31 - 1
U0 = TopicPartition("u", 0)
OFFSETS: Final = {
    "earLiEst": Earliest(),
    "LATEST": Latest(),
    ' {"t":{"0":23,"1":-2}} ': specific({T0: 23, T1: -2}),
    '{"t":"Earliest","u":{"0":5}}': specific({U0: 5}, t=-2),
}
TIMES: Final = {'{"t":{"1":-1,"0":1700000000000}}': ((T0, 1_700_000_000_000), (T1, -1))}
NO_PROVIDER: Final = "tokenProvider must be a function as 'module:function', or a name"
NO_OFFSETS: Final = {text: f"{OFFSETS_EXAMPLE}{text}" for text in ("abc", '{"t":[0]}', "5")}
NO_TIMES: Final = {text: f"{TIMESTAMPS_EXAMPLE}{text}" for text in ("x", '{"t":{"0":"1"}}')}
NO_TIME: Final = {
    text: f"Expected a single long value, got {text}"
    for text in ("", "abc", "1.0", "1e3", str(LONGEST + 1))
}

COLUMN_OPTIONS: Final = (
    "Key",
    "Value",
    "Topic",
    "Partition",
    "Offset",
    "Timestamp",
    "TimestampType",
)

SOURCE_CASES: Final[Mapping[str, Case]] = {
    "client": Case("kafka-python", {" confluent ": "confluent"}),
    "tokenProvider": Case(
        None,
        {" vault-tokens ": "vault-tokens", "my.module:tokens.get": "my.module:tokens.get"},
        dict.fromkeys(
            ("", "my.module", "my-module:get", "module:", "os:system('x')"),
            NO_PROVIDER,
        ),
    ),
    "clientRackFrom": Case(
        None,
        {" AWS ": "aws"} | {place: place for place in RACK_PLACES},
        {
            text: "clientRackFrom must be one of 'environment', 'aws', 'aws-zone-name', 'gcp', "
            f"'azure', got '{text}'"
            for text in ("", "HOME")
        },
    ),
    "subscribe": Case(None, {" a,b ": "a,b"}),
    "subscribePattern": Case(None, {" a.* ": "a.*"}),
    "assign": Case(None, {' {"t":[0]} ': '{"t":[0]}'}),
    "startingTimestamp": Case(None, {"1700000000000": 1_700_000_000_000, "0": 0}, NO_TIME),
    "startingOffsetsByTimestamp": Case((), TIMES, NO_TIMES),
    "startingOffsets": Case(None, OFFSETS | {" Group ": CommittedOffsets("")}, NO_OFFSETS),
    "startingOffsetsGroupFallback": Case(
        OnMissingCommit.ERROR,
        {one.value.title(): one for one in OnMissingCommit},
        {
            "none": "startingOffsetsGroupFallback must be one of 'error', 'earliest', 'latest', "
            "got 'none'"
        },
    ),
    "startingOffsetsByTimestampStrategy": Case(
        OnNoMatch.ERROR,
        {"error": OnNoMatch.ERROR, "Latest": OnNoMatch.LATEST},
        {"foo": "No value found for 'FOO'", "": "No value found for ''"},
    ),
    "endingTimestamp": Case(None, {"1700000000000": 1_700_000_000_000, "0": 0}, NO_TIME),
    "endingOffsetsByTimestamp": Case((), TIMES, NO_TIMES),
    "endingOffsets": Case(
        None, {"latest": Latest(), '{"t":"LATEST"}': specific({}, t=-1)}, NO_OFFSETS
    ),
    "failOnDataLoss": flag(default=True),
    "minPartitions": positive("minPartitions", None, INT32_MAX),
    "maxPartitions": positive("maxPartitions", None, INT32_MAX),
    "maxRecordsPerPartition": positive("maxrecordsperpartition", None, LONGEST),
    "maxOffsetsPerTrigger": positive("maxOffsetsPerTrigger", None, LONGEST),
    "minOffsetsPerTrigger": positive("minOffsetsPerTrigger", None, LONGEST),
    "maxTriggerDelay": Case(
        900_000,
        {"30s": 30_000, "15m": 900_000, "0": 0, "1h": 3_600_000},
        {
            "-1s": "maxTriggerDelay must not be negative, got -1s",
            "soon": f"{TIME_HELP}Failed to parse time string: soon",
            "5y": f'{TIME_HELP}Invalid suffix: "y"',
        },
    ),
    "maxBytesPerTrigger": positive("maxBytesPerTrigger", None, LONGEST),
    "allowLimitsWithoutTrigger": flag(default=False),
    "maxRecordBytes": positive("maxRecordBytes", 64 * 1024 * 1024, INT32_MAX),
    "maxRecordHeaders": positive("maxRecordHeaders", 10_000, INT32_MAX),
    "maxRecordHeaderBytes": positive("maxRecordHeaderBytes", 16 * 1024 * 1024, INT32_MAX),
    "skipOversizedRecords": flag(default=False),
    "kafkaConsumer.pollTimeoutMs": positive("kafkaConsumer.pollTimeoutMs", 120_000, INT32_MAX),
    "fetchOffset.numRetries": positive("fetchOffset.numRetries", 3, INT32_MAX),
    "fetchOffset.retryIntervalMs": Case(
        1_000,
        {"0": 0, str(INT32_MAX): INT32_MAX},
        {
            "-1": "fetchOffset.retryIntervalMs must not be negative",
            **not_a_number("a", "", str(INT32_MAX + 1)),
        },
    ),
    "partition.metadata.cache.ttl.ms": Case(
        -1,
        {"-1": -1, "1": 1, "30000": 30_000},
        {
            **{
                text: f"partition.metadata.cache.ttl.ms must be -1 or positive, got {text}"
                for text in ("0", "-2", "-100")
            },
            **not_a_number("a"),
        },
    ),
    "groupIdPrefix": Case(None, {"mine": "mine"}),
    "metadataPath": Case(None, {" /a/b ": "/a/b"}),
    "metadataStorageOptions": Case(
        "{}",
        {'{"b":1,"a":{}}': '{"a": {}, "b": 1}'},
        dict.fromkeys(["x", "[]", "", '"a"', "["], "metadataStorageOptions must be a JSON object"),
    ),
    "commitOffsetsToGroup": Case(
        None, {" g ": "g"}, {" ": "commitOffsetsToGroup must name a consumer group"}
    ),
    **{
        f"include{column}": flag(default=column != "Headers")
        for column in (*COLUMN_OPTIONS, "Headers")
    },
    "pushFilters": Case(
        False,
        {"false": False},
        {
            "true": "pushFilters must be false: Spark 4.1 to 4.3 apply the filters that were "
            "pushed last to every use of a DataFrame, so that its other queries would miss rows, "
            "and Spark 4.0 pushes none. Remove the option. To read less, set 'assign', "
            "'startingOffsets', 'startingTimestamp', 'endingOffsets' or 'endingTimestamp'",
            **not_a_number("x"),
        },
    ),
}

SINK_CASES: Final[Mapping[str, Case]] = {
    "client": Case("kafka-python", {" confluent ": "confluent"}),
    "topic": Case(
        None,
        {" t ": "t"},
        {
            **dict.fromkeys(["", " "], "topic must name a topic"),
            "a b": "topic must name a topic, got 'a b': a name has 1 to 249 letters (A to Z), "
            "digits, '.', '_' and '-'",
        },
    ),
    "deliveryGuarantee": Case(
        DeliveryGuarantee.AT_LEAST_ONCE,
        {
            " At-Least-Once ": DeliveryGuarantee.AT_LEAST_ONCE,
            "exactly-once": DeliveryGuarantee.EXACTLY_ONCE,
        },
        {
            text: f"deliveryGuarantee must be at-least-once or exactly-once, got '{text}'"
            for text in ("", "exactly_once", "at-most-once")
        },
    ),
    "metadataPath": Case(
        None,
        {" s3://b/p ": "s3://b/p"},
        dict.fromkeys(["", " "], "metadataPath must name a directory"),
    ),
    "metadataStorageOptions": Case(
        "{}",
        {'{"b":1,"a":{}}': '{"a": {}, "b": 1}'},
        dict.fromkeys(["x", "[]", ""], "metadataStorageOptions must be a JSON object"),
    ),
    "tokenProvider": Case(
        None,
        {" azure ": "azure", "my.module:get": "my.module:get"},
        dict.fromkeys(
            ("", "my.module", "my-module:get"),
            NO_PROVIDER,
        ),
    ),
    "transactionalIdPrefix": Case(
        "pyspark-kafka",
        {" mine ": "mine"},
        dict.fromkeys(["", " "], "transactionalIdPrefix must not be empty"),
    ),
    "checkpointLocation": Case(None, {" /c ": "/c", "": ""}),
}

TABLES = pytest.mark.parametrize(
    ("table", "cases"), [(TABLE, SOURCE_CASES), (SINK_TABLE, SINK_CASES)], ids=["source", "sink"]
)


def cases_of(table: Sequence[Option[Any]], cases: Mapping[str, Case], where: str) -> list[Any]:
    missing = [option.name for option in table if option.name not in cases]
    if missing:
        pytest.fail(f"add a case for {', '.join(missing)} to {where}")
    return [(option, cases[option.name]) for option in table]


OPTIONS: Final = [
    *cases_of(TABLE, SOURCE_CASES, "SOURCE_CASES"),
    *cases_of(SINK_TABLE, SINK_CASES, "SINK_CASES"),
]
GOOD: Final = [(option, *each) for option, case in OPTIONS for each in case.good.items()]
BAD: Final = [
    (option, *each, query)
    for option, case in OPTIONS
    for each in case.bad.items()
    for query in QueryKind
    if option not in TABLE or query in option.queries
]


def named_by_its_option(value: object) -> str | None:
    """Return the name of a case's option; its text is shown as it is."""
    return value.name if isinstance(value, Option) else None


@TABLES
def test_every_option_has_a_case(table, cases):
    assert [option.name for option in table] == list(cases)


@TABLES
def test_names_are_distinct(table, cases):
    assert len({option.key for option in table}) == len(cases)


def test_names_that_a_source_has_too():
    shared = {option.name for option in SINK_TABLE} & {option.name for option in TABLE}
    assert shared == {"client", "metadataPath", "metadataStorageOptions", "tokenProvider"}


@pytest.mark.parametrize(("option", "case"), OPTIONS, ids=named_by_its_option)
def test_defaults_are_those_of_the_jvm_connector(option, case):
    assert option.default == case.default


@pytest.mark.parametrize(("option", "text", "value"), GOOD, ids=named_by_its_option)
def test_values_are_read_at_their_bounds_and_without_the_space_around_them(option, text, value):
    assert option.parse(text) == value


@pytest.mark.parametrize(("option", "text", "problem", "query"), BAD, ids=named_by_its_option)
def test_bad_values_are_refused_by_the_option_and_by_queries(option, text, problem, query):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        option.parse(text)
    if option in TABLE:
        assert problems(BASE | {option.name: text}, query) == (named(option.name, problem),)
    else:
        assert sink_problems(SERVERS | {option.name: text}, query) == (problem,)


@pytest.mark.parametrize(
    "option",
    dict.fromkeys((*TABLE, *SINK_TABLE, *VALUES, *WRITTEN_VALUES)),
    ids=named_by_its_option,
)
def test_documentation(option):
    assert option.doc.endswith(".")
    assert option.values
