"""A fetch's knowledge of the records that were taken out of its queue."""

from ctypes import c_uint64
from typing import Any

import pytest

from pyspark_kafka.adapters.confluent.consumer_handle import FetchQueue
from pyspark_kafka.adapters.confluent.gather_kernel import ConsumerCalls
from pyspark_kafka.domain.reading.leader_epochs import NO_EPOCH

from .messages import FakeLibrary, Sent

END = -191
EPOCH = 7


class QueueLibrary(FakeLibrary):
    """Has all of its messages in one queue, of one leader."""

    def rd_kafka_consume_batch_queue(self, _queue: int, _timeout: int, to: int, most: int) -> int:
        taken = self.addresses[:most]
        for place, address in enumerate(taken.tolist()):
            c_uint64.from_address(to + 8 * place).value = address
        return len(taken)

    def rd_kafka_message_leader_epoch(self, address: int) -> int:
        return NO_EPOCH if self._by_address[address].error else EPOCH


def taken(*sent: Sent) -> FetchQueue:
    library: Any = QueueLibrary(sent)
    queue = FetchQueue(library, ConsumerCalls(library), topic=1, partition=0, queue=1)
    assert queue.take() == len(sent)
    return queue


@pytest.mark.parametrize("events", range(3))
def test_the_epoch_of_records_before_an_event_is_kept(events):
    """A range that is read on after a pause compares their epoch with the log (KIP-320)."""
    queue = taken(Sent(0), Sent(1), *[Sent(2, error=END)] * events)
    assert queue.last_epoch == EPOCH


def test_events_alone_have_no_epoch():
    queue = taken(Sent(0, error=END))
    assert queue.last_epoch == NO_EPOCH
