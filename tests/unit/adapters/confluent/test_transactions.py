"""Transactions of librdkafka's producer, and the thread of a partition's transactions."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, Final
from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.confluent.stream_sinks import ExactlyOnceSink, SinkProducers
from pyspark_kafka.adapters.confluent.transactions import (
    PartitionTransactions,
    PendingOutputs,
    ProducerStoppedError,
    TransactionalProducer,
)
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import LeaderUnavailableError, PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords
from pyspark_kafka.testing import await_until
from tests.slowness import bound_s

from ....servers.mock_cluster import MockCluster
from ..options import sink_of, source_of

T0 = TopicPartition("input", 0)

SLACK_S: Final = bound_s(5)
"""What a machine with much to do may add."""


@pytest.fixture
def cluster():
    with MockCluster() as made:
        made.create_topic(T0.topic)
        yield made


def threads() -> int:
    """Return the number of threads, librdkafka's included."""
    return len(list(Path("/proc/self/task").iterdir()))


def transactions_of(cluster: MockCluster, **settings: str) -> PartitionTransactions:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}
    producers = SinkProducers(sink_of("confluent", {**cluster.options, **given}))

    def create(stopped: Event) -> TransactionalProducer:
        return TransactionalProducer(
            producers.create_transactional("id"),
            producers.cluster,
            group_id="group",
            transactional_id="id",
            stopped=stopped,
        )

    timeout_s = producers.cluster.settings.timeout_s
    return PartitionTransactions(T0, create, lambda: None, 1_000, timeout_s, TimeoutError)


def await_commit(transactions: PartitionTransactions, offset: int) -> None:
    await_until(lambda: transactions.take_committed() == offset)


def test_a_transaction_goes_on_after_idle_connections_ended(cluster):
    """Brokers end a connection without requests (``connections.max.idle.ms``)."""
    transactions = transactions_of(cluster, reconnect_backoff_max_ms="10")
    for offset in range(1, 4):
        transactions.add(PendingOutputs([], offset, 0))
        await_commit(transactions, offset)
        cluster.end_connections()
    transactions.await_end()


def test_a_coordinator_that_answers_late_is_waited_for(cluster):
    """Each offset is sent once: librdkafka takes a second call for another request."""
    transactions = transactions_of(cluster, default_api_timeout_ms="30000")
    transactions.await_fenced()
    cluster.answer_after(0.5)
    for offset in range(1, 3):
        transactions.add(PendingOutputs([], offset, 0))
        await_commit(transactions, offset)
    transactions.await_end()


def test_a_coordinator_that_does_not_answer_holds_no_wait(cluster):
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
    transactions.close()
    transactions.join(SLACK_S)
    await_until(lambda: threads() <= before)


@pytest.mark.parametrize("brokers_catch_up", [True, False])
def test_a_partition_that_brokers_do_not_know_yet_is_waited_for(cluster, *, brokers_catch_up):
    """A broker may lag behind the one that was asked for the topic; its answers are spaced."""
    counts: list[int] = []

    def partitions(_topic: str, _timeout_s: float) -> int:
        counts.append(4 if brokers_catch_up and len(counts) > 2 else 1)
        return counts[-1]

    made = sink_of("confluent", {**cluster.options, "kafka.default.api.timeout.ms": "400"})
    producer = TransactionalProducer(
        Mock(partitions=partitions, wait=time.sleep),
        SinkProducers(made).cluster,
        group_id="group",
        transactional_id="id",
        stopped=Event(),
    )
    if brokers_catch_up:
        producer._await_partition("output", 3)
        assert counts == [1, 1, 1, 4]
    else:
        with pytest.raises(LeaderUnavailableError, match="know 1 partitions of 'output', and not"):
            producer._await_partition("output", 3)
        assert len(counts) < 20


@pytest.fixture
def sink(cluster):
    source = source_of("confluent", {**cluster.options, "subscribe": T0.topic})
    producers = SinkProducers(sink_of("confluent", cluster.options))
    made = ExactlyOnceSink(producers, source, ContinuousSettings("group"), lambda: None)
    with closing(made):
        yield made


def revoke(sink: ExactlyOnceSink) -> None:
    """Revoke the partition, and wait until its last transaction is committed."""
    sink.revoke([T0])

    def is_forgotten() -> bool:
        sink.send()
        return not sink._writers

    await_until(is_forgotten)


def test_what_was_revoked_is_forgotten_once_it_is_committed(sink):
    sink.assign(PartitionOffsets({T0: 0}))
    sink.write(PolledRecords(T0, None, 1), [])
    revoke(sink)
    assert sink.take_acknowledged() == {T0: 1}


def test_an_offset_is_acknowledged_that_was_assigned_before(sink):
    sink.assign(PartitionOffsets({T0: 0}))
    sink.assign(PartitionOffsets({T0: 100}))
    revoke(sink)
    assert sink.take_acknowledged() == {}
    sink.assign(PartitionOffsets({T0: 50}))
    sink.write(PolledRecords(T0, None, 100), [])
    revoke(sink)
    assert sink.take_acknowledged() == {T0: 100}


class OverdueError(Exception):
    """What is raised for a transaction that takes too long."""


def of_producer(
    create: Callable[[Event], Any], timeout_s: float, max_bytes: int = 1_000
) -> PartitionTransactions:
    return PartitionTransactions(T0, create, lambda: None, max_bytes, timeout_s, OverdueError)


@pytest.fixture
def may_commit():
    return Event()


@pytest.fixture
def producer(may_commit):
    """Return a producer that commits when it is told to."""
    return Mock(write=lambda *_: may_commit.wait())


WAITS: Final[dict[str, Callable[[PartitionTransactions], object]]] = {
    "for an offset": PartitionTransactions.take_committed,
    "for room": lambda transactions: transactions.add(PendingOutputs([], 9, 0)),
    "for the end": PartitionTransactions.await_end,
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_transaction_that_does_not_end_in_time_ends_all_waits(wait, producer, may_commit):
    """A call of librdkafka's may take longer than its time-out."""
    transactions = of_producer(lambda _: producer, timeout_s=0.05, max_bytes=1)
    transactions.await_fenced()
    transactions.add(PendingOutputs([], 7, 0))
    await_until(lambda: transactions._is_writing)
    transactions._pending_bytes = 1
    time.sleep(0.05)
    with pytest.raises(OverdueError):
        WAITS[wait](transactions)
    may_commit.set()
    await_until(lambda: not transactions._is_writing)
    assert transactions.take_committed() == 7
    transactions.await_end()


def test_a_transaction_in_time_is_not_overdue(producer, may_commit):
    transactions = of_producer(lambda _: producer, timeout_s=60)
    transactions.await_fenced()
    transactions.add(PendingOutputs([], 7, 0))
    await_until(lambda: not transactions.is_settled)
    assert transactions.take_committed() is None
    may_commit.set()
    await_until(lambda: transactions.take_committed() == 7)
    assert transactions.is_settled
    transactions.await_end()


@pytest.mark.parametrize(
    "wait",
    [
        PartitionTransactions.await_fenced,
        lambda transactions: transactions.add(PendingOutputs([], 9, 0)),
    ],
    ids=["for a fence", "for room"],
)
def test_a_wait_ends_with_the_thread(wait):
    def create(stopped: Event) -> Any:
        def fence() -> None:
            stopped.wait()
            raise ProducerStoppedError

        return Mock(fence=fence)

    transactions = of_producer(create, timeout_s=60)
    transactions.close()
    transactions.join(30)
    with pytest.raises(ProducerStoppedError):
        wait(transactions)
    transactions.await_end()
