"""Clients that break a promise of ``StreamClient`` about reading."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pyspark_kafka.domain.errors import KafkaRequestError, UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    MalformedTimestampError,
    OffsetOutOfRangeError,
    OversizedRecordError,
    TopicRecreatedError,
)
from pyspark_kafka.ports.continuous import PolledRecords
from pyspark_kafka.testing import StreamClientContract

from .stream_client import Passing, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pyspark_kafka.adapters.memory.stream_client import MemoryStreamClient
    from pyspark_kafka.domain.reading.data_loss import DataLoss
    from pyspark_kafka.domain.topic_partition import TopicPartition


class SkipsARecord(Passing):
    """Loses the first record of each poll."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_records(polled, lambda records: records.slice(1))]


class LastRecordFirst(Passing):
    """Returns the records of a poll in the wrong order."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_records(polled, lambda records: records.take(_backwards(records)))]


class ReturnsTwice(Passing):
    """Returns each record twice."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [polled, polled]


class LastOffset(Passing):
    """Returns the offset of the last record, and not the next one."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [replace(polled, next_offset=polled.next_offset - 1)]


class NoHeaders(Passing):
    """Returns no headers."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_column(polled, "headers", lambda _value: None)]


class WholeSeconds(Passing):
    """Drops the milliseconds of timestamps."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_column(polled, "timestamp", lambda value: value.replace(microsecond=0))]


class NoTimestampType(Passing):
    """Does not know the type of timestamps."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_column(polled, "timestampType", lambda _value: -1)]


class PartitionZero(Passing):
    """Takes every partition for the first one of its topic."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_column(polled, "partition", lambda _value: 0)]


class OtherSchema(Passing):
    """Returns a column more than the projection has."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [
            _with_records(polled, lambda records: records.append_column("n", records["offset"]))
        ]


class EmptyBatches(Passing):
    """Returns empty batches where there are only offsets without records."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        empty = pa.RecordBatch.from_pydict({"offset": pa.array([], pa.int64())})
        return [replace(polled, records=empty if polled.records is None else polled.records)]


class WaitsForRecords(Passing):
    """Does not return offsets without records."""

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [] if polled.records is None else [polled]


class FromTheBeginning(Passing):
    """Reads a partition from its beginning, wherever it is assigned."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self.client.assign(PartitionOffsets(dict.fromkeys(offsets, 0)))
        return offsets


class ReusesMemory(Passing):
    """Overwrites the records of the previous poll."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.memory = bytearray(64)

    def remade(self, polled: PolledRecords) -> Sequence[PolledRecords]:
        return [_with_records(polled, self._in_memory)]

    def _in_memory(self, records: pa.RecordBatch) -> pa.RecordBatch:
        values = records["value"]
        _, offsets, data = values.buffers()
        assert data is not None
        self.memory[: len(data)] = memoryview(data)
        shared = pa.py_buffer(memoryview(self.memory))
        copied = pa.Array.from_buffers(values.type, len(values), [None, offsets, shared])
        return records.set_column(records.schema.get_field_index("value"), "value", copied)


class WaitsForItsTime(Passing):
    """Returns from a poll only when its time is up, also if records have come."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        time.sleep(timeout_s)
        return super().poll(0, takes_records=takes_records)


class DoesNotWait(Passing):
    """Returns from a poll at once."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        return super().poll(timeout_s / 100, takes_records=takes_records)


class DoesNotWaitUnassigned(Passing):
    """Returns from a poll at once if it has no partitions."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        return super().poll(timeout_s, takes_records=takes_records) if self.client._offsets else ()


class OneTopic(Passing):
    """Reads the partitions of one topic only."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        topic = min(offsets).topic
        self.client.assign(
            PartitionOffsets(each for each in offsets.items() if each[0].topic == topic)
        )
        return offsets


class ReplacesPartitions(Passing):
    """Reads only the partitions that were assigned last."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        self.client.revoke(list(self.client._offsets))
        return self.client.assign(offsets)


class DoesNotMove(Passing):
    """Reads on where a partition is assigned again."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        before = dict(self.client._offsets)
        assigned = self.client.assign(offsets)
        self.client._offsets.update(before)
        return assigned


class ResumesRevoked(Passing):
    """Reads on where a partition was revoked, wherever it is assigned."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        self.revoked: dict[TopicPartition, int] = {}

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        self.revoked = dict(self.client._offsets)
        self.client.revoke(partitions)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        assigned = self.client.assign(offsets)
        self.client._offsets.update(self.revoked)
        return assigned


class KeepsReading(Passing):
    """Reads revoked partitions."""

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        pass


class RevokesAll(Passing):
    """Revokes all partitions at once."""

    def revoke(self, _partitions: Collection[TopicPartition]) -> None:
        self.client.revoke(list(self.client._offsets))


class RefusesUnknown(Passing):
    """Fails to revoke a partition that it does not read."""

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            del self.client._offsets[partition]


class _Cluster:
    """A cluster with methods that ignore ``committed_only``."""

    def __init__(self, cluster: Any, *methods: str) -> None:
        self._cluster = cluster
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)
        if name not in self._methods:
            return method
        return lambda *given, **named: method(*given, **{**named, "committed_only": False})


class ReadsAborted(Passing):
    """Returns aborted records under read_committed."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        client._cluster = _Cluster(client._cluster, "fetch")  # type: ignore[assignment]


class ReadsOpen(Passing):
    """Returns records of open transactions under read_committed."""

    def __init__(self, client: MemoryStreamClient) -> None:
        super().__init__(client)
        client._cluster = _Cluster(client._cluster, "watermarks")  # type: ignore[assignment]


class StartsAgain(Passing):
    """Reads from the earliest offset if the next one was deleted."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except OffsetOutOfRangeError as error:
            if error.offset < error.earliest:
                self.assign(PartitionOffsets({error.partition: error.earliest}))
                return ()
            raise


class OtherBounds(Passing):
    """Raises without the offsets that the broker holds."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except OffsetOutOfRangeError as error:
            raise OffsetOutOfRangeError(
                error.partition, error.offset, earliest=0, latest=error.latest
            ) from error


class WaitsBehindTheEnd(Passing):
    """Waits for an offset after the end of the log."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        with suppress(OffsetOutOfRangeError):
            return super().poll(timeout_s, takes_records=takes_records)
        return ()


class RaisesAtTheEnd(Passing):
    """Takes the end of the log for out of range."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        for partition, offset in self.client._offsets.items():
            found = self.cluster.watermarks(partition, committed_only=False)
            if found is not None and offset == found[1] > 0:
                raise OffsetOutOfRangeError(partition, offset, earliest=found[0], latest=found[1])
        return super().poll(timeout_s, takes_records=takes_records)


class LosesWithAnError(Passing):
    """Loses the records that come with another partition's error."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except OffsetOutOfRangeError as error:
            for partition in self.client._offsets.keys() - {error.partition}:
                found = self.cluster.watermarks(partition, committed_only=False)
                self.client._offsets[partition] = found[1] if found else 0
            raise


class RemembersAnError(Passing):
    """Raises an error of a partition again, whether it is still assigned or not."""

    error: OversizedRecordError | None = None

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        if self.error is not None:
            raise self.error
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except OversizedRecordError as error:
            self.error = error
            raise


class ReadsRecreated(Passing):
    """Takes the records of a new topic for the old topic's."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        self.client._topic_ids = dict.fromkeys(self.client._topic_ids)
        return super().poll(timeout_s, takes_records=takes_records)


class StartsWithTheNewTopic(Passing):
    """Reads a new topic from its beginning, without an error."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except TopicRecreatedError as error:
            self.assign(PartitionOffsets({error.partition: 0}))
            return ()


class NeedsItsTopics(Passing):
    """Fails if a topic was deleted."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        for partition in self.client._offsets:
            if self.cluster.watermarks(partition, committed_only=False) is None:
                raise UnknownTopicError([partition.topic], "topic", "memory")
        return super().poll(timeout_s, takes_records=takes_records)


class DropsMissing(Passing):
    """Forgets partitions that do not exist."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        for partition in list(self.client._offsets):
            if self.cluster.watermarks(partition, committed_only=False) is None:
                self.client.revoke([partition])
        return super().poll(timeout_s, takes_records=takes_records)


class SkipsCorrupt(Passing):
    """Skips corrupt batches."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except CorruptBatchError as error:
            self.client._offsets[error.partition] = error.offset + 1
            return [PolledRecords(error.partition, None, error.offset + 1)]


class CorruptIsRefused(Passing):
    """Raises an error for a corrupt batch after which a task is run again."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except CorruptBatchError as error:
            raise KafkaRequestError("a fetch", str(error)) from error


class SkipsMalformed(Passing):
    """Skips records whose timestamp overflows."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except MalformedTimestampError:
            [(partition, _)] = self.client._offsets.items()
            self.client._offsets[partition] = 2
            return [PolledRecords(partition, None, 2)]


class ChecksAllTimestamps(Passing):
    """Raises for timestamps that are not projected."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        for partition in self.client._offsets:
            for record in self.cluster._log(partition).records:
                if record.timestamp > 2**63 // 1_000:
                    raise MalformedTimestampError(partition, record.offset, record.timestamp)
        return super().poll(timeout_s, takes_records=takes_records)


class SkipsOversized(Passing):
    """Reads on after an oversized record, even if the options forbid it."""

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        try:
            return super().poll(timeout_s, takes_records=takes_records)
        except OversizedRecordError as error:
            self.client._offsets[error.partition] = error.offset + 1
            return [PolledRecords(error.partition, None, error.offset + 1)]


class SkipsInSilence(Passing):
    """Reports no record that it skipped."""

    def take_skipped(self) -> Iterable[DataLoss]:
        return ()


class ClosesOnce(Passing):
    """Fails when it is closed again."""

    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True


class ReadsAfterClose(Passing):
    """Reads on when it is closed."""

    def close(self) -> None:
        pass


class RaisesAfterClose(Passing):
    """Fails to poll when it is closed."""

    is_closed = False

    def poll(self, timeout_s: float, *, takes_records: bool = True) -> Sequence[PolledRecords]:
        if self.is_closed:
            raise RuntimeError("it is closed")
        return super().poll(timeout_s, takes_records=takes_records)

    def close(self) -> None:
        self.is_closed = True


def _backwards(records: pa.RecordBatch) -> pa.Array[Any]:
    return pa.array(range(records.num_rows - 1, -1, -1))


def _with_records(
    polled: PolledRecords, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> PolledRecords:
    records = polled.records
    return polled if records is None else replace(polled, records=change(records))


def _with_column(polled: PolledRecords, name: str, change: Callable[[Any], Any]) -> PolledRecords:
    """Return polled records with other values of a column, if they have that."""

    def changed(records: pa.RecordBatch) -> pa.RecordBatch:
        index = records.schema.get_field_index(name)
        if index < 0:
            return records
        values = [change(value) for value in records.column(index).to_pylist()]
        field = records.schema.field(index)
        return records.set_column(index, field, pa.array(values, field.type))

    return _with_records(polled, changed)


_Suite = StreamClientContract

WRONG: Final = (
    *wrong(
        _Suite.test_every_column_is_read,
        *(NoHeaders, WholeSeconds, NoTimestampType, PartitionZero),
    ),
    *wrong(_Suite.test_records_have_the_schema_of_the_projection, OtherSchema),
    *wrong(_Suite.test_offsets_without_visible_records_are_passed, EmptyBatches, WaitsForRecords),
    *wrong(
        _Suite.test_reading_starts_at_the_assigned_offset,
        *(FromTheBeginning, SkipsARecord, LastRecordFirst, ReturnsTwice, LastOffset),
    ),
    *wrong(_Suite.test_records_belong_to_the_caller, ReusesMemory),
    *wrong(_Suite.test_a_record_that_arrives_ends_a_poll, WaitsForItsTime),
    *wrong(_Suite.test_a_poll_without_records_ends_in_time, DoesNotWait),
    *wrong(_Suite.test_a_poll_without_partitions_ends_in_time, DoesNotWaitUnassigned),
    *wrong(_Suite.test_several_partitions_are_read, OneTopic),
    *wrong(_Suite.test_partitions_are_assigned_while_others_are_read, ReplacesPartitions),
    *wrong(_Suite.test_an_assigned_partition_is_moved, DoesNotMove),
    *wrong(_Suite.test_a_revoked_partition_can_be_assigned_again, ResumesRevoked),
    *wrong(_Suite.test_revoked_partitions_are_not_read, KeepsReading, RevokesAll, RefusesUnknown),
    *wrong(_Suite.test_aborted_records_are_skipped_under_read_committed, ReadsAborted),
    *wrong(_Suite.test_open_transactions_are_waited_for, ReadsOpen),
    *wrong(_Suite.test_a_deleted_start_is_out_of_range, StartsAgain, OtherBounds),
    *wrong(_Suite.test_a_start_after_the_end_is_out_of_range, WaitsBehindTheEnd),
    *wrong(_Suite.test_the_end_is_in_range, RaisesAtTheEnd),
    *wrong(_Suite.test_an_error_loses_no_records_of_other_partitions, LosesWithAnError),
    *wrong(_Suite.test_an_error_of_a_revoked_partition_is_not_raised, RemembersAnError),
    *wrong(_Suite.test_a_recreated_topic_is_an_error, ReadsRecreated, StartsWithTheNewTopic),
    *wrong(_Suite.test_a_deleted_topic_returns_nothing, NeedsItsTopics),
    *wrong(_Suite.test_a_partition_may_be_added_later, DropsMissing),
    *wrong(_Suite.test_a_corrupt_batch_is_an_error, SkipsCorrupt, CorruptIsRefused),
    *wrong(_Suite.test_a_timestamp_overflow_names_its_record, SkipsMalformed, ChecksAllTimestamps),
    *wrong(_Suite.test_an_oversized_record_is_an_error, SkipsOversized),
    *wrong(_Suite.test_oversized_records_are_skipped, SkipsInSilence),
    *wrong(_Suite.test_closing_twice_is_allowed, ClosesOnce),
    *wrong(_Suite.test_nothing_is_read_after_close, ReadsAfterClose, RaisesAfterClose),
)
