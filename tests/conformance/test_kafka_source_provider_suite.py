"""KafkaSourceProviderSuite: how options are spelled, and which of them an operator forbids."""

from dataclasses import dataclass
from typing import Any, Final

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_kafka import continuous
from pyspark_kafka.adapters.spark.batch_reader import KafkaBatchReader
from pyspark_kafka.adapters.spark.data_source import KafkaDataSource
from pyspark_kafka.adapters.spark.schema import spark_schema
from pyspark_kafka.adapters.spark.session import register_source
from pyspark_kafka.adapters.spark.sink_writers import KafkaBatchWriter, KafkaStreamWriter
from pyspark_kafka.adapters.spark.stream_reader import KafkaStreamReader
from pyspark_kafka.bootstrap.option_policy import VARIABLE
from pyspark_kafka.bootstrap.spark import ContainerUseCases, DefaultSource
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.options.sink_table import SINK_TABLE
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.options.source_table import TABLE
from pyspark_kafka.domain.reading.admission import ReadMaxRows, ReadMinRows
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.policy import UNRESTRICTED

from ..spark.queries import OURS
from ..spark.sinks import Sinks, refusal
from ..unit.bootstrap.test_options_page import WITHOUT_EFFECT, case_of
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import Sides, ends
from .stream_runs import run_once

Options = dict[str, str]

SUITE: Final = "KafkaSourceProviderSuite"
BATCH_MODE: Final = "batch mode - options should be handled as case-insensitive"
MICRO_BATCH_MODE: Final = "micro-batch mode - options should be handled as case-insensitive"
CONTINUOUS_MODE: Final = "continuous mode - options should be handled as case-insensitive"

SCHEMA: Final = spark_schema(Projection(("value", "topic")))
SERVERS: Final = {"kafka.bootstrap.servers": "dummy:9092"}
DUMMY: Final = {**SERVERS, "subscribe": "dummy"}

SPELLINGS = pytest.mark.parametrize(
    "spell", [str.upper, str.lower, str.swapcase], ids=["upper", "lower", "swapped"]
)


def batch_options(given: Options) -> SourceOptions:
    reader = DefaultSource(CaseInsensitiveDict(given)).reader(SCHEMA)
    assert isinstance(reader, KafkaBatchReader)
    return reader._options


def stream_options(given: Options) -> SourceOptions:
    reader = DefaultSource(CaseInsensitiveDict(given)).streamReader(SCHEMA)
    assert isinstance(reader, KafkaStreamReader)
    return reader._options


def continuous_options(given: Options) -> SourceOptions:
    problems: list[str] = []
    found = continuous._options(problems, UNRESTRICTED, given, None, "/never")
    assert found is not None, problems
    return found[0]


def batch_write_options(given: Options) -> SinkOptions:
    writer = DefaultSource(CaseInsensitiveDict(given)).writer(SCHEMA, False)
    assert isinstance(writer, KafkaBatchWriter)
    return writer._options


def stream_write_options(given: Options) -> SinkOptions:
    writer = DefaultSource(CaseInsensitiveDict(given)).streamWriter(SCHEMA, False)
    assert isinstance(writer, KafkaStreamWriter)
    return writer._options


@dataclass(frozen=True)
class PeerProvider:
    """Makes queries of the JVM connector without running them."""

    jvm: Any

    def batch(self, given: Options) -> Any:
        return self._scan(given).toBatch()

    def stream(self, given: Options) -> Any:
        return self._scan(given).toMicroBatchStream("dummy")

    def continuous_stream(self, given: Options) -> Any:
        return self._scan(given).toContinuousStream("dummy")

    def _scan(self, given: Options) -> Any:
        options = self.jvm.java.util.HashMap()
        for name, value in given.items():
            options.put(name, value)
        insensitive = self.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options)
        provider = self.jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider()
        return provider.getTable(insensitive).newScanBuilder(insensitive).build()


@pytest.fixture
def jvm(spark):
    return PeerProvider(spark._jvm)


@peer(SUITE, BATCH_MODE, Held.BESIDE_JVM)
@SPELLINGS
def test_a_batch_has_the_values_of_the_jvm_connectors(jvm, spell):
    given = {**DUMMY, spell("kafkaConsumer.pollTimeoutMs"): "1111"}
    assert batch_options(given).poll_timeout_ms == jvm.batch(given).pollTimeoutMs() == 1_111


@peer(SUITE, MICRO_BATCH_MODE, Held.BESIDE_JVM)
@SPELLINGS
def test_a_stream_has_the_values_of_the_jvm_connectors(jvm, spell):
    minimum = {spell("minOffsetsPerTrigger"): "1111", spell("maxTriggerDelay"): "2222"}
    common = {
        spell("kafkaConsumer.pollTimeoutMs"): "3333",
        spell("fetchOffset.numRetries"): "4444",
        spell("fetchOffset.retryIntervalMs"): "5555",
    }
    given = {**DUMMY, **minimum, **common}
    theirs, ours = jvm.stream(given), stream_options(given)
    limit = (theirs.minOffsetPerTrigger().get(), theirs.maxTriggerDelayMs())
    assert limit == (1_111, 2_222)
    assert ours.read_limit == ReadMinRows(*limit)
    fetch = theirs.kafkaOffsetReader()
    values = (
        theirs.pollTimeoutMs(),
        fetch.maxOffsetFetchAttempts(),
        fetch.offsetFetchAttemptIntervalMs(),
    )
    assert values == (3_333, 4_444, 5_555)
    assert (ours.poll_timeout_ms, ours.fetch_attempts, ours.fetch_retry_interval_ms) == values
    given = {**DUMMY, spell("maxOffsetsPerTrigger"): "6666"}
    assert jvm.stream(given).maxOffsetsPerTrigger().get() == 6_666
    assert stream_options(given).read_limit == ReadMaxRows(6_666)


@peer(SUITE, CONTINUOUS_MODE, Held.BESIDE_JVM)
@SPELLINGS
def test_a_continuous_query_has_the_values_of_the_jvm_connectors(jvm, spell):
    given = {
        **DUMMY,
        spell("kafkaConsumer.pollTimeoutMs"): "1111",
        spell("fetchOffset.numRetries"): "2222",
        spell("fetchOffset.retryIntervalMs"): "3333",
    }
    theirs, ours = jvm.continuous_stream(given), continuous_options(given)
    fetch = theirs.offsetReader()
    values = (
        theirs.pollTimeoutMs(),
        fetch.maxOffsetFetchAttempts(),
        fetch.offsetFetchAttemptIntervalMs(),
    )
    assert values == (1_111, 2_222, 3_333)
    assert (ours.poll_timeout_ms, ours.fetch_attempts, ours.fetch_retry_interval_ms) == values


@pytest.fixture
def sides(spark, kafka, client):
    return Sides(spark, kafka, client)


@peer(SUITE, BATCH_MODE, Held.BESIDE_JVM)
@one_client
def test_batch_queries_follow_options_in_any_case(sides, topics):
    topic = topics.create()
    topics.numbers(topic, 0, range(10))
    both = sides.batch(
        SUBSCRIBE=topic,
        sTARTINGoFFSETS=ends(topic, 2),
        endingoffsets=ends(topic, 8),
        INCLUDEHEADERS="TRUE",
        minpartitions="3",
        KAFKA__ISOLATION__LEVEL="read_committed",
    )
    assert both.numbers() == list(range(2, 8))
    assert "headers" in both.ours.columns
    assert both.ours.rdd.getNumPartitions() == both.theirs.rdd.getNumPartitions() == 3


READS: Final = {QueryKind.BATCH: batch_options, QueryKind.STREAM: stream_options}
WRITES: Final = {QueryKind.BATCH: batch_write_options, QueryKind.STREAM: stream_write_options}


@peer(SUITE, BATCH_MODE, Held.LIBRARY)
@peer(SUITE, MICRO_BATCH_MODE, Held.LIBRARY)
@pytest.mark.parametrize(
    ("query", "name"),
    [
        (query, option.name)
        for option in TABLE
        for query in READS
        if query in option.queries
        # It has one value that is not refused.
        if option.name != "pushFilters"
    ],
)
def test_every_option_of_a_read_has_its_effect_in_any_case(query, name):
    parse, case = READS[query], case_of("read", name)
    value = case.value or "msk"
    is_strategy = name in {"subscribe", "subscribePattern", "assign"}
    given = {**SERVERS, **({} if is_strategy else DUMMY), **case.needed}
    plain = parse({**given, name: value})
    if not is_strategy and name != "groupIdPrefix":
        assert plain != parse(given)
    assert parse({**given, name.upper(): value}) == parse({**given, name.lower(): value}) == plain


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (query, option.name)
        for option in SINK_TABLE
        for query in WRITES
        if query in option.queries
        if ("write", query.value, option.name) not in WITHOUT_EFFECT
        # Without it the login is refused, so that there is nothing to compare with.
        if option.name != "tokenProvider"
    ],
)
def test_every_option_of_a_write_has_its_effect_in_any_case(query, name):
    parse, case = WRITES[query], case_of("write", name)
    given, value = SERVERS | case.needed, case.value or ""
    plain = parse({**given, name: value})
    assert plain != parse(given)
    assert parse({**given, name.upper(): value}) == parse({**given, name.lower(): value}) == plain


@peer(SUITE, "SPARK-49442: partition.metadata.cache.ttl.ms validation", Held.SPARK)
def test_spark_49442_partition_metadata_cache_ttl_ms_validation(spark):
    """The time is -1, which disables the cache, or positive; a stream is refused in ``load()``."""
    name = "partition.metadata.cache.ttl.ms"

    def load(value: str) -> object:
        return spark.readStream.format(OURS).options(**{**DUMMY, name: value}).load()

    for good in ("-1", "1", "30000"):
        assert load(good)
        assert stream_options({**DUMMY, name: good}).metadata_ttl_ms == int(good)
    for bad in ("0", "-2", "-100"):
        line = refusal(lambda bad=bad: load(bad))  # type: ignore[misc]
        assert line == f"[KAFKA_INVALID_OPTIONS] {name} must be -1 or positive, got {bad}"


class OperatedSource(KafkaDataSource):
    """The data source under another name, so that a session can have it with an environment."""

    use_cases = ContainerUseCases()

    @classmethod
    def name(cls) -> str:
        return "kafka_of_an_operator"


OPERATED: Final = OperatedSource.name()
FORBIDDEN: Final = "max.poll.records"
SETTING: Final = f"kafka.{FORBIDDEN}"
REFUSAL: Final = (
    f"[KAFKA_DISALLOWED_OPTION] The Kafka option '{SETTING}' is not allowed because it is listed "
    f"in {VARIABLE}."
)


@pytest.fixture
def operated(spark):
    register_source(spark, OperatedSource, {VARIABLE: FORBIDDEN})
    return spark


@peer(SUITE, "SPARK-59328: disallowed Kafka options are rejected on the source path", Held.SPARK)
def test_spark_59328_disallowed_kafka_options_are_rejected_on_the_source_path(operated, tmp_path):
    given = {**DUMMY, SETTING: "1"}
    assert operated.read.format(OURS).options(**given).load().columns
    for reader in (operated.read, operated.readStream):
        assert refusal(reader.format(OPERATED).options(**given).load) == REFUSAL
    # With a schema of the user's Spark does not ask for one, and plans at once.
    batch = operated.read.schema("value binary").format(OPERATED).options(**given).load()
    assert refusal(batch.collect) == REFUSAL
    stream = operated.readStream.schema("value binary").format(OPERATED).options(**given).load()
    assert refusal(lambda: run_once(stream, tmp_path)) == REFUSAL


@peer(SUITE, "SPARK-59328: disallowed Kafka options are rejected on the sink path", Held.SPARK)
@one_client
def test_spark_59328_disallowed_kafka_options_are_rejected_on_the_sink_path(
    operated, kafka, client, tmp_path
):
    sinks = Sinks(operated, kafka, client, tmp_path)
    table = operated.range(3).selectExpr("cast(id as string) as value")
    options = {"topic": "t", "client": client, "kafka__max__poll__records": "1"}
    assert refusal(lambda: sinks.write(table, OPERATED, **options)) == REFUSAL
    assert refusal(lambda: sinks.write_stream(table, OPERATED, **options)) == REFUSAL
    for parse in WRITES.values():
        assert parse({**SERVERS, SETTING: "1"}).kafka


@peer(SUITE, "SPARK-59328: the disallowed-options denylist is an operator boundary", Held.SPARK)
def test_spark_59328_the_list_is_an_operator_boundary(operated, monkeypatch):
    """No spelling, option, statement or later variable of a query's author lifts the list."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setitem(operated.sparkContext.environment, VARIABLE, "")
    operated.sql(f"SET spark.executorEnv.{VARIABLE}=").collect()

    def load(**options: str) -> object:
        return operated.read.format(OPERATED).options(**DUMMY, **options).load()

    for name in (SETTING.upper(), "Kafka.Max.Poll.Records", "kafka.max.poll.records"):
        assert refusal(lambda name=name: load(**{name: "1", VARIABLE: ""})) == REFUSAL  # type: ignore[misc]
    # kafka-python's spelling of the same setting.
    assert refusal(lambda: load(**{"kafka.max_poll_records": "1"})) == REFUSAL
    options = ", ".join(f"'{name}' '{value}'" for name, value in {**DUMMY, SETTING: "1"}.items())
    view = f"CREATE TEMPORARY VIEW forbidden USING {OPERATED} OPTIONS ({options})"
    assert refusal(lambda: operated.sql(view)) == REFUSAL
    operated.conf.unset(f"spark.executorEnv.{VARIABLE}")


@peer(SUITE, "SPARK-59328: the disallowed-options denylist is an operator boundary", Held.SPARK)
def test_spark_59328_a_name_with_the_prefix_is_rejected(spark):
    register_source(spark, OperatedSource, {VARIABLE: SETTING})
    line = refusal(spark.read.format(OPERATED).options(**DUMMY).load)
    assert line.startswith(f"[KAFKA_INVALID_OPTION_POLICY] No query can run: {VARIABLE} lists ")
    assert "Kafka option names must be listed without the 'kafka.' prefix." in line
