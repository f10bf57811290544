import time
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from pyspark_kafka.adapters.memory.stream_client import MemoryStreamClient
from pyspark_kafka.domain.errors import UnsupportedFeatureError
from pyspark_kafka.ports.continuous import PolledRecords
from pyspark_kafka.testing import StreamClientContract

from . import record_writer as writers
from .adapter import Faults
from .stream_client import Passing, suite


def _client_with(adapter: type[writers.Passing]) -> type[Passing]:
    def __init__(self: Passing, client: MemoryStreamClient) -> None:  # noqa: N807
        Passing.__init__(self, client)
        if client._writer is not None:
            client._writer = adapter(client._writer)  # type: ignore[assignment]

    members = {"__doc__": adapter.__doc__, "__init__": __init__}
    return type(f"With{adapter.__name__}", (Passing,), members)


_Suite = StreamClientContract

wrong: Final = Faults(Passing, suite)

for _test, _adapter in (
    (
        _Suite.test_outputs_are_written_in_order_and_once,
        writers.sends_the_first_hundred_rows_of_a_batch,
    ),
    (
        _Suite.test_outputs_of_revoked_partitions_are_acknowledged,
        writers.sends_the_rows_of_a_batch_in_the_wrong_order,
    ),
    (_Suite.test_several_batches_of_outputs_are_written, writers.LastWriteOnly),
):
    wrong(_test)(_client_with(_adapter))


@wrong(_Suite.test_partitions_are_written_at_once, "write")
def writes_the_outputs_of_one_partition_only(self, polled, outputs):
    first = self.seen.setdefault("first", polled.partition)
    self.client.write(polled, outputs if polled.partition == first else ())


@wrong(_Suite.test_an_offset_is_acknowledged_after_all_outputs_before_it)
class AcknowledgesEarly(Passing):
    """Acknowledges outputs when they are written, and sends them later."""

    def __init__(self, client):
        super().__init__(client)
        self.unsent: list[tuple[PolledRecords, Sequence[pa.RecordBatch]]] = []

    def write(self, polled, outputs):
        self.unsent.append((polled, outputs))
        self.seen[polled.partition] = polled.next_offset

    def poll(self, timeout_s, *, takes_records=True):
        while self.unsent:
            self.client.write(*self.unsent.pop(0))
        return super().poll(timeout_s, takes_records=takes_records)

    def acknowledged(self):
        early, self.seen = self.seen, {}
        return early


@wrong(_Suite.test_records_that_were_polled_before_a_move_are_forgotten)
class AcknowledgesPolled(Passing):
    """Acknowledges records when they are polled."""

    def remade(self, polled):
        self.seen[polled.partition] = polled.next_offset
        return [polled]

    def acknowledged(self):
        acknowledged, self.seen = self.seen, {}
        return acknowledged


@wrong(_Suite.test_a_change_is_returned_once, "acknowledged")
def returns_offsets_that_have_not_changed_since_the_last_call(self):
    self.seen |= self.client.acknowledged()
    return self.seen


@wrong(_Suite.test_records_without_outputs_are_acknowledged, "write")
def does_not_acknowledge_records_without_outputs(self, polled, outputs):
    if outputs:
        self.client.write(polled, outputs)


@wrong(_Suite.test_records_are_acknowledged_without_a_sink, "write")
def fails_if_there_is_no_sink(self, polled, outputs):
    if self.client._writer is None:
        raise UnsupportedFeatureError("The client", "go without a sink")
    self.client.write(polled, outputs)


@wrong(_Suite.test_an_acknowledgement_ends_a_poll, "poll")
def waits_for_records_when_something_is_acknowledged(self, timeout_s, *, takes_records=True):
    polled = Passing.poll(self, timeout_s, takes_records=takes_records)
    if not polled:
        time.sleep(timeout_s)
    return polled


@wrong(_Suite.test_records_wait_while_a_caller_takes_none, "poll")
def returns_records_to_a_caller_that_takes_none(self, timeout_s, *, takes_records=True):
    return Passing.poll(self, timeout_s)


@wrong(_Suite.test_a_client_is_settled_when_all_outputs_are_acknowledged, "is_settled")
def is_settled_before_its_outputs_are_committed(self):
    return True


@wrong(_Suite.test_outputs_of_revoked_partitions_are_acknowledged, "revoke")
def forgets_what_was_written_of_revoked_partitions(self, partitions):
    self.client.revoke(partitions)
    for partition in partitions:
        self.client._tracker.forget(partition)


@wrong(_Suite.test_a_moved_partition_is_acknowledged_from_its_new_offset_on)
class AcknowledgesMoved(Passing):
    """Acknowledges what was read before a partition was moved."""

    def assign(self, offsets):
        self.seen.update(self.client.acknowledged())
        return self.client.assign(offsets)

    def acknowledged(self):
        before, self.seen = self.seen, {}
        return {**before, **self.client.acknowledged()}


@wrong(_Suite.test_a_client_can_be_closed_before_it_is_settled, "close")
def fails_to_close_before_its_outputs_are_committed(self):
    if not self.client.is_settled():
        raise RuntimeError("it is not settled")
    self.client.close()
