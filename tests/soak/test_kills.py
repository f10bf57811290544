"""A round of kills, and a run to the end; ``make soak`` runs more rounds."""

import random
import sys

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.kafka_python.record_writer import KafkaPythonRecordWriter
from pyspark_kafka.adapters.kafka_python.transactions import KafkaPythonTransactions
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import TransactionLostError
from pyspark_kafka.domain.writing.transaction import TransactionState
from pyspark_kafka.testing import KafkaWorld, await_until, numbered, unique_name
from pyspark_kafka.testing.stream_task import StreamTask, echo, stream_sink
from pyspark_kafka.testing.world import COMMITTED
from verification.soak.soak import BROKERS, Soak

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes"),
    # What is awaited has a time-out of its own, which says what did not come.
    pytest.mark.timeout(1_200),
]


@pytest.fixture(scope="module")
def three_brokers():
    # Records of tests have old timestamps, and retention is looked at after some minutes.
    with KafkaCluster(BROKERS, config={"log.retention.ms": "-1"}) as cluster:
        yield cluster


def test_no_record_is_lost_or_doubled_by_a_kill(three_brokers):
    with Soak(three_brokers, seed=random.randrange(1 << 32)) as soak:  # noqa: S311
        soak.run([0])


def test_a_writer_asks_another_broker_when_one_is_gone(three_brokers):
    options = parse_sink_options(three_brokers.options, QueryKind.BATCH)
    for topic in ("known", "unknown"):
        three_brokers.create_topic(topic)
    rows = pa.RecordBatch.from_pydict({"value": [b"v"]})
    writer = KafkaPythonRecordWriter(options)
    try:
        writer.write(rows, "known")
        writer.flush()
        asked = writer._factory.metadata.source
        assert asked is not None
        three_brokers.kill_broker(asked)
        try:
            writer.write(rows, "unknown")
            assert writer.flush().records == 1
        finally:
            three_brokers.start_broker(asked)
    finally:
        writer.close()


def test_transactions_end_while_a_broker_is_gone(three_brokers):
    options = parse_sink_options(three_brokers.options, QueryKind.BATCH)
    three_brokers.create_topic("ended")
    transactions, writer = KafkaPythonTransactions(options), KafkaPythonRecordWriter(options)
    begun = []
    try:
        for number in range(6):
            begun.append(transactions.begin(f"ended-{number}"))
            writer.join_transaction(begun[-1])
            writer.write(pa.RecordBatch.from_pydict({"value": [b"v"]}), "ended")
            writer.flush()
        names = [transaction.transactional_id for transaction in begun]
        assert sorted(transactions.find("ended-", TransactionState.ONGOING)) == names
        three_brokers.kill_broker(0)
        try:
            assert sorted(transactions.describe(names)) == names
            for transaction in begun[1:]:
                transactions.commit(transaction)
            transactions.begin("ended-0")
            with pytest.raises(TransactionLostError):
                transactions.commit(begun[0])
        finally:
            three_brokers.start_broker(0)
    finally:
        writer.close()
        transactions.close()


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at-least", "exactly"])
def test_a_continuous_query_follows_leaders(three_brokers, exactly_once):
    world = KafkaWorld("kafka-python", unique_name, three_brokers)
    source, target = world.topic(BROKERS), world.topic(BROKERS)
    sink = stream_sink(world, target, exactly_once=exactly_once)
    task = StreamTask(world.stream_client(sink, unique_name()), echo)
    partitions = [TopicPartition(source, number) for number in range(BROKERS)]
    task.assign(dict.fromkeys(partitions, 0))
    _produce_and_settle(world, task, partitions, 0)
    three_brokers.kill_broker(1)
    try:
        _produce_and_settle(world, task, partitions, 10)
    finally:
        three_brokers.start_broker(1)
    _produce_and_settle(world, task, partitions, 20)
    expected = [record.value for record in numbered(0, 30)]
    for number in range(BROKERS):
        written = TopicPartition(target, number)
        await_until(lambda: len(world.records(written, **COMMITTED)) >= len(expected))  # noqa: B023
        assert [row["value"] for row in world.records(written, **COMMITTED)] == expected
    world.close()


def _produce_and_settle(
    world: KafkaWorld, task: StreamTask, partitions: list[TopicPartition], start: int
) -> None:
    for partition in partitions:
        world.produce(partition, numbered(start, start + 10))
    task.read_to(dict.fromkeys(partitions, start + 10))
    task.settle()
