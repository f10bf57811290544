"""The thread of a partition's transactions, with a producer whose calls do not return."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final, cast

import pytest

from pyspark_kafka.adapters.confluent.transactions import (
    PartitionTransactions,
    PendingOutputs,
    ProducerStoppedError,
    TransactionalProducer,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing.world import await_until

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


class OverdueError(Exception):
    """What is raised for a transaction that takes too long."""


def started(
    producer: WaitingProducer, timeout_s: float, max_bytes: int = 1_000
) -> PartitionTransactions:
    transactions = PartitionTransactions(
        T0,
        lambda _: cast("TransactionalProducer", producer),
        lambda: None,
        max_bytes,
        timeout_s,
        OverdueError,
    )
    transactions.await_fenced()
    return transactions


WAITS: Final[dict[str, Callable[[PartitionTransactions], object]]] = {
    "for an offset": PartitionTransactions.take_committed,
    "for room": lambda transactions: transactions.add(PendingOutputs([], 9, 0)),
    "for the end": PartitionTransactions.await_end,
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_transaction_that_does_not_end_in_time_ends_all_waits(wait):
    """A call of librdkafka's may take longer than its time-out."""
    producer = WaitingProducer()
    transactions = started(producer, timeout_s=0.05, max_bytes=1)
    transactions.add(PendingOutputs([], 7, 0))
    await_until(lambda: transactions._is_writing)
    transactions._pending_bytes = 1
    time.sleep(0.05)
    with pytest.raises(OverdueError):
        WAITS[wait](transactions)
    producer.may_commit.set()
    await_until(lambda: not transactions._is_writing)
    assert transactions.take_committed() == 7
    transactions.await_end()


def test_a_transaction_in_time_is_not_overdue():
    producer = WaitingProducer()
    transactions = started(producer, timeout_s=60)
    transactions.add(PendingOutputs([], 7, 0))
    await_until(lambda: not transactions.is_settled)
    assert transactions.take_committed() is None
    producer.may_commit.set()
    await_until(lambda: transactions.take_committed() == 7)
    assert transactions.is_settled
    transactions.await_end()


class StoppingProducer(WaitingProducer):
    """A producer that fences nothing until another thread stops it."""

    def __init__(self, stopped: threading.Event) -> None:
        super().__init__()
        self._stopped = stopped

    def fence(self) -> None:
        self._stopped.wait()
        raise ProducerStoppedError


@pytest.mark.parametrize(
    "wait",
    [
        PartitionTransactions.await_fenced,
        lambda transactions: transactions.add(PendingOutputs([], 9, 0)),
    ],
    ids=["for a fence", "for room"],
)
def test_a_wait_ends_with_the_thread(wait):
    transactions = PartitionTransactions(
        T0,
        lambda stopped: cast("TransactionalProducer", StoppingProducer(stopped)),
        lambda: None,
        1_000,
        60,
        OverdueError,
    )
    transactions.close()
    transactions.join(30)
    with pytest.raises(ProducerStoppedError):
        wait(transactions)
    transactions.await_end()
