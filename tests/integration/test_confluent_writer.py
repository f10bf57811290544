from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    OptionsError,
    UnknownTopicError,
    UnsupportedFeatureError,
)
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.writing.errors import RecordDeliveryError, RecordTooLargeError
from pyspark_kafka.domain.writing.transaction import DeliveryStats
from tests.slowness import bound_s

from .processes import succeeds_in_child, threads

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = bound_s(30)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def options_of(addresses: Mapping[str, str], **given: str) -> SinkOptions:
    named = {name.replace("__", "."): value for name, value in given.items()}
    options = {**addresses, "client": "confluent", **named}
    return parse_sink_options(options, QueryKind.BATCH, UNRESTRICTED)


def values(*texts: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(texts, pa.binary())})


def read(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
        }
    )
    try:
        here = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(here, SECONDS)
        consumer.assign([here])
        found: list[Any] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < end and time.monotonic() < deadline:
            found += consumer.consume(min(10_000, end - len(found)), 0.2)
        return found
    finally:
        consumer.close()


def texts(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[bytes]:
    return [message.value() for message in read(cluster, topic, partition)]


@pytest.fixture
def writer_of(kafka):
    made = []

    def make(**given: str) -> ConfluentRecordWriter:
        made.append(ConfluentRecordWriter(options_of(kafka.options, **given)))
        return made[-1]

    yield make
    for writer in made:
        writer.close()


@pytest.fixture
def topic_of(kafka, fresh_name):
    def create(partitions: int = 1, **config: str) -> str:
        name = fresh_name()
        named = {option.replace("__", "."): value for option, value in config.items()}
        kafka.create_topic(name, partitions, config=named)
        return name

    return create


def test_the_first_moment_of_1970_is_refused(writer_of, topic_of):
    """The library would write the time of now for it."""
    stamps = pa.array([dt.datetime(1970, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_pydict({"value": [b"v"], "timestamp": stamps})
    with pytest.raises(UnsupportedFeatureError, match="1970-01-01"):
        writer_of().write(batch, topic_of())


@pytest.mark.parametrize("column", ["key", "value", "headers"])
def test_a_small_buffer_blocks_and_loses_nothing(kafka, writer_of, topic_of, column):
    """A megabyte goes through 16 KiB, wherever in the records it is."""
    topic = topic_of()
    writer = writer_of(kafka__buffer__memory="16384", kafka__max__request__size="16384")
    for _ in range(10):
        content: Any = [bytes(1_000)] * 100
        if column == "headers":
            content = pa.array([[{"key": "h", "value": each}] for each in content], HEADERS)
        writer.write(pa.RecordBatch.from_pydict({column: content}), topic)
    assert writer.flush().records == 1_000
    assert len(read(kafka, topic)) == 1_000


def test_a_record_may_be_larger_than_the_buffer(kafka, writer_of, topic_of):
    topic = topic_of()
    writer = writer_of(kafka__buffer__memory="16384")
    sizes = [16_000, 16_384, 900_000, 900_000, 10]
    writer.write(values(*map(bytes, sizes)), topic)
    assert writer.flush() == DeliveryStats(5, sum(sizes))
    assert [len(value) for value in texts(kafka, topic)] == sizes


def test_a_record_is_held_to_the_size_of_a_request(kafka, writer_of, topic_of):
    topic = topic_of()
    writer = writer_of(kafka__max__request__size="2000")
    # Java adds 82 bytes, and one each for a null key, the number of headers, and two for the
    # value's length.
    fits = 2_000 - 82 - 1 - 1 - 2
    writer.write(values(bytes(fits)), topic)
    assert writer.flush().records == 1
    said = (
        "The message is 2001 bytes when serialized which is larger than 2000, which is the value "
        "of the max.request.size configuration."
    )
    with pytest.raises(RecordTooLargeError, match=said) as caught:
        writer.write(values(b"small", bytes(fits + 1)), topic)
    assert caught.value.size == fits + 1
    assert len(read(kafka, topic)) == 1


def test_the_size_may_be_said_in_librdkafkas_words(kafka, writer_of, topic_of):
    topic = topic_of(max__message__bytes="3000000")
    writer = writer_of(kafka__message__max__bytes="3000000")
    writer.write(values(bytes(2_000_000)), topic)
    assert writer.flush().records == 1
    with pytest.raises(RecordTooLargeError, match="larger than 3000000"):
        writer.write(values(bytes(3_000_000)), topic)
    assert len(read(kafka, topic)) == 1


def test_a_topic_that_comes_to_be_is_written_to(kafka, writer_of, fresh_name):
    writer, topic = writer_of(), fresh_name()
    later = threading.Timer(0.3, kafka.create_topic, (topic,))
    later.start()
    writer.write(values(b"v"), topic)
    assert writer.flush().records == 1
    later.join()
    assert texts(kafka, topic) == [b"v"]


def test_nothing_is_lost_in_a_topic_that_was_just_created(kafka, fresh_name):
    """A broker announces a partition before its leader serves it."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for _ in range(15):
        topic = fresh_name()
        [created] = admin.create_topics([NewTopic(topic, 4, 1)]).values()
        writer = ConfluentRecordWriter(
            # Each write becomes a batch of its own.
            options_of(kafka.options, kafka__queue__buffering__max__ms="0")
        )
        batch = pa.RecordBatch.from_pydict(
            {"value": [b"v"] * 4, "partition": pa.array(range(4), pa.int32())}
        )
        for _ in range(30):
            writer.write(batch, topic)
        assert writer.flush().records == 120
        writer.close()
        created.result()
        assert [len(texts(kafka, topic, number)) for number in range(4)] == [30] * 4


def test_a_topic_that_goes_is_reported(kafka, writer_of, topic_of):
    writer, topic = writer_of(kafka__max__block__ms="1000"), topic_of()
    writer.write(values(b"v"), topic)
    writer.flush()
    kafka.delete_topic(topic)
    writer.write(values(b"w"), topic)
    with pytest.raises((UnknownTopicError, RecordDeliveryError), match=r"not exist|deleted"):
        writer.flush()


def test_a_name_that_no_topic_may_have_is_refused(writer_of):
    for name in ("", "not a name"):
        with pytest.raises(KafkaRequestError, match="a request for metadata"):
            writer_of(kafka__max__block__ms="1000").write(values(b"v"), name)


def test_partitions_take_turns(kafka, writer_of, topic_of):
    topic = topic_of(3)
    name = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    writer = writer_of(kafka__partitioner__class=name)
    for _ in range(30):
        writer.write(pa.RecordBatch.from_pydict({"key": [b"k", b"k"]}), topic)
    writer.flush()
    assert [len(read(kafka, topic, number)) for number in range(3)] == [20, 20, 20]


def test_keys_may_be_ignored(kafka, writer_of, topic_of):
    topic = topic_of(2)
    writer = writer_of(
        kafka__partitioner__ignore__keys="true",
        # Otherwise one partition is taken for some milliseconds.
        kafka__sticky__partitioning__linger__ms="0",
    )
    writer.write(pa.RecordBatch.from_pydict({"key": [b"k"] * 1_000}), topic)
    writer.flush()
    assert all(read(kafka, topic, number) for number in range(2))


@pytest.mark.parametrize(
    "given",
    [
        {"kafka__acks": "0"},
        {"kafka__acks": "1", "kafka__retries": "0"},
        {"kafka__enable__idempotence": "false", "kafka__batch__size": "0"},
        {"kafka__max__in__flight__requests__per__connection": "1"},
        {"kafka__delivery__timeout__ms": "2000", "kafka__max__request__size": "500"},
        {"kafka__linger__ms": "100000", "kafka__compression__codec": "lz4"},
        {
            # A producer ignores settings of consumers.
            "kafka__fetch__max__bytes": "2000",
            "kafka__isolation__level": "read_committed",
            "kafka__group__id": "g",
            "kafka__session__timeout__ms": "10000",
            "kafka__queued__min__messages": "5",
        },
    ],
    ids=lambda given: next(iter(given)),
)
def test_settings_are_followed_without_a_warning(kafka, writer_of, topic_of, caplog, given):
    topic, writer = topic_of(), writer_of(**given)
    with caplog.at_level(logging.DEBUG, logger="pyspark_kafka.librdkafka"):
        writer.write(values(b"v", b"w"), topic)
        assert writer.flush().records == 2
        writer.close()
    assert [line.getMessage() for line in caplog.records if line.name.startswith("pyspark_")] == []
    # Without acknowledgements a record may arrive after the flush.
    deadline = time.monotonic() + SECONDS
    while len(found := texts(kafka, topic)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert found == [b"v", b"w"]


@pytest.mark.parametrize(
    "setting",
    [
        {"kafka.debug": "nothing"},
        {"kafka.message.max.bytes": "soon"},
        {"kafka.topic.metadata.refresh.interval.ms": "soon"},
        {"kafka.partitioner": "nobody"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_a_setting_that_is_refused_is_an_error_of_options(writer_of, setting):
    with pytest.raises(OptionsError, match="The client 'confluent'"):
        writer_of(**setting).write(values(b"v"), "t")


def nowhere(**given: str) -> ConfluentRecordWriter:
    [port] = free_ports(1)
    return ConfluentRecordWriter(
        options_of({"kafka.bootstrap.servers": f"127.0.0.1:{port}"}, **given)
    )


def test_why_no_broker_is_reached_is_said(capfd):
    writer = nowhere(kafka__max__block__ms="1000")
    start = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"within 1 s .*Connection refused"):
        writer.write(values(b"v"), "t")
    writer.close()
    assert time.monotonic() - start < bound_s(20)
    assert capfd.readouterr().err == ""


def test_a_writer_that_is_dropped_gives_back_its_threads(kafka, topic_of):
    topic, before = topic_of(), threads()
    writer = ConfluentRecordWriter(
        options_of(kafka.options, kafka__queue__buffering__max__ms="60000")
    )
    writer.write(values(b"v"), topic)
    assert threads() > before
    start = time.monotonic()
    del writer
    deadline = start + SECONDS
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before
    assert time.monotonic() - start < bound_s(20)


def test_a_writer_writes_on_in_a_child_and_in_its_parent(kafka, writer_of, topic_of):
    """A fork makes a new handle, and leaves the parent's and its records alone."""
    topic = topic_of()
    writer = writer_of(kafka__queue__buffering__max__ms="60000")
    writer.write(values(b"parent's"), topic)

    def writes_on() -> bool:
        is_empty = writer.flush() == DeliveryStats()
        writer.write(values(b"child's"), topic)
        is_written = writer.flush().records == 1
        writer.close()
        return is_empty and is_written

    assert succeeds_in_child(writes_on)
    assert writer.flush().records == 1
    assert texts(kafka, topic) == [b"child's", b"parent's"]


@pytest.fixture(scope="module")
def three_brokers():
    with KafkaCluster(3, config={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


def test_topics_are_created_where_the_broker_does_that(three_brokers, fresh_name):
    """The writer relies on that, as Java's producer does."""
    writer, topic = ConfluentRecordWriter(options_of(three_brokers.options)), fresh_name()
    writer.write(values(b"v"), topic)
    assert writer.flush().records == 1
    writer.close()
    assert texts(three_brokers, topic) == [b"v"]


def test_nothing_is_lost_while_a_broker_is_away(three_brokers, fresh_name):
    topic, written = fresh_name(), 0
    three_brokers.create_topic(topic, 3, config={"min.insync.replicas": "2"})
    writer = ConfluentRecordWriter(options_of(three_brokers.options))

    def restart() -> None:
        three_brokers.stop_broker(1)
        three_brokers.start_broker(1)

    under_way = threading.Thread(target=restart)
    under_way.start()
    while under_way.is_alive() or written < 30_000:
        numbers = range(written, written + 500)
        batch = pa.RecordBatch.from_pydict(
            {
                "value": [b"%d" % number for number in numbers],
                "partition": pa.array([number % 3 for number in numbers], pa.int32()),
            }
        )
        writer.write(batch, topic)
        written += 500
        if written % 5_000 == 0:
            assert writer.flush().records == 5_000
    writer.flush()
    under_way.join()
    writer.close()
    for number in range(3):
        found = texts(three_brokers, topic, number)
        assert found == [b"%d" % each for each in range(number, written, 3)]


def test_records_that_no_broker_takes_in_time_are_reported(fresh_name):
    with KafkaCluster() as cluster:
        topic = fresh_name()
        cluster.create_topic(topic)
        writer = ConfluentRecordWriter(
            options_of(cluster.options, kafka__delivery__timeout__ms="3000")
        )
        writer.write(values(b"v"), topic)
        writer.flush()
        cluster.kill_broker(0)
        writer.write(values(b"late", b"later"), topic)
        with pytest.raises(RecordDeliveryError, match="timed out") as caught:
            writer.flush()
        assert (caught.value.partition, caught.value.size) == (0, 4)
        start = time.monotonic()
        writer.close()
        assert time.monotonic() - start < bound_s(20)
