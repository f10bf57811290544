"""Options that neither source accepts, and the call and the words with which both refuse them.

Spark calls a Python source in ``load()`` without indicating whether the query is a batch or a
stream. What both kinds refuse is therefore refused in ``load()``, by a stream earlier than the JVM
connector does; what one kind accepts is refused later, by the first action or the started stream.
"""

import enum

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_kafka.bootstrap.spark import DefaultSource
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind

from ..spark.queries import OURS, PEER
from .peer import Held, peer
from .side_by_side import failure, root_cause

Options = dict[str, str]

NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1"}
"""No case gets as far as to ask a broker."""

SUBSCRIBE = {"subscribe": "t"}


class Call(enum.Enum):
    """The call of a user's program that fails."""

    LOAD = "load"
    RUN = "the first action, or the stream"


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
]

ASSIGNMENTS: list[Options] = [
    {"assign": text} for text in ('{"t":[0]', '{"t":"x"}', '{"t":{"0":1}}', '{"t":["a"]}')
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

FAIL_ON_DATA_LOSS: list[Options] = [{"failOnDataLoss": text} for text in ("yes", "", "1", " true")]

COLUMNS: list[Options] = [
    {name: text}
    for name in ("includeHeaders", "INCLUDEheaders")
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
    *({"endingOffsets": text} for text in ("earliest", "EarLiest", '{"t":{"0":-2}}')),
    *({"endingOffsets": text} for text in (*NO_OFFSETS, *NO_OFFSETS_OF_PARTITIONS)),
    *({"endingOffsetsByTimestamp": text} for text in (*NO_OFFSETS, *NO_OFFSETS_OF_PARTITIONS)),
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
    *({"endingOffsets": text} for text in ("earliest", "abc")),
    {"endingOffsetsByTimestamp": "abc"},
]

REFUSED_BY_BATCHES_ALONE: list[Options] = [
    *({"startingOffsets": text} for text in ("latest", "LATEST", '{"t":{"0":-1}}')),
    *({"endingTimestamp": text} for text in ("abc", "", "1.5", '{"t":{"0":5}}', "latest")),
]

REFUSED_BY_STREAMS_ALONE: list[Options] = [
    *({"endingOffsets": text} for text in ("latest", '{"t":{"0":5}}')),
    {"endingOffsetsByTimestamp": '{"t":{"0":5}}'},
    {"ENDINGoffsets": "latest"},
]


def told(options: Options) -> str:
    """Name a row by what is not the same in all."""
    given = [
        f"{name}={text}" for name, text in options.items() if (name, text) != ("subscribe", "t")
    ]
    return ",".join(given) or "nothing"


def cases(
    query: QueryKind, ours: Call, theirs: Call, tables: list[list[Options]]
) -> list[ParameterSet]:
    return [
        pytest.param(query, options, ours, theirs, id=f"{query.value}-{told(options)}")
        for table in tables
        for options in table
    ]


def with_topic(*tables: list[Options]) -> list[list[Options]]:
    return [[{**SUBSCRIBE, **options} for options in table] for table in tables]


BOTH = [STRATEGIES, *with_topic(NUMBERS, LIMITS, COLUMNS, SETTINGS)]
EARLIER = [ASSIGNMENTS, *with_topic(FAIL_ON_DATA_LOSS, STARTS, POLL_TIMEOUTS)]
"""Options that a batch of the JVM connector refuses in ``load()``, and a stream when it runs."""

CASES = [
    *cases(QueryKind.BATCH, Call.LOAD, Call.LOAD, [*BOTH, *EARLIER, *with_topic(BATCH_ENDS)]),
    *cases(QueryKind.STREAM, Call.LOAD, Call.LOAD, [*BOTH, *with_topic(STREAM_ENDS)]),
]
DECLARED_DIFFERENCES = [
    *cases(QueryKind.STREAM, Call.LOAD, Call.RUN, [*EARLIER, *with_topic(STREAM_NUMBERS)]),
    *cases(QueryKind.BATCH, Call.RUN, Call.LOAD, with_topic(REFUSED_BY_BATCHES_ALONE)),
    *cases(QueryKind.STREAM, Call.RUN, Call.LOAD, with_topic(REFUSED_BY_STREAMS_ALONE)),
]


@peer("KafkaRelationSuiteBase", "bad batch query options", Held.BESIDE_JVM)
@peer("KafkaRelationSuiteBase", "unresolved start offset greater than end offset", Held.BESIDE_JVM)
@peer(
    "KafkaRelationSuiteBase",
    "topic-partition for start offset and end offset must match",
    Held.BESIDE_JVM,
)
@peer("KafkaSourceSuiteBase", "bad source options", Held.BESIDE_JVM)
@peer("KafkaSourceSuiteBase", "unsupported kafka configs", Held.BESIDE_JVM)
@peer("KafkaMicroBatchV2SourceSuite", "minPartitions is supported", Held.BESIDE_JVM)
@pytest.mark.parametrize(("query", "options", "ours", "theirs"), [*CASES, *DECLARED_DIFFERENCES])
def test_bad_options_are_refused_by_the_same_call_in_the_same_words(
    spark, query, options, ours, theirs
):
    given = {**NOBODY, **options}
    their_call, error = refusal(spark, PEER, query, given)
    our_call, text = refusal_of_source(query, given)
    assert root_cause(error) in text
    assert (our_call, their_call) == (ours, theirs)


@peer("KafkaSourceSuiteBase", "bad source options", Held.BESIDE_JVM)
@pytest.mark.parametrize("query", QueryKind)
def test_missing_brokers_are_refused_in_the_same_words(spark, query):
    call, error = refusal(spark, PEER, query, SUBSCRIBE)
    our_call, text = refusal_of_source(query, SUBSCRIBE)
    assert root_cause(error) in text
    assert our_call is call is Call.LOAD


SAMPLE: list[Options] = [
    {},
    {"subscribe": "t", "minPartitions": "1.0"},
    {"subscribe": "t", "kafka.auto.offset.reset": "latest"},
    {"subscribe": "t", "startingOffsets": '{"t":{"0":"x"}}'},
    {"subscribe": "t", "endingOffsets": "earliest"},
]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        *((query, options) for options in SAMPLE for query in QueryKind),
        (QueryKind.BATCH, {"subscribe": "t", "startingOffsets": "latest"}),
        (QueryKind.STREAM, {"subscribe": "t", "endingOffsets": "latest"}),
    ],
    ids=lambda value: told(value) if isinstance(value, dict) else value.value,
)
def test_the_words_reach_whoever_runs_the_query(spark, query, options):
    given = {**NOBODY, **options}
    theirs = root_cause(refusal(spark, PEER, query, given)[1])
    call, error = refusal(spark, OURS, query, given)
    assert theirs in str(error)
    assert call is refusal_of_source(query, given)[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"client": "librdkafka"}, "Client 'librdkafka' is not known"),
        ({"client": "kafka-python", "kafka.no.such.thing": "1"}, "kafka.no.such.thing"),
        ({"client": "kafka-python", "kafka.fetch.max.bytes": "x"}, "kafka.fetch.max.bytes"),
        ({"client": "confluent", "kafka.fetch.max.bytes": "x"}, "kafka.fetch.max.bytes"),
    ],
    ids=["client", "unknown", "kafka-python", "confluent"],
)
def test_the_client_is_checked_in_load(spark, options, words):
    call, error = refusal(spark, OURS, QueryKind.STREAM, {**NOBODY, **SUBSCRIBE, **options})
    assert words in str(error)
    assert call is Call.LOAD


@pytest.mark.parametrize("query", QueryKind)
def test_a_schema_of_the_users_defers_the_refusal(spark, query):
    """With a schema of the user's Spark does not ask the source in ``load()``."""
    given = {**NOBODY, "subscribe": "t", "minPartitions": "1.0"}
    call, error = refusal(spark, OURS, query, given, schema="value binary")
    assert 'For input string: "1.0"' in str(error)
    assert call is Call.RUN


@peer("KafkaRelationSuiteBase", "bad batch query options", Held.BESIDE_JVM)
@pytest.mark.parametrize(
    "options", [{"startingOffsets": "latest"}, {"endingOffsets": "earliest"}], ids=told
)
def test_ends_are_checked_before_topics(spark, options):
    """A batch that names no topic either is refused for its ends first, if it is known as one."""
    theirs = root_cause(refusal(spark, PEER, QueryKind.BATCH, {**NOBODY, **options})[1])
    _, error = refusal(spark, OURS, QueryKind.BATCH, {**NOBODY, **options}, schema="value binary")
    topics = "One of the following options must be specified"
    assert topics not in theirs
    assert f"2 options cannot be used:\n  - {theirs}\n  - {topics}" in str(error)


def refusal(
    spark: SparkSession, source: str, query: QueryKind, options: Options, schema: str = ""
) -> tuple[Call, Exception]:
    reader = spark.read if query is QueryKind.BATCH else spark.readStream
    reader = reader.format(source).options(**options)
    try:
        table = (reader.schema(schema) if schema else reader).load()
    except Exception as error:  # noqa: BLE001  # Py4J's own, where PySpark has no class
        return Call.LOAD, error
    return Call.RUN, failure(lambda: _run(table, query))


def refusal_of_source(query: QueryKind, options: Options) -> tuple[Call, str]:
    """Call the source as Spark's Python workers do: they take longer to start than to refuse.

    ``create_data_source`` asks for the schema in ``load()``, ``plan_data_source_read`` for the
    reader when the query runs.
    """
    source = DefaultSource(CaseInsensitiveDict(options))
    try:
        schema = source.schema()
    except OptionsError as error:
        return Call.LOAD, str(error)
    reader = source.reader if query is QueryKind.BATCH else source.streamReader
    with pytest.raises(OptionsError) as caught:
        reader(schema)
    return Call.RUN, str(caught.value)


def _run(table: DataFrame, query: QueryKind) -> None:
    if query is QueryKind.BATCH:
        table.collect()
        return
    running = table.writeStream.format("noop").trigger(availableNow=True).start()
    try:
        running.awaitTermination(20)
    finally:
        running.stop()
