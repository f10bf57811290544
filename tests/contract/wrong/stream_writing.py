"""Clients that break a promise of ``StreamClient`` about writing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.errors import UnsupportedFeatureError
from pyspark_kafka.testing import StreamClientContract

from . import record_writer as writers
from .stream_client import Passing, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.adapters.memory.stream_client import MemoryStreamClient
    from pyspark_kafka.domain.partition_offsets import PartitionOffsets
    from pyspark_kafka.domain.topic_partition import TopicPartition
    from pyspark_kafka.ports.continuous import PolledRecords

    from .adapter import WrongAdapter


def _wrong_writers(
    caught_by: Callable[..., None], *adapters: type[writers.Passing]
) -> list[WrongAdapter]:
    """Return clients that write with wrong writers."""
    return wrong(caught_by, *map(_client_with, adapters))


def _client_with(adapter: type[writers.Passing]) -> type[Passing]:
    def __init__(self: Passing, client: MemoryStreamClient) -> None:  # noqa: N807
        Passing.__init__(self, client)
        if client._writer is not None:
            client._writer = adapter(client._writer)  # type: ignore[assignment]

    members = {"__doc__": adapter.__doc__, "__init__": __init__}
    return type(f"With{adapter.__name__}", (Passing,), members)


class FirstPolledOnly(Passing):
    """Writes the outputs of one partition only."""

    first: TopicPartition | None = None

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.first = self.first or polled.partition
        self.client.write(polled, outputs if polled.partition == self.first else ())


class AcknowledgesEarly(Passing):
    """Acknowledges outputs when they are written, and sends them later."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.unsent: list[tuple[PolledRecords, Sequence[pa.RecordBatch]]] = []
        self.early: dict[TopicPartition, int] = {}

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.unsent.append((polled, outputs))
        self.early[polled.partition] = polled.next_offset

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        while self.unsent:
            self.client.write(*self.unsent.pop(0))
        return super().poll(timeout_s, takes_records=takes_records)

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        early, self.early = self.early, {}
        return early


class AcknowledgesPolled(Passing):
    """Acknowledges records when they are polled."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.polled: dict[TopicPartition, int] = {}

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        self.polled[polled.partition] = polled.next_offset
        return [polled]

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        acknowledged, self.polled = self.polled, {}
        return acknowledged


class AcknowledgesAgain(Passing):
    """Returns offsets that have not changed since the last call."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.all: dict[TopicPartition, int] = {}

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        self.all |= self.client.acknowledged()
        return self.all


class NeedsOutputs(Passing):
    """Does not acknowledge records without outputs."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if outputs:
            self.client.write(polled, outputs)


class NeedsASink(Passing):
    """Fails if there is no sink."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if self.client._writer is None:
            raise UnsupportedFeatureError("The client", "go without a sink")
        self.client.write(polled, outputs)


class IgnoresAcknowledgements(Passing):
    """Waits for records when something is acknowledged."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        polled = super().poll(timeout_s, takes_records=takes_records)
        if not polled:
            time.sleep(timeout_s)
        return polled


class TakesAnyway(Passing):
    """Returns records to a caller that takes none."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        return super().poll(timeout_s)


class LosesWhatWaits(Passing):
    """Loses the records that come while a caller takes none."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        polled = super().poll(timeout_s)
        return polled if takes_records else ()


class AlwaysSettled(Passing):
    """Is settled before its outputs are committed."""

    def is_settled(self) -> bool:
        return True


class NeverSettled(Passing):
    """Is never settled."""

    def is_settled(self) -> bool:
        return False


class ForgetsRevoked(Passing):
    """Forgets what was written of revoked partitions."""

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self.client.revoke(partitions)
        for partition in partitions:
            self.client._tracker.forget(partition)


class LosesRevoked(Passing):
    """Does not commit what was written of revoked partitions."""

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self.client.revoke(partitions)
        for partition in partitions:
            for output in self.client._uncommitted.pop(partition, ()):
                self.client._tracker.acknowledge(output, 1)


class AcknowledgesMoved(Passing):
    """Acknowledges what was read before a partition was moved."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.before: dict[TopicPartition, int] = {}

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self.before.update(self.client.acknowledged())
        return self.client.assign(offsets)

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        before, self.before = self.before, {}
        return {**before, **self.client.acknowledged()}


class WaitsForPolled(Passing):
    """Waits for records to be written that were polled before a partition was moved."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.polled: set[tuple[TopicPartition, int]] = set()

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        self.polled.add((polled.partition, polled.records.num_rows if polled.records else 0))
        return [polled]

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        self.polled.discard((polled.partition, polled.records.num_rows if polled.records else 0))
        self.client.write(polled, outputs)

    def is_settled(self) -> bool:
        return self.client.is_settled() and not self.polled


class SettlesBeforeItCloses(Passing):
    """Fails to close before its outputs are committed."""

    def close(self) -> None:
        if not self.client.is_settled():
            raise RuntimeError("it is not settled")
        self.client.close()


_Suite = StreamClientContract

WRONG: Final = (
    *_wrong_writers(_Suite.test_outputs_are_written_in_order_and_once, writers.HundredRows),
    *_wrong_writers(
        _Suite.test_outputs_of_revoked_partitions_are_acknowledged,
        *(writers.LastRowFirst, writers.SentTwice),
    ),
    *_wrong_writers(
        StreamClientContract.test_every_column_is_written,
        *(writers.NoNullHeaders, writers.EmptyHeaders, writers.UniqueHeaders),
        *(writers.SortedHeaders, writers.NoTimestamps, writers.WholeSeconds),
        *(writers.FirstTimestamp, writers.ZeroTimestamps),
        *(writers.EmptyNulls, writers.NullEmpties),
    ),
    *_wrong_writers(
        _Suite.test_keys_decide_as_in_java,
        *(writers.AllToPartitionZero, writers.Crc32, writers.AbsoluteHash),
        *(writers.HashedText, writers.NamedOnce),
    ),
    *_wrong_writers(
        _Suite.test_several_batches_of_outputs_are_written,
        *(writers.LastWriteOnly, writers.LastWriteFirst, writers.WholeArrays),
    ),
    *_wrong_writers(
        _Suite.test_each_row_may_name_its_topic_and_partition,
        *(writers.FirstTopic, writers.FirstPartition),
    ),
    *_wrong_writers(_Suite.test_the_sinks_topic_overrides_the_column, writers.ColumnFirst),
    *_wrong_writers(_Suite.test_a_record_needs_a_topic, writers.AnyTopic),
    *_wrong_writers(
        _Suite.test_the_topic_has_to_exist, writers.SwallowsUnknownTopics, writers.CreatesTopics
    ),
    *_wrong_writers(
        _Suite.test_the_partition_has_to_exist,
        *(writers.SwallowsDeliveryErrors, writers.OtherErrors, writers.LastError),
        writers.ErrorsWithContent,
    ),
    *_wrong_writers(_Suite.test_a_header_needs_a_key, writers.SkipsInvalidRecords),
    *_wrong_writers(
        _Suite.test_a_record_that_is_too_large_for_its_topic_is_an_error,
        writers.AcknowledgesLargeRecords,
    ),
    *wrong(_Suite.test_partitions_are_written_at_once, FirstPolledOnly),
    *wrong(_Suite.test_an_offset_is_acknowledged_after_all_outputs_before_it, AcknowledgesEarly),
    *wrong(_Suite.test_records_without_outputs_are_acknowledged, NeedsOutputs),
    *wrong(_Suite.test_a_change_is_returned_once, AcknowledgesAgain),
    *wrong(_Suite.test_an_acknowledgement_ends_a_poll, IgnoresAcknowledgements),
    *wrong(_Suite.test_records_wait_while_a_caller_takes_none, TakesAnyway, LosesWhatWaits),
    *wrong(
        _Suite.test_a_client_is_settled_when_all_outputs_are_acknowledged,
        *(AlwaysSettled, NeverSettled),
    ),
    *wrong(
        _Suite.test_outputs_of_revoked_partitions_are_acknowledged, ForgetsRevoked, LosesRevoked
    ),
    *wrong(_Suite.test_a_moved_partition_is_acknowledged_from_its_new_offset_on, AcknowledgesMoved),
    *wrong(
        _Suite.test_records_that_were_polled_before_a_move_are_forgotten,
        *(AcknowledgesPolled, WaitsForPolled),
    ),
    *wrong(_Suite.test_records_are_acknowledged_without_a_sink, NeedsASink),
    *wrong(_Suite.test_a_client_can_be_closed_before_it_is_settled, SettlesBeforeItCloses),
)
