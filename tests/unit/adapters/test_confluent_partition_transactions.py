"""The thread of a partition's transactions, with a producer whose calls do not return."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from pyspark_kafka.adapters.confluent.partition_transactions import (
    PartitionTransactions,
    PendingOutputs,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing.world import await_until

if TYPE_CHECKING:
    from pyspark_kafka.adapters.confluent.transactional_producer import TransactionalProducer

T0 = TopicPartition("t", 0)


class WaitingProducer:
    """A producer that commits when it is told to."""

    def __init__(self) -> None:
        self.may_commit = threading.Event()

    def fence(self) -> None:
        """Do nothing."""

    def write(self, *_: Any) -> None:
        self.may_commit.wait()

    def handle_events(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def started(producer: WaitingProducer, timeout_s: float) -> PartitionTransactions:
    transactions = PartitionTransactions(
        T0, lambda _: cast("TransactionalProducer", producer), lambda: None, 1_000, timeout_s
    )
    transactions.await_fenced()
    return transactions


def test_a_transaction_that_does_not_end_in_time_is_overdue() -> None:
    producer = WaitingProducer()
    transactions = started(producer, timeout_s=0.05)
    assert not transactions.is_overdue
    transactions.add(PendingOutputs([], 7, 0))
    await_until(lambda: transactions.is_overdue)
    producer.may_commit.set()
    await_until(lambda: transactions.take_committed() == 7)
    assert transactions.is_settled
    transactions.await_end()


def test_a_transaction_in_time_is_not_overdue() -> None:
    producer = WaitingProducer()
    transactions = started(producer, timeout_s=60)
    transactions.add(PendingOutputs([], 7, 0))
    await_until(lambda: not transactions.is_settled)
    assert not transactions.is_overdue
    producer.may_commit.set()
    await_until(lambda: transactions.take_committed() == 7)
    transactions.await_end()
