"""The machine finds faults: each of these is planted, and has to be found."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from pyspark_kafka.domain.writing.batch import Failure, ProduceError, ProducerBatch
from pyspark_kafka.domain.writing.sender import Sender
from pyspark_kafka.domain.writing.transaction import DeliveryStats

from .machine import ProducerMachine
from .model_broker import Numbers

SEARCH: Final = settings(
    max_examples=3_000,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

split = ProducerBatch.split
complete = Sender._complete
handle = Sender._handle
lose_sequence = Sender._lose_sequence


def reuse_sequence(batch: ProducerBatch[Numbers]) -> tuple[ProducerBatch[Numbers], ...]:
    """Assign to the second half of a split batch the sequence numbers of the first."""
    one, other = split(batch)
    other.sequence = one.sequence
    return one, other


def acknowledge_twice(sender: Sender[Numbers], batch: ProducerBatch[Numbers]) -> None:
    """Count the records of a batch twice."""
    complete(sender, batch)
    sender._stats += DeliveryStats(len(batch.records), batch.records.payload_bytes)


def send_to_any_leader(sender: Sender[Numbers], _queue: object, node: int) -> bool:
    """Send to a new leader while batches are in flight to the former one."""
    return sender.in_flight(node) < sender._settings.max_in_flight


def ignore_fence(
    sender: Sender[Numbers], batch: ProducerBatch[Numbers], failure: Failure, now: float
) -> None:
    """Try again what another producer has forbidden."""
    if failure.error is ProduceError.INVALID_PRODUCER_EPOCH:
        failure = Failure(ProduceError.RETRIABLE, failure.reason)
    handle(sender, batch, failure, now)


def keep_memory(sender: Sender[Numbers], batch: ProducerBatch[Numbers]) -> None:
    """Settle a batch without giving its memory back."""
    sender._memory += batch.memory
    complete(sender, batch)


def reset_all_partitions(
    sender: Sender[Numbers], batch: ProducerBatch[Numbers], failure: Failure, now: float
) -> None:
    """Renumber the batches of other partitions too, though some may be written."""
    lose_sequence(sender, batch, failure, now)
    for partition, queue in sender._queues.items():
        if partition != batch.partition and queue.producer is not None:
            queue.has_lost_sequence = True
            if not queue.in_flight:
                sender._reset_sequences(queue)


FAULTS: Final[dict[str, tuple[type[Any], str, Callable[..., object]]]] = {
    "a sequence reused after a split": (ProducerBatch, "split", reuse_sequence),
    "a batch acknowledged twice": (Sender, "_complete", acknowledge_twice),
    "order lost after a leader has moved": (Sender, "_may_send", send_to_any_leader),
    "a fence ignored": (Sender, "_handle", ignore_fence),
    "a new producer id for all partitions": (Sender, "_lose_sequence", reset_all_partitions),
    "memory never given back": (Sender, "_complete", keep_memory),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(monkeypatch, fault):
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(ProducerMachine, settings=SEARCH)
