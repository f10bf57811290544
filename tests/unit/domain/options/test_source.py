import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options import client_settings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import (
    SourceOptions,
    ending_problems,
    ignored_options,
    mismatches,
    parse_any_source_options,
    parse_source_options,
    starting_problems,
    with_any_topic,
)
from pyspark_kafka.domain.reading.admission import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.domain.reading.offset_limits import (
    ByTimestamp,
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnMissingCommit,
    OnNoMatch,
)
from pyspark_kafka.domain.reading.ranges import TaskLimits
from pyspark_kafka.domain.reading.record_limits import RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, COLUMNS, WITHOUT_HEADERS, Projection
from pyspark_kafka.domain.security import login
from pyspark_kafka.domain.security.login import Login
from pyspark_kafka.domain.security.secrets import Secret
from pyspark_kafka.domain.security.tls import Tls
from pyspark_kafka.domain.subscription import Assign, Subscribe, SubscribePattern
from pyspark_kafka.domain.topic_partition import TopicPartition

from .given import (
    ASSIGN_EXAMPLE,
    AUTO_COMMIT,
    BASE,
    BOTH,
    ENDING_EARLIEST,
    ENDING_IN_STREAM,
    ENDING_TIME_IN_STREAM,
    INTERCEPTORS,
    MANY_STRATEGIES,
    MIN_ABOVE_MAX,
    NO_COLUMN,
    NO_SERVERS,
    NO_STRATEGY,
    OFFSETS_EXAMPLE,
    SERVERS,
    STARTING_LATEST,
    T0,
    T1,
    TIMESTAMPS_EXAMPLE,
    named,
    problems,
    specific,
)


def test_three_options_limit_tasks():
    given = {"minPartitions": "2", "maxPartitions": "4", "maxRecordsPerPartition": "300"}
    options = parse_source_options({**BASE, **given}, QueryKind.BATCH)
    assert options.task_limits == TaskLimits(2, 4, 300)
    assert parse_source_options(BASE, QueryKind.BATCH).task_limits == TaskLimits()


def test_a_stream_reads_new_records_by_default():
    options = parse_source_options(BASE, QueryKind.STREAM)
    assert (options.starting_offsets, options.ending_offsets) == (Latest(), Latest())
    assert options.read_limit == ReadAllAvailable()
    assert options.projection == WITHOUT_HEADERS
    assert options.kafka == (("bootstrap.servers", "b:9092"),)
    assert options.group_id is None
    assert not options.reads_committed_only


def test_four_options_are_the_limits_of_a_record():
    options = parse_source_options(BASE, QueryKind.BATCH)
    assert options.record_limits == RecordLimits()
    given = {
        "maxRecordBytes": "9",
        "maxRecordHeaders": "10",
        "maxRecordHeaderBytes": "11",
        "skipOversizedRecords": "true",
    }
    options = parse_source_options({**BASE, **given}, QueryKind.STREAM)
    assert options.record_limits == RecordLimits(9, 10, 11, skips=True)


def test_a_batch_query_reads_all_that_there_is_by_default():
    options = parse_source_options(BASE, QueryKind.BATCH)
    assert (options.starting_offsets, options.ending_offsets) == (Earliest(), Latest())


@BOTH
def test_a_rack_is_set_or_found(query):
    assert parse_source_options(BASE, query).client_rack_from is None
    found = parse_source_options(BASE | {"clientRackFrom": " Environment "}, query)
    assert found.client_rack_from == "environment"
    assert dict(found.in_rack("a").java.others)["client.rack"] == "a"
    assert "client.rack" not in dict(found.kafka)
    for name in ("kafka.client.rack", "kafka.client_rack"):
        (problem,) = problems(BASE | {"clientRackFrom": "aws", name: "a"}, query)
        assert problem == (
            "'kafka.client.rack' and 'clientRackFrom' exclude each other: set the rack of all "
            "workers, or where each finds its own"
        )


@BOTH
@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("groupIdPrefix", "mine", "group_id", None),
        ("kafka.group.id", "g", "group_id", "g"),
        ("kafka.group_id", "g", "group_id", "g"),
        ("kafka.bootstrap.servers", " x:1,y:2 ", "bootstrap_servers", "x:1,y:2"),
        ("kafka.isolation.level", "read_committed", "reads_committed_only", True),
        ("kafka.isolation.level", "read_uncommitted", "reads_committed_only", False),
        ("kafka.isolation_level", "read_committed", "reads_committed_only", True),
        ("startingTimestamp", " 5 ", "starting_offsets", GlobalTimestamp(5, OnNoMatch.ERROR)),
    ],
)
def test_an_option_replaces_its_default_in_both_kinds_of_query(query, name, text, attribute, value):
    assert getattr(parse_source_options(BASE | {name: text}, query), attribute) == value


@pytest.mark.parametrize(
    ("query", "name", "text", "limit"),
    [
        (QueryKind.STREAM, "starting", "latest", Latest()),
        (QueryKind.STREAM, "starting", '{"t":{"0":-1}}', specific({T0: -1})),
        (QueryKind.BATCH, "ending", "LATEST", Latest()),
        (QueryKind.BATCH, "ending", '{"t":{"0":23}}', specific({T0: 23})),
        (QueryKind.BATCH, "ending", '{"t":{"0":-1}}', specific({T0: -1})),
    ],
)
def test_streams_may_start_and_batches_end_at_the_latest_offsets(query, name, text, limit):
    options = parse_source_options(BASE | {f"{name}Offsets": text}, query)
    assert getattr(options, f"{name}_offsets") == limit


@BOTH
@pytest.mark.parametrize(
    ("name", "text", "subscription"),
    [
        ("subscribe", " b, a ,,b", Subscribe(("b", "a"))),
        ("subscribePattern", " a.* ", SubscribePattern("a.*")),
        ("assign", ' {"t":[0]} ', Assign(frozenset({T0}))),
    ],
)
def test_topics_a_pattern_or_partitions_are_read(query, name, text, subscription):
    assert parse_source_options(SERVERS | {name: text}, query).subscription == subscription


@pytest.mark.parametrize("name", ["subscribe", "SUBSCRIBEPATTERN", "assign"])
def test_any_topic(name):
    """A topic is named where none is, however its option is spelled; the rest stays as it is.

    No topic of Kafka has that name, so that it is none that another option names.
    """
    assert with_any_topic(SERVERS) == SERVERS | {"subscribe": "(any)"}
    assert with_any_topic(SERVERS | {name: "x"}) == SERVERS | {name: "x"}


NO_PARTITIONS = "No topicpartitions to assign as specified value for option 'assign' is "
NO_TOPICS = "No topics to subscribe to as specified value for option 'subscribe' is "
NO_PATTERN = "Pattern to subscribe is empty as specified value for option 'subscribePattern' is "


@BOTH
@pytest.mark.parametrize(
    ("strategies", "problem"),
    [
        ({}, NO_STRATEGY),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, MANY_STRATEGIES),
        ({"subscribe": "", "subscribePattern": ""}, MANY_STRATEGIES),
        ({"assign": "t"}, f"{NO_PARTITIONS}'t'"),
        ({"assign": ""}, f"{NO_PARTITIONS}''"),
        ({"assign": " x"}, f"{NO_PARTITIONS}' x'"),
        ({"assign": "{t"}, named("assign", f"{ASSIGN_EXAMPLE}{{t")),
        ({"assign": '{"t":1}'}, named("assign", f'{ASSIGN_EXAMPLE}{{"t":1}}')),
        ({"subscribe": ""}, f"{NO_TOPICS}''"),
        ({"subscribe": ", ,"}, f"{NO_TOPICS}', ,'"),
        ({"subscribe": " , "}, f"{NO_TOPICS}' , '"),
        ({"subscribePattern": ""}, f"{NO_PATTERN}''"),
        ({"subscribePattern": "  "}, f"{NO_PATTERN}'  '"),
        (
            {"subscribePattern": "("},
            (
                "Option 'subscribePattern': not a regular expression: '(': missing ), "
                "unterminated subpattern at position 0"
            ),
        ),
    ],
)
def test_exactly_one_strategy_with_a_value_is_required(query, strategies, problem):
    assert problems(SERVERS | strategies, query) == (problem,)


def unknown(name: str) -> str:
    return f"Option '{name}' is not known."


@BOTH
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("startingOffsets", " abc ", named("startingOffsets", f"{OFFSETS_EXAMPLE}abc")),
        (
            "startingOffsets",
            '{"t":"latest","t":{"0":1}}',
            (
                "Option 'startingOffsets': Topic 't' has both a topic-level offset and offsets of "
                'partitions, got {"t":"latest","t":{"0":1}}'
            ),
        ),
        ("kafka.enable.auto.commit", "false", AUTO_COMMIT),
        ("kafka.interceptor.classes", "x", INTERCEPTORS),
        ("kafka.bootstrap.servers", " ", NO_SERVERS),
        ("startingOfsets", "x", f"{unknown('startingofsets')} Did you mean 'startingOffsets'?"),
        (
            "Subscribe_Pattern",
            "",
            f"{unknown('subscribe_pattern')} Did you mean 'subscribePattern'?",
        ),
        ("zzz", "x", unknown("zzz")),
        ("deliveryGuarante", "x", unknown("deliveryguarante")),
    ],
)
def test_an_unusable_value_is_told_in_the_jvm_connectors_words(query, name, text, problem):
    assert problems(BASE | {name: text}, query) == (problem,)


@pytest.mark.parametrize("text", ["earliest", "latest", "abc", '{"t":{"0":-2}}'])
@pytest.mark.parametrize(
    ("name", "problem"),
    [("endingOffsets", ENDING_IN_STREAM), ("endingOffsetsByTimestamp", ENDING_TIME_IN_STREAM)],
)
def test_a_stream_refuses_ending_offsets_of_any_kind(name, text, problem):
    assert problems(BASE | {name: text}, QueryKind.STREAM) == (problem,)


def test_a_stream_ignores_an_ending_time():
    options = parse_source_options(BASE | {"endingTimestamp": "x"}, QueryKind.STREAM)
    assert options.ending_offsets == Latest()


BY_TIME: Final = '{"t":{"1":6,"0":5}}'


@pytest.mark.parametrize(
    ("query", "side", "no_match"),
    [
        (QueryKind.BATCH, "starting", OnNoMatch.ERROR),
        (QueryKind.STREAM, "starting", OnNoMatch.ERROR),
        (QueryKind.BATCH, "ending", OnNoMatch.LATEST),
    ],
)
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_time_for_all_precedes_times_by_partition_and_these_offsets(query, side, no_match, first):
    given = [
        ("Timestamp", "7", GlobalTimestamp(7, no_match)),
        ("OffsetsByTimestamp", BY_TIME, ByTimestamp(((T0, 5), (T1, 6)), no_match)),
        ("Offsets", '{"t":{"0":1}}', specific({T0: 1})),
    ][first:]
    raw = {f"{side}{name}": text for name, text, _ in reversed(given)}
    strategy = {"startingOffsetsByTimestampStrategy": "error"}
    options = parse_source_options(BASE | raw | strategy, query)
    assert getattr(options, f"{side}_offsets") == given[0][2]


@BOTH
@pytest.mark.parametrize(
    ("start", "limit"),
    [
        ({"startingTimestamp": "0"}, GlobalTimestamp(0, OnNoMatch.LATEST)),
        (
            {"startingOffsetsByTimestamp": BY_TIME},
            ByTimestamp(((T0, 5), (T1, 6)), OnNoMatch.LATEST),
        ),
        ({"startingOffsets": "earliest"}, Earliest()),
    ],
)
def test_the_strategy_goes_with_a_time_and_means_nothing_for_offsets(query, start, limit):
    raw = BASE | start | {"startingOffsetsByTimestampStrategy": "LATEST"}
    assert parse_source_options(raw, query).starting_offsets == limit


MIN = ReadMinRows(15, 5_000)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"maxTriggerDelay": "5s"}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "20"}, ReadMaxRows(20)),
        ({"maxBytesPerTrigger": "99"}, ReadMaxBytes(99)),
        ({"minOffsetsPerTrigger": "15"}, ReadMinRows(15, 900_000)),
        ({"minOffsetsPerTrigger": "15", "maxTriggerDelay": "5s"}, MIN),
        (
            {"minOffsetsPerTrigger": "15", "maxTriggerDelay": "5s", "maxOffsetsPerTrigger": "15"},
            CompositeReadLimit((MIN, ReadMaxRows(15))),
        ),
        (
            {
                "maxBytesPerTrigger": "99",
                "maxOffsetsPerTrigger": "20",
                "minOffsetsPerTrigger": "15",
                "maxTriggerDelay": "5s",
            },
            CompositeReadLimit((MIN, ReadMaxRows(20), ReadMaxBytes(99))),
        ),
    ],
)
def test_each_limit_that_is_given_holds(limits, expected):
    assert parse_source_options(BASE | limits, QueryKind.STREAM).read_limit == expected


@BOTH
def test_a_minimum_above_the_maximum_is_refused(query):
    raw = BASE | {"minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "15"}
    assert problems(raw, query) == (MIN_ABOVE_MAX,)


GENERAL_PROBLEMS: Final = [
    NO_STRATEGY,
    "minPartitions must be positive",
    "maxrecordsperpartition must be positive",
    AUTO_COMMIT,
    INTERCEPTORS,
    NO_SERVERS,
    MIN_ABOVE_MAX,
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (QueryKind.BATCH, [STARTING_LATEST, ENDING_EARLIEST, *GENERAL_PROBLEMS]),
        (QueryKind.STREAM, [ENDING_IN_STREAM, *GENERAL_PROBLEMS]),
    ],
)
def test_problems_are_in_the_jvm_connectors_order_and_unknown_options_last(query, expected):
    names = ["qqq", "uuu", "vvv", "www", "xxx", "yyy", "zzz"]
    raw = {
        **dict.fromkeys(reversed(names), "x"),
        "minOffsetsPerTrigger": "20",
        "maxOffsetsPerTrigger": "15",
        "maxRecordsPerPartition": "0",
        "minPartitions": "-1",
        "kafka.interceptor.classes": "x",
        "kafka.enable.auto.commit": "x",
        "endingOffsets": "earliest",
        "startingOffsets": "latest",
    }
    assert problems(raw, query) == (*expected, *map(unknown, names))


FEWER_PARTITIONS = "minPartitions(5) is higher than maxPartitions(4)"


def no_flag(column: str, text: str) -> str:
    return named(f"include{column}", f'For input string: "{text}"')


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"minPartitions": "5", "maxPartitions": "4"}, (FEWER_PARTITIONS,)),
        ({"kafka.bootstrap.servers": ""}, (NO_SERVERS,)),
        ({f"include{column}": "false" for column in COLUMNS}, (NO_COLUMN,)),
        ({f"include{column}": "false" for column in COLUMNS[:-1]}, (NO_COLUMN,)),
        (
            {"includeKey": "k", "includeHeaders": "h"},
            (no_flag("Key", "k"), no_flag("Headers", "h")),
        ),
        # What only one kind of query refuses is left out, if both refuse something.
        ({"startingOffsets": "latest", "minPartitions": "0"}, ("minPartitions must be positive",)),
        ({"endingOffsets": "latest", "minPartitions": "0"}, ("minPartitions must be positive",)),
        (
            {"endingOffsets": "abc"},
            (named("endingOffsets", f"{OFFSETS_EXAMPLE}abc"), ENDING_IN_STREAM),
        ),
        (
            {"startingOffsets": "latest", "endingOffsetsByTimestamp": BY_TIME},
            (STARTING_LATEST, ENDING_TIME_IN_STREAM),
        ),
    ],
)
def test_options_that_both_kinds_refuse_can_be_refused_before_the_kind_is_known(limits, expected):
    with pytest.raises(OptionsError) as caught:
        parse_any_source_options(BASE | limits)
    assert caught.value.problems == expected


@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets", "endingTimestamp"])
def test_options_that_one_kind_refuses_are_left_until_the_kind_is_known(name):
    assert parse_any_source_options(BASE | {name: "latest"}).projection == WITHOUT_HEADERS


ALL_GIVEN: Final = {
    "client": "confluent",
    "clientRackFrom": "aws",
    "subscribePattern": "T.*",
    "startingTimestamp": "1",
    "startingOffsetsByTimestamp": '{"T":{"0":1}}',
    "startingOffsets": '{"T":{"0":1}}',
    "startingOffsetsByTimestampStrategy": "LATEST",
    "startingOffsetsGroupFallback": "earliest",
    "failOnDataLoss": "false",
    "minPartitions": "2",
    "maxPartitions": "4",
    "maxRecordsPerPartition": "3",
    "maxRecordBytes": "9",
    "maxRecordHeaders": "10",
    "maxRecordHeaderBytes": "11",
    "skipOversizedRecords": "true",
    "kafkaConsumer.pollTimeoutMs": "5",
    "fetchOffset.numRetries": "6",
    "fetchOffset.retryIntervalMs": "7",
    "groupIdPrefix": "P",
    "includeKey": "false",
    "includeValue": "true",
    "includeTopic": "false",
    "includePartition": "false",
    "includeOffset": "true",
    "includeTimestamp": "false",
    "includeTimestampType": "false",
    "includeHeaders": "true",
    "kafka.bootstrap.servers": "B:9092",
    "kafka.Group.Id": "G",
}
OF_A_BATCH: Final = {
    "endingTimestamp": "8",
    "endingOffsetsByTimestamp": '{"T":{"0":1}}',
    "endingOffsets": '{"T":{"0":1}}',
    "pushFilters": "false",
}
OF_A_STREAM: Final = {
    "maxOffsetsPerTrigger": "20",
    "minOffsetsPerTrigger": "15",
    "maxTriggerDelay": "5s",
    "maxBytesPerTrigger": "99",
    "allowLimitsWithoutTrigger": "true",
    "partition.metadata.cache.ttl.ms": "4",
    "metadataPath": "/M",
    "metadataStorageOptions": '{"K": "V"}',
    "commitOffsetsToGroup": "L",
}


OF_BOTH: Final = {"partition.metadata.cache.ttl.ms", "metadataStorageOptions"}


def all_read(**of_a_kind: Any) -> SourceOptions:
    common = SourceOptions(
        client="confluent",
        subscription=SubscribePattern("T.*"),
        starting_offsets=GlobalTimestamp(1, OnNoMatch.LATEST),
        ending_offsets=Latest(),
        fail_on_data_loss=False,
        projection=Projection(("value", "offset", "headers")),
        read_limit=ReadAllAvailable(),
        min_partitions=2,
        max_partitions=4,
        max_records_per_partition=3,
        max_record_bytes=9,
        max_record_headers=10,
        max_record_header_bytes=11,
        skip_oversized_records=True,
        poll_timeout_ms=5,
        fetch_attempts=6,
        fetch_retry_interval_ms=7,
        metadata_ttl_ms=-1,
        allow_limits_without_trigger=False,
        metadata_path=None,
        commit_offsets_to_group=None,
        kafka=(("bootstrap.servers", "B:9092"), ("group.id", "G")),
        client_rack_from="aws",
    )
    return replace(common, **of_a_kind)


def spelled(names: Mapping[str, str]) -> st.SearchStrategy[dict[str, Callable[[str], str]]]:
    spellings = st.sampled_from([str.lower, str.upper, str.title, str.swapcase])
    return st.fixed_dictionaries(dict.fromkeys(names, spellings))


@given(spelled(ALL_GIVEN | OF_A_BATCH))
def test_names_of_a_batch_in_any_case(spelling):
    raw = {spelling[name](name): text for name, text in (ALL_GIVEN | OF_A_BATCH).items()}
    assert parse_source_options(raw, QueryKind.BATCH) == all_read(
        ending_offsets=GlobalTimestamp(8, OnNoMatch.LATEST)
    )


@given(spelled(ALL_GIVEN | OF_A_STREAM))
def test_names_of_a_stream_in_any_case(spelling):
    raw = {spelling[name](name): text for name, text in (ALL_GIVEN | OF_A_STREAM).items()}
    assert parse_source_options(raw, QueryKind.STREAM) == all_read(
        read_limit=CompositeReadLimit((MIN, ReadMaxRows(20), ReadMaxBytes(99))),
        metadata_ttl_ms=4,
        allow_limits_without_trigger=True,
        metadata_path=StoragePath("/M", '{"K": "V"}'),
        commit_offsets_to_group="L",
    )


@pytest.mark.parametrize(
    ("query", "ignored"),
    [
        (QueryKind.BATCH, [name for name in OF_A_STREAM if name not in OF_BOTH]),
        (QueryKind.STREAM, [*OF_A_BATCH]),
    ],
)
def test_ignored_options_are_named_as_in_the_table(query, ignored):
    names = [*reversed((ALL_GIVEN | OF_A_BATCH | OF_A_STREAM).keys()), "zzz"]
    assert ignored_options({name.upper(): "x" for name in names}, query) == ignored
    assert ignored_options(ALL_GIVEN, query) == []


OF_A_SINK: Final = ("topic", "deliveryGuarantee", "transactionalIdPrefix", "checkpointLocation")


@BOTH
def test_options_of_a_sink_are_ignored(query):
    raw = BASE | {name.upper(): "" for name in reversed(OF_A_SINK)}
    assert parse_source_options(raw, query) == parse_source_options(BASE, query)
    assert ignored_options(raw, query) == list(OF_A_SINK)


def test_options_survive_a_pickle():
    options = parse_source_options(ALL_GIVEN | {"kafka.sasl.password": "hush"}, QueryKind.STREAM)
    twin = pickle.loads(pickle.dumps(options))  # noqa: S301
    assert twin == options
    assert ("sasl.password", "hush") in twin.kafka


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_login_is_read_once(monkeypatch, is_sent):
    read_login = Mock(wraps=login.read_login)
    monkeypatch.setattr(client_settings, "read_login", read_login)
    raw = BASE | {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.ssl.key.password": "hush",
        "kafka.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="ada" password="hush";'
        ),
    }
    made = parse_source_options(raw, QueryKind.BATCH)
    options = pickle.loads(pickle.dumps(made)) if is_sent else made  # noqa: S301
    assert options.java.login == Login("PLAIN", "ada", Secret("hush"))
    assert options.java.tls == Tls(key_password=Secret("hush"))
    assert options.java == made.java
    read_login.assert_called_once()
    assert "hush" not in f"{options!r} {options.java!r} {options.java.login!r} {options.java.tls!r}"
    assert "hush" not in repr(dict(options.kafka))


SECRETS = pytest.mark.parametrize(
    "name", ["kafka.sasl.password", "kafka.sasl.jaas.config", "kafka.anything"]
)


@BOTH
@SECRETS
def test_secrets_are_not_represented(query, name):
    options = parse_source_options(BASE | {name: "hush-hush"}, query)
    for text in (repr(options), str(options), f"{options}"):
        assert "Subscribe(topics=('t',))" in text
        assert "hush-hush" not in text


@BOTH
@SECRETS
@pytest.mark.parametrize(
    "wrong",
    [
        {"subscribe": ""},
        {"assign": "{}"},
        {"startingOffsets": "x", "failOnDataLoss": "x"},
        {"kafka.auto.offset.reset": "x", "kafka.bootstrap.servers": ""},
        {"kafka.isolation.level": "x", "kafka.default.api.timeout.ms": "x"},
        {"sasl.password": "hush-hush", "password": "hush-hush"},
    ],
    ids="+".join,
)
def test_no_message_shows_a_secret(query, name, wrong):
    with pytest.raises(OptionsError) as caught:
        parse_source_options(BASE | {name: "hush-hush"} | wrong, query)
    assert "hush-hush" not in str(caught.value)
    assert "hush-hush" not in repr(caught.value)


@pytest.mark.parametrize(
    ("raw", "projection"),
    [
        ({}, WITHOUT_HEADERS),
        ({"includeHeaders": "true"}, ALL_COLUMNS),
        ({"INCLUDEHEADERS": "TRUE"}, ALL_COLUMNS),
        ({"includeheaders": "false"}, WITHOUT_HEADERS),
        ({"includeHeaders": "true", "startingOffsets": "latest"}, ALL_COLUMNS),
        ({"includeHeaders": "true", "endingOffsets": "latest"}, ALL_COLUMNS),
        (
            {"includeKey": "false", "includeTimestampType": "FALSE"},
            Projection(("value", "topic", "partition", "offset", "timestamp")),
        ),
        (
            {**{f"include{c}": "false" for c in COLUMNS}, "includeHeaders": "true"},
            Projection(("headers",)),
        ),
    ],
)
def test_the_columns_are_the_same_for_either_kind_of_query(raw, projection):
    assert parse_any_source_options(BASE | raw).projection == projection
    known = {name: text for name, text in raw.items() if not name.endswith("Offsets")}
    assert parse_source_options(BASE | known, QueryKind.BATCH).projection == projection


def bad(name: str, example: str) -> str:
    return named(name, f"{example}bad")


@pytest.mark.parametrize(
    ("raw", "query", "expected"),
    [
        (
            {"startingOffsets": "latest", "endingOffsets": "bad"},
            QueryKind.BATCH,
            [STARTING_LATEST, bad("endingOffsets", OFFSETS_EXAMPLE), NO_STRATEGY, NO_SERVERS],
        ),
        (
            {"startingOffsets": "bad", "endingOffsets": "latest"},
            QueryKind.STREAM,
            [ENDING_IN_STREAM, NO_STRATEGY, NO_SERVERS, bad("startingOffsets", OFFSETS_EXAMPLE)],
        ),
        (
            {"failOnDataLoss": "x"},
            QueryKind.BATCH,
            [NO_STRATEGY, NO_SERVERS, named("failOnDataLoss", 'For input string: "x"')],
        ),
        (
            {"startingOffsetsByTimestamp": "bad", "startingOffsetsByTimestampStrategy": "foo"},
            QueryKind.BATCH,
            [
                named("startingOffsetsByTimestampStrategy", "No value found for 'FOO'"),
                bad("startingOffsetsByTimestamp", TIMESTAMPS_EXAMPLE),
                NO_STRATEGY,
                NO_SERVERS,
            ],
        ),
    ],
)
def test_problems_stand_in_the_jvm_connector_s_order(raw, query, expected):
    assert list(problems(raw, query)) == expected


def test_a_number_beyond_any_bound_is_one_problem():
    raw = {**BASE, "kafka.default.api.timeout.ms": "9" * 5_000}
    assert len(problems(raw, QueryKind.BATCH)) == 1


def test_starts_and_ends_are_compared_last():
    raw = {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":1}}'}
    assert problems(SERVERS | raw, QueryKind.BATCH) == (NO_STRATEGY, behind("offset", 5, 1))


@pytest.mark.parametrize(
    ("given", "group"),
    [
        ({"kafka.group.id": "g"}, "g"),
        ({"kafka.group_id": "g"}, "g"),
        ({"commitOffsetsToGroup": "c"}, "c"),
        ({"kafka.group.id": "g", "commitOffsetsToGroup": "c"}, "g"),
    ],
)
def test_a_stream_begins_where_its_group_is(given, group):
    """`group` stands for the group of the client, or else for the one that is committed to."""
    options = parse_source_options(BASE | given | {"startingOffsets": " Group "}, QueryKind.STREAM)
    assert options.starting_offsets == CommittedOffsets(group)


@pytest.mark.parametrize("parse", [parse_source_options, parse_sink_options])
@pytest.mark.parametrize("name", ["group.id", "isolation.level", "transactional.id"])
def test_underscores_are_checked_as_dots(parse, name):
    with pytest.raises(OptionsError) as twice:
        parse({f"kafka.{name}": "a", f"kafka.{name.replace('.', '_')}": "b"}, QueryKind.BATCH)
    assert twice.value.problems[0] == (
        f"Option 'kafka.{name}' is set twice, with dots and with underscores: set it once"
    )
    found = []
    for spelling in (name, name.replace(".", "_")):
        with pytest.raises(OptionsError) as caught:
            parse({f"kafka.{spelling}": "a"}, QueryKind.BATCH)
        found.append(caught.value.problems)
    assert found[0] == found[1]


@BOTH
def test_a_group_needs_a_name(query):
    [problem] = problems(BASE | {"startingOffsets": "group"}, query)
    assert problem == (
        "startingOffsets 'group' needs a consumer group: set 'kafka.group.id', or "
        "'commitOffsetsToGroup' in a stream"
    )


def test_the_fallback_of_a_group_is_the_start_or_in_a_stream_the_end():
    given = BASE | {"startingOffsets": "group", "kafka.group.id": "g"}
    latest = given | {"startingOffsetsGroupFallback": "latest"}
    assert problems(latest, QueryKind.BATCH) == (
        "startingOffsetsGroupFallback can't be latest for batch queries on Kafka",
    )
    assert parse_source_options(latest, QueryKind.STREAM).starting_offsets == CommittedOffsets(
        "g", OnMissingCommit.LATEST
    )
    earliest = given | {"startingOffsetsGroupFallback": "earliest"}
    assert parse_source_options(earliest, QueryKind.BATCH).starting_offsets == CommittedOffsets(
        "g", OnMissingCommit.EARLIEST
    )


def test_storage_options_are_never_shown():
    given = BASE | {
        "metadataPath": "s3://key:hush@bucket/p",
        "metadataStorageOptions": '{"s":"hush"}',
    }
    assert "hush" not in repr(parse_source_options(given, QueryKind.STREAM))
    [problem] = problems(given | {"metadataStorageOptions": "hush"}, QueryKind.STREAM)
    assert problem == "metadataStorageOptions must be a JSON object"


def test_a_metadata_path_is_not_empty():
    [problem] = problems(BASE | {"metadataPath": " "}, QueryKind.STREAM)
    assert problem == "metadataPath must name a directory"


T10 = TopicPartition("t", 10)
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
def test_a_batch_query_does_not_begin_at_the_end(starting, expected):
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
def test_a_batch_query_does_not_end_at_the_start(ending, expected):
    assert ending_problems(ending) == expected


def other_partitions(starts: str, ends: str) -> str:
    return (
        "The specified start offset and end offset should have the same topic-partitions.\n"
        f"Topic-partitions for start offset: {starts}, topic-partitions for end offset: {ends}."
    )


def behind(kind: str, start: int, end: int, partition: int = 0) -> str:
    return (
        f"The specified start {kind} {start} is greater than the end {kind} {end} "
        f"for topic t partition {partition}."
    )


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        (specific({T0: 1, T1: 1}), specific({T0: 2}), [other_partitions("t-0, t-1", "t-0")]),
        (times(1), times(1, 2), [other_partitions("t-0", "t-0, t-1")]),
        (
            specific({T10: 1, T1: 1, T0: 1}),
            specific({T10: 1}),
            [other_partitions("t-0, t-1, t-10", "t-10")],
        ),
        (specific({T0: 5, T1: 1}), specific({T0: 1, T1: 1}), [behind("offset", 5, 1)]),
        (specific({T0: 5}), specific({T0: 0}), [behind("offset", 5, 0)]),
        (
            times(5, 6),
            times(1, 2),
            [behind("timestamp", 5, 1), behind("timestamp", 6, 2, partition=1)],
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
def test_ends_name_the_same_partitions_and_no_start_is_behind_its_end(starting, ending, expected):
    assert mismatches(starting, ending) == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (
            {"startingOffsets": "latest", "endingOffsets": "earliest"},
            (STARTING_LATEST, ENDING_EARLIEST),
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":-2,"1":1}}'},
            ("ending offset for t-0 can't be earliest for batch queries on Kafka",),
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            (behind("offset", 5, 4),),
        ),
    ],
)
def test_the_options_of_a_batch_query_are_checked_by_these_rules(limits, expected):
    assert problems(BASE | limits, QueryKind.BATCH) == expected


def test_ends_that_are_overruled_are_not_compared():
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


@pytest.mark.parametrize(
    "named", [{"subscribe": "t\0x"}, {"assign": '{"t\\u0000x":[0]}'}, {"subscribePattern": "t\0.*"}]
)
def test_no_topic_has_a_nul_in_its_name(named):
    """A client in C would read the topic whose name is the text before it."""
    raw = {"kafka.bootstrap.servers": "b:9092", **named}
    (problem,) = problems(raw, QueryKind.BATCH)
    assert problem.startswith("no topic can have a NUL character in its name, as specified value")
