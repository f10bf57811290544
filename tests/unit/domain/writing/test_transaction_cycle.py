import math
from typing import Final

import pytest

from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.batch import AddPartitionsToTxn
from pyspark_kafka.domain.writing.errors import ProducerFencedError, TransactionLostError
from pyspark_kafka.domain.writing.transaction import Transaction
from pyspark_kafka.domain.writing.transaction_cycle import (
    MAX_PAUSE_S,
    MIN_PAUSE_S,
    AddOffsetsToTxn,
    EndTxn,
    TransactionCycle,
    TransactionError,
    TransactionRequest,
    TxnOffsetCommit,
    WriteRecords,
)

from .model_broker import Numbers

P0: Final = TopicPartition("t", 0)
P1: Final = TopicPartition("t", 1)
TRANSACTION: Final = Transaction("id", 9, 3)
BACKOFF_S: Final = 0.5
TIMEOUT_S: Final = 10.0
RECORDS: Final = Numbers((1, 2, 3))

Cycle = TransactionCycle[Numbers]


def new_cycle() -> Cycle:
    return TransactionCycle(TRANSACTION, BACKOFF_S, TIMEOUT_S, "broker:9092")


def succeed(cycle: Cycle, now: float = 0.0) -> list[TransactionRequest[Numbers]]:
    requests = list(cycle.next_requests(now))
    for request in requests:
        cycle.succeeded(request, now)
    return requests


def test_a_transaction_has_four_steps():
    cycle = new_cycle()
    cycle.append([(P0, RECORDS), (P1, RECORDS), (P0, RECORDS)], 7)
    assert succeed(cycle) == [
        AddPartitionsToTxn(TRANSACTION, frozenset({P0, P1})),
        AddOffsetsToTxn(TRANSACTION),
    ]
    assert succeed(cycle) == [WriteRecords(((P0, RECORDS), (P1, RECORDS), (P0, RECORDS)))]
    assert succeed(cycle) == [TxnOffsetCommit(TRANSACTION, 7)]
    assert cycle.is_open
    assert cycle.take_committed() is None
    assert succeed(cycle) == [EndTxn(TRANSACTION)]
    assert cycle.is_settled
    assert cycle.take_committed() == 7
    assert cycle.take_committed() is None
    assert succeed(cycle) == []


def test_a_cycle_without_an_offset_asks_for_nothing():
    cycle = new_cycle()
    assert cycle.is_settled
    assert succeed(cycle) == []
    other = new_cycle()
    other.append([], 7)
    assert not other.is_settled


def test_a_step_waits_for_all_of_the_last():
    cycle = new_cycle()
    cycle.append([(P0, RECORDS)], 7)
    first, second = cycle.next_requests(0)
    cycle.succeeded(second, 0)
    assert cycle.next_requests(0) == []
    assert cycle.seconds_to_retry(0) == math.inf
    cycle.succeeded(first, 0)
    assert cycle.seconds_to_retry(0) == 0
    assert cycle.next_requests(0) == [WriteRecords(((P0, RECORDS),))]


def test_offsets_are_committed_without_records():
    cycle = new_cycle()
    cycle.append([], 7)
    assert succeed(cycle) == [AddOffsetsToTxn(TRANSACTION)]
    assert succeed(cycle) == [TxnOffsetCommit(TRANSACTION, 7)]
    assert succeed(cycle) == [EndTxn(TRANSACTION)]


def test_what_is_written_meanwhile_is_the_next_transaction():
    cycle = new_cycle()
    cycle.append([(P0, RECORDS)], 3)
    succeed(cycle)
    cycle.append([(P0, RECORDS)], 6)
    cycle.append([(P1, RECORDS)], 9)
    assert cycle.waiting_bytes == 2 * RECORDS.payload_bytes
    succeed(cycle)
    succeed(cycle)
    assert succeed(cycle) == [EndTxn(TRANSACTION)]
    assert cycle.take_committed() == 3
    succeed(cycle)
    assert cycle.waiting_bytes == 0
    assert succeed(cycle) == [WriteRecords(((P0, RECORDS), (P1, RECORDS)))]
    assert succeed(cycle) == [TxnOffsetCommit(TRANSACTION, 9)]


def test_the_last_transaction_is_asked_for_again_after_short_pauses():
    cycle = new_cycle()
    cycle.append([], 3)
    [request] = cycle.next_requests(0)
    concurrent = TransactionError.CONCURRENT_TRANSACTIONS
    now, pauses = 0.0, []
    for _ in range(4):
        cycle.failed(request, concurrent, "", now)
        pauses.append(cycle.seconds_to_retry(now))
        assert cycle.next_requests(now) == []
        now += pauses[-1]
        assert cycle.next_requests(now) == [request]
    assert pauses == pytest.approx([MIN_PAUSE_S, 0.002, 0.004, MAX_PAUSE_S])
    cycle.succeeded(request, now)
    [request] = cycle.next_requests(now)
    cycle.failed(request, concurrent, "", now)
    assert cycle.seconds_to_retry(now) == pytest.approx(MIN_PAUSE_S)


@pytest.mark.parametrize("error", [TransactionError.RETRIABLE, TransactionError.DISCONNECTED])
def test_errors_that_pass_are_ridden_through(error):
    cycle = new_cycle()
    cycle.append([(P0, RECORDS)], 3)
    first, second = cycle.next_requests(0)
    cycle.failed(first, error, "", 0)
    cycle.succeeded(second, 0)
    assert cycle.next_requests(0) == []
    assert cycle.next_requests(BACKOFF_S) == [first]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (TransactionError.RETRIABLE, KafkaRequestError, "AddOffsetsToTxn: it loads"),
        (TransactionError.DISCONNECTED, BrokerUnreachableError, r"broker:9092 within 11 s \(it"),
    ],
)
def test_errors_that_last_are_raised(error, kind, text):
    cycle = new_cycle()
    cycle.append([], 3)
    for now in (0, TIMEOUT_S):
        [request] = cycle.next_requests(now)
        cycle.failed(request, error, "it loads", now)
    with pytest.raises(kind, match=text):
        cycle.failed(request, error, "it loads", TIMEOUT_S + 1)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (TransactionError.FATAL, KafkaRequestError, "not authorized"),
        (TransactionError.FENCED, ProducerFencedError, "'id'"),
        # Repeating the request would not help, and a new task would.
        (TransactionError.FORGOTTEN, TransactionLostError, r"'id' .*nothing is lost"),
    ],
)
def test_a_refusal_is_raised_at_once(error, kind, text):
    cycle = new_cycle()
    cycle.append([], 3)
    [request] = cycle.next_requests(0)
    with pytest.raises(kind, match=text):
        cycle.failed(request, error, "not authorized", 0)


def test_a_transaction_is_quiet_between_requests_that_were_answered():
    """One whose connection was lost may still be handled, as one in flight."""
    cycle = new_cycle()
    quiet = [cycle.is_quiet]
    cycle.append([], 7)
    [offsets] = cycle.next_requests(0)
    quiet.append(cycle.is_quiet)
    cycle.succeeded(offsets, 0)
    quiet.append(cycle.is_quiet)
    [commit] = cycle.next_requests(0)
    cycle.failed(commit, TransactionError.DISCONNECTED, "gone", 0)
    quiet.append(cycle.is_quiet)
    assert succeed(cycle, BACKOFF_S) == [commit]
    quiet.append(cycle.is_quiet)
    succeed(cycle, BACKOFF_S)
    quiet.append(cycle.is_quiet)
    assert quiet == [False, False, True, False, True, False]
