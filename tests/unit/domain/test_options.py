from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.offset_limits import Earliest, Latest, OffsetLimit, Specific
from pyspark_kafka.domain.options import (
    TABLE,
    Query,
    SourceOptions,
    includes_headers,
    parse_source_options,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
SERVERS: Final = {"kafka.bootstrap.servers": "b:9092"}
BASE: Final = {"subscribe": "t", **SERVERS}
BOTH = pytest.mark.parametrize("query", Query)

TAIL = "subscribe, subscribepattern, assign. See the docs for more details."
NO_STRATEGY = f"One of the following options must be specified for Kafka source: {TAIL}"
MANY_STRATEGIES = f"Only one of the following options can be specified for Kafka source: {TAIL}"
OFFSETS_EXAMPLE = 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got '
ASSIGN_EXAMPLE = 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got '
NO_SERVERS = "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
AUTO_COMMIT = "Kafka option 'enable.auto.commit' is not supported"
INTERCEPTORS = "Kafka option 'interceptor.classes' is not supported"
ENDING_IN_STREAM = "ending offset not valid in streaming queries"
STARTING_LATEST = "starting offset can't be latest for batch queries on Kafka"
ENDING_EARLIEST = "ending offset can't be earliest for batch queries on Kafka"


def specific(offsets: Mapping[TopicPartition, int]) -> Specific:
    return Specific(PartitionOffsets(offsets))


def problems(raw: Mapping[str, str], query: Query) -> tuple[str, ...]:
    """What is wrong with options that cannot be used."""
    with pytest.raises(OptionsError) as caught:
        parse_source_options(raw, query)
    return caught.value.problems


def test_defaults_of_a_stream() -> None:
    """A stream reads new records only, fails on data loss and has Spark's times and attempts."""
    assert parse_source_options(BASE, Query.STREAM) == SourceOptions(
        client="kafka-python",
        subscription=Subscribe(("t",)),
        starting_offsets=Latest(),
        ending_offsets=Latest(),
        fail_on_data_loss=True,
        include_headers=False,
        poll_timeout_ms=120_000,
        fetch_attempts=3,
        fetch_retry_interval_ms=1_000,
        kafka=(("bootstrap.servers", "b:9092"),),
    )


def test_defaults_of_a_batch() -> None:
    """A batch query reads all that there is."""
    options = parse_source_options(BASE, Query.BATCH)
    assert (options.starting_offsets, options.ending_offsets) == (Earliest(), Latest())


@BOTH
@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("client", " confluent ", "client", "confluent"),
        ("startingOffsets", "earLiEst", "starting_offsets", Earliest()),
        ("startingOffsets", '{"t":{"0":23}}', "starting_offsets", specific({T0: 23})),
        ("startingOffsets", ' {"t":{"0":-2}} ', "starting_offsets", specific({T0: -2})),
        ("failOnDataLoss", "FALSE", "fail_on_data_loss", False),
        ("includeHeaders", "true", "include_headers", True),
        ("kafkaConsumer.pollTimeoutMs", "512", "poll_timeout_ms", 512),
        ("fetchOffset.numRetries", "1", "fetch_attempts", 1),
        ("fetchOffset.retryIntervalMs", "0", "fetch_retry_interval_ms", 0),
        ("kafka.group.id", "g", "group_id", "g"),
        ("kafka.bootstrap.servers", " x:1,y:2 ", "bootstrap_servers", "x:1,y:2"),
        ("kafka.isolation.level", "read_committed", "reads_committed_only", True),
        ("kafka.isolation.level", "read_uncommitted", "reads_committed_only", False),
    ],
)
def test_value(query: Query, name: str, text: str, attribute: str, value: object) -> None:
    """An option that is given takes the place of its default, in both kinds of query."""
    raw = BASE | {name: text}
    assert getattr(parse_source_options(raw, query), attribute) == value


def test_unset_settings() -> None:
    """Without settings of the user's there is no group id, and uncommitted records are read."""
    options = parse_source_options(BASE, Query.STREAM)
    assert options.group_id is None
    assert not options.reads_committed_only


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("latest", Latest()),
        ('{"t":{"0":-1}}', specific({T0: -1})),
    ],
)
def test_stream_from_latest(text: str, limit: OffsetLimit) -> None:
    """A stream, unlike a batch query, may start at the end."""
    options = parse_source_options(BASE | {"startingOffsets": text}, Query.STREAM)
    assert options.starting_offsets == limit


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("LATEST", Latest()),
        ('{"t":{"0":23}}', specific({T0: 23})),
        ('{"t":{"0":-1}}', specific({T0: -1})),
    ],
)
def test_end_of_a_batch(text: str, limit: OffsetLimit) -> None:
    """A batch query ends at the latest offsets or at those that are named."""
    options = parse_source_options(BASE | {"endingOffsets": text}, Query.BATCH)
    assert options.ending_offsets == limit


@BOTH
@pytest.mark.parametrize(
    ("name", "text", "subscription"),
    [
        ("subscribe", " b, a ,,b", Subscribe(("b", "a"))),
        ("subscribePattern", " a.* ", SubscribePattern("a.*")),
        ("assign", ' {"t":[0]} ', Assign(frozenset({T0}))),
    ],
)
def test_subscription(query: Query, name: str, text: str, subscription: Subscription) -> None:
    """Topics, a pattern or partitions are what is read."""
    assert parse_source_options(SERVERS | {name: text}, query).subscription == subscription


@BOTH
@pytest.mark.parametrize(
    ("strategies", "problem"),
    [
        ({}, NO_STRATEGY),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, MANY_STRATEGIES),
        ({"subscribe": "", "subscribePattern": ""}, MANY_STRATEGIES),
        (
            {"assign": "t"},
            "No topicpartitions to assign as specified value for option 'assign' is 't'",
        ),
        (
            {"assign": ""},
            "No topicpartitions to assign as specified value for option 'assign' is ''",
        ),
        ({"assign": "{t"}, f"{ASSIGN_EXAMPLE}{{t"),
        ({"assign": '{"t":1}'}, f'{ASSIGN_EXAMPLE}{{"t":1}}'),
        (
            {"subscribe": ""},
            "No topics to subscribe to as specified value for option 'subscribe' is ''",
        ),
        (
            {"subscribe": ", ,"},
            "No topics to subscribe to as specified value for option 'subscribe' is ', ,'",
        ),
        (
            {"subscribePattern": ""},
            "Pattern to subscribe is empty as specified value for option 'subscribePattern' is ''",
        ),
        (
            {"subscribePattern": "("},
            "not a regular expression: '(': missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_bad_subscription(query: Query, strategies: dict[str, str], problem: str) -> None:
    """Exactly one strategy is given, with a value, or the JVM connector's words are heard."""
    assert problems(SERVERS | strategies, query) == (problem,)


@BOTH
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("startingOffsets", "abc", f"{OFFSETS_EXAMPLE}abc"),
        ("startingOffsets", '{"t":[0]}', f'{OFFSETS_EXAMPLE}{{"t":[0]}}'),
        ("failOnDataLoss", "x", 'For input string: "x"'),
        ("includeHeaders", "1", 'For input string: "1"'),
        ("kafkaConsumer.pollTimeoutMs", "a", 'For input string: "a"'),
        ("kafkaConsumer.pollTimeoutMs", "1.0", 'For input string: "1.0"'),
        ("kafkaConsumer.pollTimeoutMs", "0", "kafkaConsumer.pollTimeoutMs must be positive"),
        ("fetchOffset.numRetries", "", 'For input string: ""'),
        ("fetchOffset.numRetries", "0", "fetchOffset.numRetries must be positive"),
        (
            "fetchOffset.retryIntervalMs",
            "-1",
            "fetchOffset.retryIntervalMs must not be negative",
        ),
        ("kafka.enable.auto.commit", "false", AUTO_COMMIT),
        ("kafka.interceptor.classes", "x", INTERCEPTORS),
        ("kafka.bootstrap.servers", " ", NO_SERVERS),
        (
            "startingOfsets",
            "x",
            "Option 'startingofsets' is not known. Did you mean 'startingOffsets'?",
        ),
        (
            "Subscribe_Pattern",
            "x",
            "Option 'subscribe_pattern' is not known. Did you mean 'subscribePattern'?",
        ),
        ("zzz", "x", "Option 'zzz' is not known."),
    ],
)
def test_bad_value(query: Query, name: str, text: str, problem: str) -> None:
    """A value that cannot be used is told in the JVM connector's words, an unknown name in ours."""
    assert problems(BASE | {name: text}, query) == (problem,)


@pytest.mark.parametrize("text", ["earliest", "latest", "abc", '{"t":{"0":-2}}'])
def test_stream_has_no_end(text: str) -> None:
    """A stream refuses any ending offsets, whatever they are."""
    assert problems(BASE | {"endingOffsets": text}, Query.STREAM) == (ENDING_IN_STREAM,)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"startingOffsets": "latest"}, [STARTING_LATEST]),
        (
            {"startingOffsets": '{"t":{"0":-1,"1":-2,"2":-1}}'},
            [
                "startingOffsets for t-0 can't be latest for batch queries on Kafka",
                "startingOffsets for t-2 can't be latest for batch queries on Kafka",
            ],
        ),
        ({"endingOffsets": "earliest"}, [ENDING_EARLIEST]),
        (
            {"endingOffsets": '{"t":{"0":-1,"1":-2}}'},
            ["ending offset for t-1 can't be earliest for batch queries on Kafka"],
        ),
        ({"endingOffsets": "abc"}, [f"{OFFSETS_EXAMPLE}abc"]),
        (
            {"startingOffsets": "latest", "endingOffsets": "earliest"},
            [STARTING_LATEST, ENDING_EARLIEST],
        ),
    ],
)
def test_batch_limits(limits: dict[str, str], expected: list[str]) -> None:
    """A batch query may neither start at the end nor end at the start."""
    assert problems(BASE | limits, Query.BATCH) == tuple(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            Query.BATCH,
            [STARTING_LATEST, ENDING_EARLIEST, NO_STRATEGY, AUTO_COMMIT, INTERCEPTORS, NO_SERVERS],
        ),
        (Query.STREAM, [ENDING_IN_STREAM, NO_STRATEGY, AUTO_COMMIT, INTERCEPTORS, NO_SERVERS]),
    ],
)
def test_order_of_problems(query: Query, expected: list[str]) -> None:
    """Problems are told in the JVM connector's order, unknown options after them by their names."""
    unknown = ["qqq", "uuu", "vvv", "www", "xxx", "yyy", "zzz"]
    raw = {
        **dict.fromkeys(reversed(unknown), "x"),
        "kafka.interceptor.classes": "x",
        "kafka.enable.auto.commit": "x",
        "endingOffsets": "earliest",
        "startingOffsets": "latest",
    }
    told = [f"Option '{name}' is not known." for name in unknown]
    assert problems(raw, query) == (*expected, *told)


@BOTH
def test_all_bad_values_are_told_together(query: Query) -> None:
    """One run tells every option that has to be corrected."""
    raw = {
        "subscribe": "",
        "startingOffsets": "s",
        "failOnDataLoss": "f",
        "includeHeaders": "h",
        "kafkaConsumer.pollTimeoutMs": "p",
        "fetchOffset.numRetries": "n",
        "fetchOffset.retryIntervalMs": "i",
        "kafka.isolation.level": "l",
        "kafka.default.api.timeout.ms": "t",
        "zzz": "z",
    }
    found = problems(raw, query)
    assert sorted(found) == sorted(
        [
            "No topics to subscribe to as specified value for option 'subscribe' is ''",
            f"{OFFSETS_EXAMPLE}s",
            'For input string: "f"',
            'For input string: "h"',
            'For input string: "p"',
            'For input string: "n"',
            'For input string: "i"',
            (
                "Option 'kafka.isolation.level' must be 'read_uncommitted' or 'read_committed', "
                "got 'l'"
            ),
            (
                "Option 'kafka.default.api.timeout.ms' must be a positive number of milliseconds, "
                "got 't'"
            ),
            NO_SERVERS,
            "Option 'zzz' is not known.",
        ]
    )
    assert found[-1] == "Option 'zzz' is not known."


ALL_GIVEN: Final = {
    "client": "confluent",
    "subscribePattern": "T.*",
    "startingOffsets": '{"T":{"0":1}}',
    "failOnDataLoss": "false",
    "includeHeaders": "true",
    "kafkaConsumer.pollTimeoutMs": "5",
    "fetchOffset.numRetries": "6",
    "fetchOffset.retryIntervalMs": "7",
    "kafka.bootstrap.servers": "B:9092",
    "kafka.Group.Id": "G",
}


spellings = st.sampled_from([str.lower, str.upper, str.title, str.swapcase])


@given(st.fixed_dictionaries(dict.fromkeys(ALL_GIVEN, spellings)))
def test_names_in_any_case(spelled: dict[str, Callable[[str], str]]) -> None:
    """Names mean the same in any case, and values keep theirs."""
    raw = {spelled[name](name): text for name, text in ALL_GIVEN.items()}
    options = parse_source_options(raw, Query.BATCH)
    assert options == SourceOptions(
        client="confluent",
        subscription=SubscribePattern("T.*"),
        starting_offsets=specific({TopicPartition("T", 0): 1}),
        ending_offsets=Latest(),
        fail_on_data_loss=False,
        include_headers=True,
        poll_timeout_ms=5,
        fetch_attempts=6,
        fetch_retry_interval_ms=7,
        kafka=(("bootstrap.servers", "B:9092"), ("group.id", "G")),
    )


def test_options_survive_a_pickle() -> None:
    """Options reach the executors whole, the client's settings included."""
    options = parse_source_options(ALL_GIVEN | {"kafka.sasl.password": "hush"}, Query.STREAM)
    twin = pickle.loads(pickle.dumps(options))  # noqa: S301
    assert twin == options
    assert ("sasl.password", "hush") in twin.kafka


SECRETS = pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.password",
        "kafka.sasl.jaas.config",
        "kafka.ssl.key.password",
        "kafka.ssl.truststore.password",
        "kafka.anything",
    ],
)


@BOTH
@SECRETS
def test_secret_is_not_represented(query: Query, name: str) -> None:
    """The representation of options shows what is read and none of the client's settings."""
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
def test_secret_is_not_told(query: Query, name: str, wrong: dict[str, str]) -> None:
    """No message tells a client's setting or the value of an option that nobody knows."""
    with pytest.raises(OptionsError) as caught:
        parse_source_options(BASE | {name: "hush-hush"} | wrong, query)
    assert "hush-hush" not in str(caught.value)
    assert "hush-hush" not in repr(caught.value)


@pytest.mark.parametrize(
    ("raw", "included"),
    [
        ({}, False),
        ({"includeHeaders": "true"}, True),
        ({"INCLUDEHEADERS": "TRUE"}, True),
        ({"includeheaders": "false"}, False),
        ({"includeHeaders": "true", "failOnDataLoss": "x"}, True),
    ],
)
def test_includes_headers(raw: dict[str, str], included: bool) -> None:
    """Whether there are headers is known before anything else of the options is looked at."""
    assert includes_headers(raw) is included


def test_includes_headers_refusal() -> None:
    """Headers that are neither wanted nor not wanted are refused."""
    with pytest.raises(OptionsError) as caught:
        includes_headers({"includeHeaders": "x", "failOnDataLoss": "x"})
    assert caught.value.problems == ('For input string: "x"',)


def test_names_are_told_apart() -> None:
    """No two options are looked up under one name."""
    keys = [option.key for option in TABLE]
    assert len(set(keys)) == len(keys)
    assert keys == [option.name.lower() for option in TABLE]


def test_every_option_is_tried() -> None:
    """An option that is added to the table is added to the tests of options, too."""
    assert {option.name for option in TABLE} == {
        "assign",
        "subscribe",
        "endingOffsets",
        *(name for name in ALL_GIVEN if not name.startswith("kafka.")),
    }


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_documentation(option: Any) -> None:
    """Every option says what it means in whole sentences, and which values it takes."""
    assert option.doc.endswith(".")
    assert option.values


def test_batch_only_options() -> None:
    """Only ending offsets are for batch queries alone."""
    assert [option.name for option in TABLE if option.queries != set(Query)] == ["endingOffsets"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("subscribe", " , ", "No topics to subscribe to as specified value for option 'subscribe'"),
        ("subscribePattern", "  ", "Pattern to subscribe is empty as specified value for option"),
        ("assign", " x", "No topicpartitions to assign as specified value for option 'assign'"),
    ],
)
def test_a_value_is_quoted_as_it_was_written(name: str, text: str, problem: str) -> None:
    """An empty or malformed strategy is quoted with the space around it."""
    [message] = problems({name: text, **SERVERS}, Query.BATCH)
    assert message.startswith(problem)
    assert message.endswith(f"is '{text}'")


def test_offsets_are_quoted_without_the_space_around_them() -> None:
    """Spark trims offsets before it reads them."""
    [message] = problems({**BASE, "startingOffsets": " abc "}, Query.BATCH)
    assert message == f"{OFFSETS_EXAMPLE}abc"


@pytest.mark.parametrize(
    ("raw", "query", "expected"),
    [
        (
            {"startingOffsets": "latest", "endingOffsets": "bad"},
            Query.BATCH,
            [STARTING_LATEST, f"{OFFSETS_EXAMPLE}bad", NO_STRATEGY, NO_SERVERS],
        ),
        (
            {"startingOffsets": "bad", "endingOffsets": "latest"},
            Query.STREAM,
            [ENDING_IN_STREAM, NO_STRATEGY, NO_SERVERS, f"{OFFSETS_EXAMPLE}bad"],
        ),
        ({"failOnDataLoss": "x"}, Query.BATCH, [NO_STRATEGY, NO_SERVERS, 'For input string: "x"']),
    ],
)
def test_problems_stand_in_the_jvm_connector_s_order(
    raw: Mapping[str, str], query: Query, expected: list[str]
) -> None:
    """The first problem is the one that the JVM connector would have named."""
    assert list(problems(raw, query)) == expected


def test_a_number_beyond_any_bound_is_one_problem() -> None:
    """More digits than Python reads are refused like any other wrong number."""
    raw = {**BASE, "kafka.default.api.timeout.ms": "9" * 5_000}
    assert len(problems(raw, Query.BATCH)) == 1
