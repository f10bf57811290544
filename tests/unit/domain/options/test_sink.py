import pickle
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.client_settings import ProducerSettings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.settings_table import ALL_REPLICAS, SETTINGS, Refused
from pyspark_kafka.domain.options.sink import (
    SinkOptions,
    dead_letter_sink,
    ignored_sink_options,
    parse_sink_options,
)
from pyspark_kafka.domain.options.sink_table import SINK_TABLE, DeliveryGuarantee
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.options.source_table import TABLE

from .given import ACKS, BASE, BOTH, RETRIES, SERVERS, sink_problems

NO_SERVERS: Final = (
    "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer"
)
NEEDS_IDEMPOTENCE: Final = (
    "deliveryGuarantee 'exactly-once' needs 'kafka.enable.idempotence' to be true."
)
NEEDS_A_PATH: Final = (
    "deliveryGuarantee 'exactly-once' needs the option 'metadataPath' where "
    "'checkpointLocation' is not among the query's options"
)

EXACTLY_ONCE: Final = SERVERS | {"deliveryGuarantee": "exactly-once", "checkpointLocation": "/c"}


@BOTH
def test_records_are_written_at_least_once_to_the_topics_of_rows_by_default(query):
    options = parse_sink_options(SERVERS, query)
    assert (options.topic, options.guarantee) == (None, DeliveryGuarantee.AT_LEAST_ONCE)
    assert (options.metadata_path, options.checkpoint) == (None, None)
    assert options.producer == ProducerSettings()
    assert not options.is_exactly_once
    assert options.kafka == (("bootstrap.servers", "b:9092"),)


ALL_GIVEN: Final = {
    "client": "confluent",
    "topic": "T",
    "deliveryGuarantee": "Exactly-Once",
    "metadataPath": "/M",
    "metadataStorageOptions": '{"K": "V"}',
    "transactionalIdPrefix": "P",
    "checkpointLocation": "/C",
    "kafka.bootstrap.servers": "B:9092",
    "kafka.Compression.Type": "zstd",
    "kafka.compression.ZSTD.level": "-1",
    "kafka.linger.ms": "5",
    "kafka.sasl.password": "Hush",
}
SPELLINGS: Final = st.sampled_from([str.lower, str.upper, str.title, str.swapcase])


@given(st.fixed_dictionaries(dict.fromkeys(ALL_GIVEN, SPELLINGS)))
def test_names_in_any_case(spelling):
    raw = {spelling[name](name): text for name, text in ALL_GIVEN.items()}
    assert parse_sink_options(raw, QueryKind.STREAM) == SinkOptions(
        client="confluent",
        topic="T",
        guarantee=DeliveryGuarantee.EXACTLY_ONCE,
        metadata_path=StoragePath("/M", '{"K": "V"}'),
        checkpoint=StoragePath("/C", '{"K": "V"}'),
        transactional_id_prefix="P",
        producer=ProducerSettings(compression="zstd", compression_level=-1),
        kafka=(("bootstrap.servers", "B:9092"), ("sasl.password", "Hush")),
    )


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/c", "/c/sinks/pyspark_kafka"),
        (" /c/ ", "/c/sinks/pyspark_kafka"),
        ("hdfs://n:9000/c", "hdfs://n:9000/c/sinks/pyspark_kafka"),
        ("s3://bucket", "s3://bucket/sinks/pyspark_kafka"),
        ("/", "/sinks/pyspark_kafka"),
    ],
)
def test_the_checkpoint_holds_the_metadata(location, expected):
    options = parse_sink_options(EXACTLY_ONCE | {"checkpointLocation": location}, QueryKind.STREAM)
    assert options.metadata_path == StoragePath(expected)
    assert options.checkpoint == StoragePath(location.strip())


def test_storage_options_open_the_checkpoint_too():
    options = parse_sink_options(
        EXACTLY_ONCE | {"metadataStorageOptions": '{"k": "v"}'}, QueryKind.STREAM
    )
    assert options.is_log_in_checkpoint
    assert options.checkpoint is not None
    assert options.metadata_path is not None
    assert options.checkpoint.options == options.metadata_path.options == {"k": "v"}


@pytest.mark.parametrize(
    ("path", "location", "is_read"),
    [
        ("/m", "/c", True),
        ("s3://b/m", "s3://b/c", True),
        ("s3://b/m", "s3://other/c", False),
        ("s3://b/m", "/c", False),
        ("/m", "hdfs://h:9000/c", False),
    ],
)
def test_a_path_overrides_the_checkpoint(path, location, *, is_read):
    """The checkpoint is only read on the same storage: another may let only Spark in."""
    raw = EXACTLY_ONCE | {"metadataPath": path, "checkpointLocation": location}
    options = parse_sink_options(raw, QueryKind.STREAM)
    checkpoint = StoragePath(location) if is_read else None
    assert (options.metadata_path, options.checkpoint) == (StoragePath(path), checkpoint)
    assert not options.is_log_in_checkpoint


@pytest.mark.parametrize("location", [{}, {"checkpointLocation": " "}])
def test_exactly_once_needs_a_place(location):
    """A checkpoint that Spark's configuration names is not passed to the sink."""
    raw = SERVERS | {"deliveryGuarantee": "exactly-once"} | location
    assert sink_problems(raw, QueryKind.STREAM) == (NEEDS_A_PATH,)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"acks": "1"}, (f"{NEEDS_IDEMPOTENCE} {ACKS}",)),
        ({"acks": "0", "retries": "0"}, (f"{NEEDS_IDEMPOTENCE} {ACKS} {RETRIES}",)),
        ({"enable.idempotence": "false"}, (NEEDS_IDEMPOTENCE,)),
        ({"enable.idempotence": "false", "acks": "1"}, (f"{NEEDS_IDEMPOTENCE} {ACKS}",)),
        ({"enable.idempotence": "true", "acks": "1"}, (ACKS,)),
    ],
)
def test_exactly_once_needs_idempotence(settings, expected):
    raw = EXACTLY_ONCE | {f"kafka.{name}": text for name, text in settings.items()}
    assert sink_problems(raw, QueryKind.STREAM) == expected


@pytest.mark.parametrize("settings", [{"kafka.acks": "-1"}, {"kafka.enable.idempotence": "TRUE"}])
def test_exactly_once_with_what_it_needs(settings):
    options = parse_sink_options(EXACTLY_ONCE | settings, QueryKind.STREAM)
    assert (options.producer.acks, options.producer.is_idempotent) == (ALL_REPLICAS, True)


@given(st.sets(st.sampled_from(["metadataPath", "checkpointLocation"])))
def test_a_batch_is_written_at_least_once(names):
    options = parse_sink_options(SERVERS | dict.fromkeys(names, "/m"), QueryKind.BATCH)
    assert options.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert (options.metadata_path, options.checkpoint) == (None, None)


def test_a_batch_cannot_be_written_exactly_once():
    with pytest.raises(OptionsError, match="'exactly-once' is for streams"):
        parse_sink_options(SERVERS | {"deliveryGuarantee": "exactly-once"}, QueryKind.BATCH)


OF_STREAMS: Final = ["metadataPath", "transactionalIdPrefix", "checkpointLocation"]
OF_SOURCES: Final = [
    option.name for option in TABLE if option.name not in {other.name for other in SINK_TABLE}
]


@pytest.mark.parametrize(
    ("query", "names"),
    [(QueryKind.BATCH, [*OF_STREAMS, *OF_SOURCES]), (QueryKind.STREAM, OF_SOURCES)],
)
def test_ignored_options_are_named_as_in_the_tables(query, names):
    both = {option.name.upper(): "x" for option in (*TABLE, *SINK_TABLE)}
    assert ignored_sink_options(both | {"kafka.acks": "1", "zzz": "x"}, query) == names
    assert ignored_sink_options(SERVERS | {"topic": "t"}, query) == []


@BOTH
@given(st.dictionaries(st.sampled_from(OF_SOURCES), st.text()))
def test_options_of_a_source_are_ignored(query, of_source):
    assert parse_sink_options(SERVERS | of_source, query) == parse_sink_options(SERVERS, query)


@BOTH
def test_one_set_of_options_for_both_sides(query):
    raw = BASE | {
        "topic": "copy",
        "checkpointLocation": "/c",
        "failOnDataLoss": "false",
        "kafka.group.id": "g",
        "kafka.acks": "all",
        "kafka.sasl.password": "hush",
    }
    source, sink = parse_source_options(raw, query), parse_sink_options(raw, query)
    assert dict(source.kafka)["sasl.password"] == dict(sink.kafka)["sasl.password"] == "hush"
    assert sink.topic == "copy"
    assert not source.fail_on_data_loss


@pytest.mark.parametrize(
    "name", [one.name for one in SETTINGS if isinstance(one.read, Refused) and one.write is None]
)
def test_settings_of_a_consumer_are_left_out(name):
    """A setting that reads refuse is no mistake in a write, which has no consumer for it."""
    raw = SERVERS | {f"kafka.{name}": "x", "kafka.group.id": "g"}
    kafka = parse_sink_options(raw, QueryKind.STREAM).kafka
    assert kafka == (("bootstrap.servers", "b:9092"), ("group.id", "g"))


@BOTH
@pytest.mark.parametrize("name", ["queryName", "path", "outputMode"])
def test_what_spark_hands_over_is_ignored(query, name):
    raw = SERVERS | {name: "x"}
    assert parse_sink_options(raw, query) == parse_sink_options(SERVERS, query)
    assert ignored_sink_options(raw, query) == []


@BOTH
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("topics", "'topics' is not known. Did you mean 'topic'?"),
        (
            "Delivery.Guarantee",
            "'delivery.guarantee' is not known. Did you mean 'deliveryGuarantee'?",
        ),
        ("startingOfsets", "'startingofsets' is not known."),
        ("zzz", "'zzz' is not known."),
        ("kafka", "'kafka' is not known."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(query, name, problem):
    assert sink_problems(SERVERS | {name: "x"}, query) == (f"Option {problem}",)


@pytest.mark.parametrize("servers", [{}, {"kafka.bootstrap.servers": " "}])
def test_a_sink_needs_bootstrap_servers(servers):
    assert sink_problems({"topic": "t", **servers}, QueryKind.BATCH) == (NO_SERVERS,)


def test_bootstrap_servers_have_no_user():
    """A user may be a password, so that the error does not repeat the servers."""
    servers = {"kafka.bootstrap.servers": "SASL_SSL://ann:SECRET@b:9092"}
    (problem,) = sink_problems({"topic": "t", **servers}, QueryKind.BATCH)
    assert problem.startswith("Option 'kafka.bootstrap.servers' must be host:port, without a user")
    assert "SECRET" not in problem


def test_a_setting_has_no_nul():
    """A client in C would take the text before it."""
    raw = {**SERVERS, "topic": "t", "kafka.client.id": "a\0b"}
    assert sink_problems(raw, QueryKind.BATCH) == (
        "Option 'kafka.client.id' has a NUL character (\\0). Remove it",
    )


WRONG: Final = {
    "kafka.key.serializer": "Kafka option 'key.serializer' is not supported as",
    "kafka.transactional.id": "Kafka option 'transactional.id' is not supported:",
    "kafka.acks": "Option 'kafka.acks' must be",
    "kafka.retries": "Option 'kafka.retries' must be",
    "kafka.default.api.timeout.ms": (
        "Option 'kafka.default.api.timeout.ms' must be a positive number of milliseconds, got '?'"
    ),
    "kafka.bootstrap.servers": NO_SERVERS,
    "topic": "topic must name a topic",
    "deliveryGuarantee": "deliveryGuarantee must be",
    "metadataPath": "metadataPath must name",
    "metadataStorageOptions": "metadataStorageOptions must be",
    "transactionalIdPrefix": "transactionalIdPrefix must not",
    "aaa": "Option 'aaa' is not known.",
    "zzz": "Option 'zzz' is not known.",
}
EMPTY: Final = {"kafka.bootstrap.servers", "topic", "metadataPath", "transactionalIdPrefix"}


@given(st.sets(st.sampled_from(sorted(WRONG)), min_size=1), st.sampled_from(QueryKind))
def test_all_problems_are_reported_together(names, query):
    raw = SERVERS | {name: "" if name in EMPTY else "?" for name in names}
    told = sink_problems(raw, query)
    expected = [start for name, start in WRONG.items() if name in names]
    assert len(told) == len(expected)
    assert all(map(str.startswith, told, expected))


def test_options_survive_a_pickle():
    options = parse_sink_options(ALL_GIVEN, QueryKind.STREAM)
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301


SECRETS: Final = {
    "kafka.sasl.password": "hush-hush",
    "kafka.anything": "hush-hush",
    "metadataPath": "s3://key:hush-hush@bucket/p",
    "metadataStorageOptions": '{"secret": "hush-hush"}',
    "checkpointLocation": "s3://key:hush-hush@bucket/c",
}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_not_represented(name):
    raw = EXACTLY_ONCE | {"topic": "t", name: SECRETS[name]}
    options = parse_sink_options(raw, QueryKind.STREAM)
    for text in (repr(options), str(options), f"{options}"):
        assert "topic='t'" in text
        assert "hush-hush" not in text


@given(st.sets(st.sampled_from(sorted(WRONG)), min_size=1), st.sampled_from(QueryKind))
def test_secrets_are_not_shown(names, query):
    wrong = dict.fromkeys(names, "?") | dict.fromkeys(names & EMPTY, "")
    raw = EXACTLY_ONCE | SECRETS | wrong | dict.fromkeys(("aaa", "password"), "hush-hush")
    with pytest.raises(OptionsError) as caught:
        parse_sink_options(raw | {"metadataStorageOptions": "hush-hush"}, query)
    assert "metadataStorageOptions must be a JSON object" in caught.value.problems
    assert "hush-hush" not in str(caught.value)
    assert "hush-hush" not in repr(caught.value)


def test_settings_of_the_producer_are_its_own():
    settings = [one.name for one in SETTINGS if one.write and not isinstance(one.write, Refused)]
    raw = SERVERS | dict.fromkeys((f"kafka.{name}" for name in settings), "1")
    raw |= {"kafka.compression.type": "none", "kafka.partitioner.class": ""}
    booleans = ("kafka.enable.idempotence", "kafka.partitioner.ignore.keys")
    options = parse_sink_options(raw | dict.fromkeys(booleans, "false"), QueryKind.BATCH)
    assert options.kafka == (("bootstrap.servers", "b:9092"),)


def sink(given: dict[str, str]) -> SinkOptions:
    return dead_letter_sink(parse_source_options(BASE | given, QueryKind.STREAM), "letters")


def test_the_client_and_its_settings_are_the_querys():
    """The letters go to the cluster that is read, with the same login."""
    given = {"client": "confluent", "kafka.security.protocol": "SSL", "kafka.fetch.min.bytes": "1"}
    made = sink(given)
    assert (made.client, made.topic) == ("confluent", "letters")
    assert made.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert dict(made.kafka) == {
        "bootstrap.servers": made.bootstrap_servers,
        "security.protocol": "SSL",
        "fetch.min.bytes": "1",
    }


def test_a_letter_may_be_as_large_as_a_record():
    """The producer's limits are those of the records that are read, where these are higher."""
    largest = (64 + 16) * 1024 * 1024
    assert sink({}).producer == ProducerSettings(max_request_size=largest, buffer_memory=largest)
    low = sink({"maxRecordBytes": "1", "maxRecordHeaderBytes": "1"}).producer
    assert low == ProducerSettings()
    limits = {"maxRecordBytes": str(2**31 - 1), "maxRecordHeaderBytes": str(2**31 - 1)}
    assert sink(limits).producer.max_request_size == 2**31 - 1


def test_settings_of_a_producer_apply():
    given = {"kafka.compression.type": "zstd", "kafka.delivery.timeout.ms": "5000"}
    producer = sink(given).producer
    assert (producer.compression, producer.delivery_timeout_ms) == ("zstd", 5_000)


def test_no_setting_makes_a_letter_less_safe():
    """All replicas acknowledge, without duplicates, and the key decides the partition."""
    given = {
        "kafka.acks": "0",
        "kafka.enable.idempotence": "false",
        "kafka.retries": "0",
        "kafka.max.in.flight.requests.per.connection": "9",
        "kafka.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        "kafka.partitioner.ignore.keys": "true",
        "kafka.transactional.id": "mine",
    }
    assert sink(given).producer == sink({}).producer


def test_an_invalid_setting_of_the_dead_letters_producer_is_refused():
    with pytest.raises(OptionsError, match=r"kafka\.compression\.type"):
        sink({"kafka.compression.type": "rar"})
