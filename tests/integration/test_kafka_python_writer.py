"""The writer over kafka-python's connections: what only a producer of our own has to get right."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_python.record_writer import KafkaPythonRecordWriter
from pyspark_kafka.adapters.kafka_python.transactions import KafkaPythonTransactions
from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.errors import OptionsError, UnknownTopicError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options, with_any_topic
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import (
    ProducerFencedError,
    RecordTooLargeError,
    TransactionLostError,
    UnknownPartitionError,
)
from pyspark_kafka.domain.writing.transaction import TransactionState
from pyspark_kafka.testing import await_until
from pyspark_kafka.testing.world import unique_name

BATCH = 1_000


def sink_options(cluster: Mapping[str, str], **given: str) -> SinkOptions:
    named = {name.replace("__", "."): value for name, value in given.items()}
    return parse_sink_options({**cluster, **named}, QueryKind.BATCH)


@pytest.fixture
def writer_of(kafka):
    made: list[KafkaPythonRecordWriter] = []

    def make(**given: str) -> KafkaPythonRecordWriter:
        made.append(KafkaPythonRecordWriter(sink_options(kafka.options, **given)))
        return made[-1]

    yield make
    for writer in made:
        writer.close()


@pytest.fixture
def topic(kafka, fresh_name):
    name = fresh_name()
    kafka.create_topic(name)
    return name


def numbers(start: int, count: int = BATCH, size: int = 0) -> pa.RecordBatch:
    values = [(b"%d" % number).ljust(size) for number in range(start, start + count)]
    return pa.RecordBatch.from_pydict({"value": values})


def read(cluster: KafkaCluster, topic: str, **given: str) -> list[dict[str, Any]]:
    partition = TopicPartition(topic, 0)
    raw = with_any_topic({**cluster.options, **given})
    container = container_for(parse_source_options(raw, QueryKind.BATCH))
    try:
        latest = container.offset_fetcher().latest([partition])[partition]
        batches = container.record_reader().read(OffsetRange(partition, 0, latest), ALL_COLUMNS)
        return [row for batch in batches for row in batch.to_pylist()]
    finally:
        container.shutdown_resources()


def read_numbers(cluster: KafkaCluster, topic: str, **given: str) -> list[int]:
    return [int(row["value"]) for row in read(cluster, topic, **given)]


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_any_number_of_acknowledgements_will_do(kafka, writer_of, topic, acks):
    writer = writer_of(kafka__acks=acks)
    for start in range(0, 5 * BATCH, BATCH):
        writer.write(numbers(start, size=100), topic)
    assert writer.flush().records == 5 * BATCH
    await_until(lambda: read_numbers(kafka, topic) == list(range(5 * BATCH)))


def test_batches_are_split_until_their_topic_takes_them(kafka, writer_of, fresh_name):
    topic = fresh_name()
    kafka.create_topic(topic, config={"max.message.bytes": "2000"})
    writer = writer_of()
    for start in range(0, 20 * BATCH, BATCH):
        writer.write(numbers(start, size=200), topic)
    assert writer.flush().records == 20 * BATCH
    assert read_numbers(kafka, topic) == list(range(20 * BATCH))


def test_numbers_that_the_broker_does_not_expect_are_mended(kafka, writer_of, topic):
    """If the broker rejects the sequence number, the writer starts a new epoch."""
    writer = writer_of()
    writer.write(numbers(0), topic)
    writer.flush()
    [queue] = writer._client._sender._queues.values()  # no broker forgets at will
    queue.next_sequence += 7
    for start in range(BATCH, 5 * BATCH, BATCH):
        writer.write(numbers(start), topic)
        writer._write_gathered()  # so that several requests are in flight
    assert writer.flush().records == 4 * BATCH
    assert read_numbers(kafka, topic) == list(range(5 * BATCH))


def test_the_words_of_a_record_that_is_too_large(kafka, writer_of, fresh_name):
    topic = fresh_name()
    kafka.create_topic(topic, config={"max.message.bytes": "5000"})
    large = pa.RecordBatch.from_pydict({"value": [b"small", b"x" * 10_000]})
    with pytest.raises(RecordTooLargeError, match="server will accept") as caught:
        _deliver(writer_of(), large, topic)
    assert (caught.value.topic, caught.value.partition, caught.value.size) == (topic, 0, 10_000)
    for setting in ("max.request.size", "buffer.memory"):
        writer = writer_of(**{f"kafka__{setting.replace('.', '__')}": "9000"})
        with pytest.raises(RecordTooLargeError, match=f"the {setting} configuration") as caught:
            _deliver(writer, large, topic)
        assert "xxx" not in str(caught.value)
    assert [row["value"] for row in read(kafka, topic)] == [b"small"]


def _deliver(
    writer: KafkaPythonRecordWriter, batch: pa.RecordBatch, topic: str | None = None
) -> None:
    writer.write(batch, topic)
    writer.flush()


def test_a_transaction_that_lasts_too_long_is_lost(kafka, writer_of, topic):
    options = sink_options(kafka.options, kafka__transaction__timeout__ms="100")
    transactions = KafkaPythonTransactions(options)
    opened = transactions.begin(f"id-{topic}")
    writer = writer_of()
    writer.join_transaction(opened)
    writer.write(numbers(0), topic)
    writer.flush()
    committed = {"kafka.isolation.level": "read_committed"}
    # The coordinator looks for such transactions every 10 s.
    deadline = time.monotonic() + 30
    while read(kafka, topic, **committed) == [] and time.monotonic() < deadline:
        writer.join_transaction(opened)
        try:
            _deliver(writer, numbers(0), topic)
        except ProducerFencedError:
            break
    with pytest.raises(TransactionLostError):
        transactions.commit(opened)
    transactions.close()
    assert read(kafka, topic, **committed) == []


@pytest.fixture
def begin(kafka):
    transactions = KafkaPythonTransactions(sink_options(kafka.options))
    yield lambda: transactions.begin(f"id-{unique_name()}")
    transactions.close()


def test_a_transaction_names_topics_that_were_deleted(kafka, writer_of, fresh_name, begin):
    """A writer remembers leaders of topics that were deleted after its last transaction."""
    names = sorted(fresh_name() for _ in range(3))
    writer = writer_of(kafka__default__api__timeout__ms="1000")
    for name in names:
        kafka.create_topic(name)
    rows = pa.RecordBatch.from_pydict({"value": names, "topic": names})
    writer.join_transaction(begin())
    _deliver(writer, rows)
    for deleted in names[:2]:
        kafka.delete_topic(deleted)
    writer.join_transaction(begin())
    with pytest.raises(UnknownTopicError, match="do not exist") as caught:
        _deliver(writer, rows)
    assert caught.value.topics == tuple(names[:2])


def test_a_transaction_names_a_partition_that_does_not_exist(kafka, writer_of, fresh_name, begin):
    topic = fresh_name()
    kafka.create_topic(topic, 3)
    writer = writer_of(kafka__default__api__timeout__ms="1000")
    rows = pa.RecordBatch.from_pydict(
        {"value": ["1", "22", "333"], "partition": pa.array([0, 1, 2], pa.int32())}
    )
    writer.join_transaction(begin())
    _deliver(writer, rows, topic)
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 2)
    writer.join_transaction(begin())
    with pytest.raises(UnknownPartitionError, match="partitions are 0 to 1") as caught:
        _deliver(writer, rows, topic)
    assert (caught.value.topic, caught.value.partition, caught.value.size) == (topic, 2, 3)


def test_a_transaction_waits_for_a_topic_that_is_about_to_be_created(
    kafka, writer_of, topic, begin
):
    writer = writer_of()
    writer.join_transaction(begin())
    _deliver(writer, numbers(0), topic)
    kafka.delete_topic(topic)
    writer.join_transaction(begin())
    creation = threading.Timer(1, kafka.create_topic, [topic])
    creation.start()
    _deliver(writer, numbers(BATCH), topic)
    creation.join()
    assert read_numbers(kafka, topic) == list(range(BATCH, 2 * BATCH))


def test_a_response_may_be_larger_than_a_megabyte(kafka, topic):
    """The list of open transactions is; kafka-python's default limit would be 1 MB."""
    transactions = KafkaPythonTransactions(sink_options(kafka.options))
    prefix = f"{topic}-{'x' * 30_000}-"
    for number in range(40):
        opened = transactions.begin(f"{prefix}{number}")
        transactions._requests.add_partitions(opened, [TopicPartition(topic, 0)])
    assert len(transactions.find(prefix, TransactionState.ONGOING)) == 40
    transactions.close()


def test_a_time_out_above_the_brokers_maximum_names_both_settings(kafka, topic):
    options = sink_options(kafka.options, kafka__transaction__timeout__ms="99999999")
    transactions = KafkaPythonTransactions(options)
    with pytest.raises(
        OptionsError, match=r"'kafka\.transaction\.timeout\.ms' is 99999999"
    ) as found:
        transactions.begin(topic)
    assert "'transaction.max.timeout.ms'" in str(found.value)
    transactions.close()
