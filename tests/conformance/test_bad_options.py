"""Options that neither source takes, and the words in which both refuse them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options import QueryKind, parse_source_options

from ..spark.queries import OURS, PEER
from .peer import peer
from .side_by_side import causes, failure

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

Options = dict[str, str]

NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1"}
"""No case gets as far as to ask a broker."""

SUBSCRIBE = {"subscribe": "t"}

STRATEGIES: list[Options] = [
    {},
    {"subscribe": "t", "subscribePattern": "t.*"},
    {"subscribe": "t", "assign": '{"t":[0]}'},
    {"subscribePattern": "t", "assign": '{"t":[0]}'},
    {"subscribe": "t", "subscribePattern": "t", "assign": '{"t":[0]}'},
    {"SUBSCRIBE": "t", "Assign": '{"t":[0]}'},
    *({"subscribe": text} for text in ("", ",", " , ,")),
    *({"subscribePattern": text} for text in ("", "  ")),
    *({"assign": text} for text in ("", "  ", "t", "[]", '["t"]')),
    *({"assign": text} for text in ('{"t":[0]', '{"t":"x"}', '{"t":{"0":1}}', '{"t":["a"]}')),
]

NUMBERS: list[Options] = [
    {name: text}
    for name in (
        "minPartitions",
        "maxRecordsPerPartition",
        "MINpartitions",
        "maxrecordsPERPartition",
    )
    for text in ("a", "", " 5", "1.0", "0x10", "1_000", "0", "-1", "99999999999999999999")
] + [{"minPartitions": "99999999999"}]

STREAM_NUMBERS: list[Options] = [
    *({"maxOffsetsPerTrigger": text} for text in ("a", "", "1.0")),
    *({"minOffsetsPerTrigger": text} for text in ("a", "", "1.0")),
    *({"fetchOffset.numRetries": text} for text in ("a", "", "1.0")),
    *({"fetchOffset.retryIntervalMs": text} for text in ("a", "", "1.0")),
    *({"maxTriggerDelay": text} for text in ("a", "", "5x", "5 s", "1.5s")),
]

POLL_TIMEOUTS: list[Options] = [{"kafkaConsumer.pollTimeoutMs": text} for text in ("a", "", "1.0")]

LIMITS: list[Options] = [{"minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "15"}]

BOOLEANS: list[Options] = [
    {name: text}
    for name in ("failOnDataLoss", "includeHeaders", "INCLUDEheaders")
    for text in ("yes", "", "1", " true")
]

SETTINGS: list[Options] = [
    *({"kafka.auto.offset.reset": text} for text in ("earliest", "latest", "none")),
    {"kafka.AUTO.OFFSET.RESET": "latest"},
    {"kafka.key.deserializer": "a.Deserializer"},
    {"kafka.value.deserializer": "a.Deserializer"},
    {"kafka.enable.auto.commit": "true"},
    {"KAFKA.Enable.Auto.Commit": "false"},
    {"kafka.interceptor.classes": "an.Interceptor"},
]

NO_OFFSETS = ("abc", "", "1.5", "5", "{", "[]", '{"t":5}', '{"t":[0]}')
NO_OFFSETS_OF_PARTITIONS = ('{"t":{"0":"x"}}', '{"t":{"a":1}}')

STARTS: list[Options] = [
    *({"startingOffsets": text} for text in (*NO_OFFSETS, *NO_OFFSETS_OF_PARTITIONS)),
    *({"STARTINGoffsets": text} for text in ("abc", "earliest,latest")),
    *({"startingOffsetsByTimestamp": text} for text in (*NO_OFFSETS, *NO_OFFSETS_OF_PARTITIONS)),
    *({"startingOffsetsByTimestamp": text} for text in ("earliest", "latest")),
    *({"startingTimestamp": text} for text in ("abc", "", "1.5", '{"t":{"0":5}}', "latest")),
    *({"startingOffsetsByTimestampStrategy": text} for text in ("FOO", "", "latest ")),
    {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "foo"},
]

BATCH_ENDS: list[Options] = [
    *({"startingOffsets": text} for text in ("latest", "LATEST", '{"t":{"0":-1}}')),
    *({"endingOffsets": text} for text in ("earliest", "EarLiest", '{"t":{"0":-2}}')),
    *({"endingOffsets": text} for text in (*NO_OFFSETS, *NO_OFFSETS_OF_PARTITIONS)),
    *({"endingOffsetsByTimestamp": text} for text in (*NO_OFFSETS, *NO_OFFSETS_OF_PARTITIONS)),
    *({"endingTimestamp": text} for text in ("abc", "", "1.5", '{"t":{"0":5}}', "latest")),
    *(
        {f"starting{kind}": start, f"ending{kind}": end}
        for kind in ("Offsets", "OffsetsByTimestamp")
        for start, end in (
            ('{"t":{"0":5}}', '{"t":{"0":1}}'),
            ('{"t":{"0":5,"1":1}}', '{"t":{"0":9}}'),
            ('{"t":{"0":5}}', '{"t":{"0":9,"1":9},"u":{"0":9}}'),
        )
    ),
]

STREAM_ENDS: list[Options] = [
    *({"endingOffsets": text} for text in ("latest", "earliest", "abc", '{"t":{"0":5}}')),
    *({"endingOffsetsByTimestamp": text} for text in ('{"t":{"0":5}}', "abc")),
    {"ENDINGoffsets": "latest"},
]


def told(options: Options) -> str:
    """Name a row by what is not the same in all."""
    given = [
        f"{name}={text}" for name, text in options.items() if (name, text) != ("subscribe", "t")
    ]
    return ",".join(given) or "nothing"


def cases(query: QueryKind, tables: list[list[Options]]) -> list[ParameterSet]:
    """Return every row of the tables with its id."""
    return [
        pytest.param(query, options, id=f"{query.value}-{told(options)}")
        for table in tables
        for options in table
    ]


def with_topic(tables: list[list[Options]]) -> list[list[Options]]:
    """Name a topic in every row."""
    return [[{**SUBSCRIBE, **options} for options in table] for table in tables]


BOTH = [STRATEGIES, *with_topic([NUMBERS, LIMITS, BOOLEANS, SETTINGS, STARTS, POLL_TIMEOUTS])]
BATCH = cases(QueryKind.BATCH, [*BOTH, *with_topic([BATCH_ENDS])])
STREAM = cases(QueryKind.STREAM, [*BOTH, *with_topic([STREAM_ENDS, STREAM_NUMBERS])])


@peer("KafkaRelationSuiteBase", "bad batch query options")
@peer("KafkaSourceSuiteBase", "bad source options")
@peer("KafkaSourceSuiteBase", "unsupported kafka configs")
@peer("KafkaMicroBatchV2SourceSuite", "minPartitions is supported")
@pytest.mark.parametrize(("query", "options"), BATCH + STREAM)
def test_bad_options_are_refused_in_the_same_words(
    spark: SparkSession,
    query: QueryKind,
    options: Options,
) -> None:
    """What the JVM connector says of an option stands in what we say of it."""
    given = {**NOBODY, **options}
    theirs = causes(failure(lambda: _run(spark, PEER, query, given)))[-1]
    with pytest.raises(OptionsError) as ours:
        parse_source_options(given, query)
    assert theirs in str(ours.value)


@peer("KafkaSourceSuiteBase", "bad source options")
@pytest.mark.parametrize("query", QueryKind)
def test_missing_brokers_are_refused_in_the_same_words(
    spark: SparkSession,
    query: QueryKind,
) -> None:
    """A query that names no broker is refused, whatever else it has."""
    theirs = causes(failure(lambda: _run(spark, PEER, query, SUBSCRIBE)))[-1]
    with pytest.raises(OptionsError) as ours:
        parse_source_options(SUBSCRIBE, query)
    assert theirs in str(ours.value)


@pytest.mark.parametrize("query", QueryKind)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"subscribe": "t", "minPartitions": "1.0"},
        {"subscribe": "t", "kafka.auto.offset.reset": "latest"},
        {"subscribe": "t", "startingOffsets": '{"t":{"0":"x"}}'},
    ],
    ids=["no-strategy", "minPartitions", "auto.offset.reset", "startingOffsets"],
)
def test_the_words_reach_whoever_runs_the_query(
    spark: SparkSession,
    query: QueryKind,
    options: Options,
) -> None:
    """Spark hands the text of an error on as it is."""
    given = {**NOBODY, **options}
    theirs = causes(failure(lambda: _run(spark, PEER, query, given)))[-1]
    assert theirs in str(failure(lambda: _run(spark, OURS, query, given)))


def _run(spark: SparkSession, source: str, query: QueryKind, options: Options) -> None:
    if query is QueryKind.BATCH:
        table = spark.read.format(source).options(**options).load()
        if source == OURS:
            table.collect()
        return
    stream = spark.readStream.format(source).options(**options).load()
    running = stream.writeStream.format("noop").trigger(availableNow=True).start()
    try:
        running.awaitTermination(20)
    finally:
        running.stop()
