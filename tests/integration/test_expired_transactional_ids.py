"""Transactional ids that brokers have forgotten, which they do after a week without a request."""

import pytest

from pyspark_kafka.adapters.kafka_python.transactions import KafkaPythonTransactions
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import TransactionLostError
from pyspark_kafka.testing import KafkaWorld, await_until, numbered
from pyspark_kafka.testing.stream_task import StreamTask, echo, stream_sink
from pyspark_kafka.testing.world import COMMITTED


@pytest.fixture(scope="module")
def forgetful():
    """Yield a broker that forgets an id so soon after its last transaction."""
    config = {
        "transactional.id.expiration.ms": "1500",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    with KafkaCluster(config=config) as cluster:
        yield cluster


@pytest.fixture
def transactions(forgetful):
    made = KafkaPythonTransactions(parse_sink_options(forgetful.options, QueryKind.BATCH))
    yield made
    made.close()


def _await_forgotten(transactions: KafkaPythonTransactions, transactional_id: str) -> None:
    await_until(lambda: not transactions.describe([transactional_id]))


def test_whether_a_forgotten_transaction_was_committed_is_not_known(transactions):
    """One that was committed and one that was aborted get the same answer from the broker."""
    committed, aborted = transactions.begin("committed"), transactions.begin("aborted")
    transactions.commit(committed)
    transactions.abort(aborted)
    for opened in (committed, aborted):
        _await_forgotten(transactions, opened.transactional_id)
        with pytest.raises(
            TransactionLostError, match=r"'transactional\.id\.expiration\.ms'"
        ) as found:
            transactions.commit(opened)
        assert found.value.may_be_committed
        transactions.abort(opened)


def test_a_continuous_query_goes_on_after_its_ids_were_forgotten(
    forgetful, fresh_name, transactions
):
    """A partition without records for a week costs a restart of the task, and no record."""
    world = KafkaWorld("kafka-python", fresh_name, forgetful)
    source, target = TopicPartition(world.topic(), 0), TopicPartition(world.topic(), 0)
    group = world.fresh_name()
    sink = stream_sink(world, target.topic, exactly_once=True)
    task = StreamTask(world.stream_client(sink, group), echo)
    world.produce(source, numbered(0, 10))
    task.assign({source: 0})
    _await_forgotten(transactions, f"{group}-{source.topic}-0")
    with pytest.raises(TransactionLostError, match=r"'transactional\.id\.expiration\.ms'"):
        _finish(task, source, 10)
    again = StreamTask(world.stream_client(sink, group), echo)
    again.assign({source: 0})
    _finish(again, source, 10)
    expected = [record.value for record in numbered(0, 10)]
    await_until(lambda: len(world.records(target, **COMMITTED)) >= len(expected))
    assert [row["value"] for row in world.records(target, **COMMITTED)] == expected
    world.close()


def _finish(task: StreamTask, source: TopicPartition, end: int) -> None:
    task.read_to({source: end})
    task.settle()
