"""Transactions of librdkafka's producer, with its mock cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.adapters.confluent.librdkafka import load
from pyspark_kafka.adapters.confluent.partition_transactions import (
    PartitionTransactions,
    PendingOutputs,
)
from pyspark_kafka.adapters.confluent.stream_writer import SinkProducers
from pyspark_kafka.adapters.confluent.transactional_producer import TransactionalProducer
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options import QueryKind, parse_sink_options
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

from ...servers.mock_cluster import MockCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

T0 = TopicPartition("input", 0)

SLACK_S: Final = 5.0
"""What a machine with much to do may add."""


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    """Yield a broker with the input topic."""
    with MockCluster() as made:
        made.create_topic(T0.topic)
        yield made


def threads() -> int:
    """Return the number of threads, librdkafka's included."""
    return len(list(Path("/proc/self/task").iterdir()))


def transactions_of(cluster: MockCluster, **settings: str) -> PartitionTransactions:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}
    options = parse_sink_options({**cluster.options, "topic": "output", **given}, QueryKind.STREAM)
    producers = SinkProducers(load(), options)

    def create(stopped: Event) -> TransactionalProducer:
        return TransactionalProducer(
            producers.create_transactional("id"),
            producers.connection,
            group_id="group",
            transactional_id="id",
            stopped=stopped,
        )

    timeout_s = producers.connection.timeout_s
    return PartitionTransactions(T0, create, lambda: None, 1_000, timeout_s, TimeoutError)


def await_commit(transactions: PartitionTransactions, offset: int) -> None:
    await_until(lambda: transactions.take_committed() == offset)


def test_a_transaction_goes_on_after_idle_connections_ended(cluster: MockCluster) -> None:
    """Brokers end a connection without requests (``connections.max.idle.ms``)."""
    transactions = transactions_of(cluster, reconnect_backoff_max_ms="10")
    for offset in range(1, 4):
        transactions.add(PendingOutputs([], offset, 0))
        await_commit(transactions, offset)
        cluster.end_connections()
    transactions.await_end()


def test_a_coordinator_that_does_not_answer_holds_no_wait(cluster: MockCluster) -> None:
    """The thread ends with the request's time-out, and its producer with it."""
    timeouts = {"default_api_timeout_ms": "400", "request_timeout_ms": "400"}
    before = threads()
    transactions = transactions_of(cluster, **timeouts)
    transactions.await_fenced()
    cluster.answer_after(60)
    transactions.add(PendingOutputs([], 1, 0))
    begun = time.monotonic()
    with pytest.raises((TimeoutError, PysparkKafkaError)):
        transactions.await_end()
    assert time.monotonic() - begun < 0.8 + SLACK_S
    transactions.stop()
    transactions.join(SLACK_S)
    await_until(lambda: threads() <= before)
