"""Readers that break a promise of ``RecordReader``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.adapters.kafka_format.record_columns import RecordColumns
from pyspark_kafka.adapters.memory.cluster import CREATE_TIME, StoredRecord
from pyspark_kafka.adapters.memory.reading import MemoryRecordReader
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    PysparkKafkaError,
    UnknownTopicError,
)
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    MalformedTimestampError,
    MissingOffsetsError,
    OffsetOutOfRangeError,
    OversizedRecordError,
    TopicRecreatedError,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.ports.reading import RecordReader
from pyspark_kafka.ports.record_schema import TYPES, record_schema
from pyspark_kafka.testing import MemoryWorld
from pyspark_kafka.testing import RecordReaderContract as Suite

from .adapted_world import AdaptedWorld
from .adapter import PortFaults, suite_with, wrong_with

if TYPE_CHECKING:
    from pyspark_kafka.domain.reading.data_loss import DataLoss
    from pyspark_kafka.domain.topic_partition import TopicPartition

    Batches = Iterator[pa.RecordBatch]


class Passing(RecordReader):
    """Passes every call to another reader."""

    def __init__(self, reader: RecordReader, world: MemoryWorld) -> None:
        self.reader = reader
        self.world = world

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from self.reader.read(offset_range, projection)

    def take_skipped(self) -> Iterable[DataLoss]:
        return self.reader.take_skipped()

    def records(self, partition: TopicPartition) -> list[StoredRecord]:
        """Return all records of a partition, also aborted and corrupt ones."""
        return self.world.cluster._log(partition).records

    def close(self) -> None:
        self.reader.close()


class Reverses(Passing):
    """Returns the last record of a batch first."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for batch in super().read(offset_range, projection):
            yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


class ReadsTwice(Passing):
    """Returns each batch twice."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for batch in super().read(offset_range, projection):
            yield batch
            yield batch


class EndsAfterABatch(Passing):
    """Takes the end of a batch for the end of the range."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield next(super().read(offset_range, projection))


class StartsEarlier(Passing):
    """Begins with the record before the range."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        start = max(0, offset_range.from_offset - 1)
        yield from super().read(replace(offset_range, from_offset=start), projection)


class EndsLater(Passing):
    """Returns the record after the range, too."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from super().read(offset_range, projection)
        end = offset_range.until_offset
        with suppress(OffsetOutOfRangeError):
            yield from super().read(OffsetRange(offset_range.partition, end, end + 1), projection)


class EmptyBatches(Passing):
    """Returns a batch without rows."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from super().read(offset_range, projection)
        yield pa.RecordBatch.from_pylist([], record_schema(projection))


class AllColumns(Passing):
    """Returns columns that are not projected."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from super().read(offset_range, ALL_COLUMNS)


class SortsColumns(Passing):
    """Returns the columns in the order of their names."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from super().read(offset_range, Projection(tuple(sorted(projection.columns))))


class SharesMemory(Passing):
    """Writes the offsets of each batch to the same memory."""

    def __init__(self, reader: RecordReader, world: MemoryWorld) -> None:
        super().__init__(reader, world)
        self._offsets = np.zeros(10_000, np.int64)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for batch in super().read(offset_range, projection):
            shared = self._offsets[: batch.num_rows]
            shared[:] = batch["offset"].to_numpy()
            yield _with_column(batch, "offset", pa.array(shared))


class NeedsTheEnd(Passing):
    """Reads no further range until the last one is read to its end."""

    _is_reading = False

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        if self._is_reading:
            raise RuntimeError("a range is being read")
        self._is_reading = True
        yield from super().read(offset_range, projection)
        self._is_reading = False


class ReadsOn(Passing):
    """Reads on where the last range of a partition ended."""

    def __init__(self, reader: RecordReader, world: MemoryWorld) -> None:
        super().__init__(reader, world)
        self._ends: dict[TopicPartition, int] = {}

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        end = self._ends.get(offset_range.partition, 0)
        start = min(max(end, offset_range.from_offset), offset_range.until_offset)
        yield from super().read(replace(offset_range, from_offset=start), projection)
        self._ends[offset_range.partition] = offset_range.until_offset


class OnePartition(Passing):
    """Reads partition 0, whichever is to be read."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        first = replace(offset_range.partition, partition=0)
        yield from super().read(replace(offset_range, partition=first), projection)


class _Changing(Passing):
    """Returns a column with other values."""

    column = ""

    def change(self, value: Any) -> Any:
        raise NotImplementedError

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for batch in super().read(offset_range, projection):
            if self.column not in projection:
                yield batch
                continue
            values = [self.change(value) for value in batch[self.column].to_pylist()]
            yield _with_column(batch, self.column, pa.array(values, TYPES[self.column]))


class AlwaysCreateTime(_Changing):
    """Always says ``timestampType`` 0."""

    column = "timestampType"

    def change(self, value: Any) -> Any:
        return CREATE_TIME


class Seconds(_Changing):
    """Cuts timestamps to seconds."""

    column = "timestamp"

    def change(self, value: Any) -> Any:
        return value.replace(microsecond=0)


class DropsHeaders(_Changing):
    """Returns no headers."""

    column = "headers"

    def change(self, value: Any) -> Any:
        return None


class HeadersByKey(_Changing):
    """Returns the last header of each key."""

    column = "headers"

    def change(self, value: Any) -> Any:
        return value and list({pair["key"]: pair for pair in value}.values())


class HeadersNeverNull(_Changing):
    """Returns an empty list for a record without headers."""

    column = "headers"

    def change(self, value: Any) -> Any:
        return value or []


class HeadersWithText(_Changing):
    """Returns an empty value for a header without a value."""

    column = "headers"

    def change(self, value: Any) -> Any:
        return value and [{**pair, "value": pair["value"] or b""} for pair in value]


class NullKeyIsEmpty(_Changing):
    """Returns an empty key for null."""

    column = "key"

    def change(self, value: Any) -> Any:
        return value or b""


class EmptyValueIsNull(_Changing):
    """Returns null for an empty value."""

    column = "value"

    def change(self, value: Any) -> Any:
        return value or None


class KeyAndValue(Passing):
    """Mixes key and value up."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for batch in super().read(offset_range, projection):
            if {"key", "value"} <= set(projection.columns):
                swapped = _with_column(batch, "key", batch["value"])
                yield _with_column(swapped, "value", batch["key"])
            else:
                yield batch


class IgnoresTransactions(Passing):
    """Reads as under ``read_uncommitted``."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        reader = MemoryRecordReader(self.world.cluster, self.world.options())
        yield from reader.read(offset_range, projection)


class AlwaysReadsCommitted(Passing):
    """Reads as under ``read_committed``."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        options = self.world.options(kafka__isolation__level="read_committed")
        yield from MemoryRecordReader(self.world.cluster, options).read(offset_range, projection)


class ReadsOpenTransactions(Passing):
    """Returns records of transactions that may still be aborted."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            rest = replace(offset_range, from_offset=error.offset)
            reader = MemoryRecordReader(self.world.cluster, self.world.options())
            yield from reader.read(rest, projection)


class ReturnsMarkers(Passing):
    """Returns an empty record for each offset without a record."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        position = offset_range.from_offset
        for batch in super().read(offset_range, projection):
            rows = []
            for row in batch.to_pylist():
                rows += [{"offset": each} for each in range(position, row["offset"])]
                rows.append(row)
                position = row["offset"] + 1
            yield pa.RecordBatch.from_pylist(rows, record_schema(projection))


class GapIsAnError(Passing):
    """Takes an offset without a record for a deleted one."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        position = offset_range.from_offset
        for batch in super().read(offset_range, projection):
            for offset in (row["offset"] for row in batch.to_pylist()):
                if offset > position:
                    raise MissingOffsetsError(offset_range.partition, position, offset)
                position = offset + 1
            yield batch
        if position < offset_range.until_offset:
            raise MissingOffsetsError(offset_range.partition, position, offset_range.until_offset)


class EndsAtTheLog(Passing):
    """Shortens a range beyond the log's end."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        with suppress(OffsetOutOfRangeError):
            yield from super().read(offset_range, projection)


class ErrorsFirst(Passing):
    """Returns no record of a range that ends with an error."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from list(super().read(offset_range, projection))


class NamesTheStart(Passing):
    """Names the start of the range for the offset that is missing."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            raise OffsetOutOfRangeError(
                error.partition,
                offset_range.from_offset,
                earliest=error.earliest,
                latest=error.latest,
            ) from error


class StartsAtTheEarliest(Passing):
    """Begins with the earliest offset if the range begins before."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            if error.offset >= error.earliest:
                raise
            yield from super().read(replace(offset_range, from_offset=error.earliest), projection)


class EndsIfItStartsLater(Passing):
    """Returns no record, and no error, for a range that begins after the log."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            if offset_range.from_offset < error.latest:
                raise


class SkipsDeleted(Passing):
    """Reads on after what was deleted during the read."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            if not offset_range.from_offset < error.offset < error.earliest:
                raise
            yield from super().read(replace(offset_range, from_offset=error.earliest), projection)


class EndsAtDeleted(Passing):
    """Shortens a range if records are deleted during the read."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            if not offset_range.from_offset < error.offset < error.earliest:
                raise


class LosesTooMuch(Passing):
    """Says that the whole range was lost if a part of it was deleted."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OffsetOutOfRangeError as error:
            start, end = offset_range.from_offset, offset_range.until_offset
            raise MissingOffsetsError(error.partition, start, end) from error


class ReadsRecreated(Passing):
    """Takes the records of a new topic for the old topic's."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        rest = offset_range
        while rest.size > 0:
            # Each read forgets the topic of the one before.
            batch = next(super().read(rest, projection))
            yield batch
            rest = rest.starting_at(batch["offset"][-1].as_py() + 1)


class EndsAtRecreated(Passing):
    """Takes the end of the old topic for the end of the range."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        with suppress(TopicRecreatedError, OffsetOutOfRangeError):
            yield from super().read(offset_range, projection)


class StartsWithTheNewTopic(Passing):
    """Reads a new topic from its beginning, without an error."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except TopicRecreatedError as error:
            yield from super().read(offset_range.starting_at(error.earliest), projection)


class FailsTogether(Passing):
    """Reads all expected ranges with the first."""

    _expected: Iterable[OffsetRange] = ()

    def expect(self, ranges: Iterable[OffsetRange]) -> None:
        self._expected = ranges

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for expected in self._expected:
            yield from list(super().read(expected, projection))[:0]
        yield from super().read(offset_range, projection)


class ReadsInOrder(Passing):
    """Reads the next expected range, not the one that is asked for."""

    _expected: Iterator[OffsetRange] = iter(())

    def expect(self, ranges: Iterable[OffsetRange]) -> None:
        self._expected = iter(ranges)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from super().read(next(self._expected, offset_range), projection)


class RecreatedIsOutOfRange(Passing):
    """Says that a new topic does not hold an offset that it holds."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except TopicRecreatedError as error:
            offset, earliest = error.offset, error.earliest
            raise OffsetOutOfRangeError(
                error.partition, offset, earliest=earliest, latest=offset
            ) from error


class RemembersTopics(Passing):
    """Refuses a range of a new topic because an earlier one was of the old topic."""

    _topic_id: int | None = None

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        partition = offset_range.partition
        topic_id = self.world.cluster.topic_id(partition.topic)
        self._topic_id = self._topic_id or topic_id
        if self._topic_id != topic_id:
            raise TopicRecreatedError(partition, offset_range.from_offset, earliest=0)
        yield from super().read(offset_range, projection)


class IgnoresChecksums(Passing):
    """Returns records of corrupt batches."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except CorruptBatchError as error:
            partition = offset_range.partition
            [corrupt] = [each for each in self.records(partition) if each.offset == error.offset]
            yield RecordColumns.of([corrupt]).to_record_batch(partition, projection)
            yield from self.read(replace(offset_range, from_offset=error.offset + 1), projection)


class SkipsCorrupt(Passing):
    """Reads on after a corrupt batch."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except CorruptBatchError as error:
            yield from self.read(replace(offset_range, from_offset=error.offset + 1), projection)


class EndsAtCorrupt(Passing):
    """Takes a corrupt batch for the end of the range."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        with suppress(CorruptBatchError):
            yield from super().read(offset_range, projection)


class CorruptIsRefused(Passing):
    """Raises another error for a corrupt batch."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except CorruptBatchError as error:
            raise KafkaRequestError("a fetch", str(error)) from error


class SkipsOversized(Passing):
    """Reads on after an oversized record, even if the options forbid it."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        try:
            yield from super().read(offset_range, projection)
        except OversizedRecordError as error:
            yield from self.read(replace(offset_range, from_offset=error.offset + 1), projection)


class OversizedFirst(Passing):
    """Returns no record before one that is oversized."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from list(super().read(offset_range, projection))


class SkipsInSilence(Passing):
    """Reports no record that it skipped."""

    def take_skipped(self) -> Iterable[DataLoss]:
        return ()


class CountsUnreadHeaders(Passing):
    """Refuses a record for headers that are not read."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        wider = Projection(tuple({*projection.columns, "headers"}))
        for batch in super().read(offset_range, wider):
            yield batch.select(projection.columns)


class StopsWhenCorrupt(Passing):
    """Reads nothing after a corrupt batch."""

    _failure: PysparkKafkaError | None = None

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        if self._failure is not None:
            raise self._failure
        try:
            yield from super().read(offset_range, projection)
        except PysparkKafkaError as error:
            self._failure = error
            raise


class EndsAtMalformed(Passing):
    """Takes a timestamp that overflows for the end of the range."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        with suppress(MalformedTimestampError):
            yield from super().read(offset_range, projection)


class MalformedFirst(Passing):
    """Returns no record of a batch with a timestamp that overflows."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        yield from list(super().read(offset_range, projection))


class ChecksEveryTimestamp(Passing):
    """Fails for a timestamp that overflows, even if it is not projected."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        for batch in super().read(offset_range, ALL_COLUMNS):
            yield batch.select(list(projection.columns))


class UnreachableIsEmpty(Passing):
    """Returns nothing if no broker answers."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        with suppress(BrokerUnreachableError):
            yield from super().read(offset_range, projection)


class MissingIsEmpty(Passing):
    """Returns no record, and no error, for a partition that does not exist."""

    def read(self, offset_range: OffsetRange, projection: Projection) -> Batches:
        with suppress(UnknownTopicError):
            yield from super().read(offset_range, projection)


class ClosesOnce(Passing):
    """Fails when it is closed twice."""

    def close(self) -> None:
        super().close()
        del self.reader


def _with_column(batch: pa.RecordBatch, name: str, values: pa.Array[Any]) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), pc.cast(values, values.type))


class _ShortContract(Suite):
    many = 2_500  # batches of the cluster in memory have 1,000


def _suite(adapter: type[Passing]) -> type:
    return suite_with(_ShortContract, world=lambda: AdaptedWorld("record_reader", adapter))


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *_wrong(
            Suite.test_records_come_in_order_and_once,
            *(Reverses, ReadsTwice, EndsAfterABatch, OnePartition),
        ),
        *_wrong(
            Suite.test_nothing_outside_of_the_range_is_read,
            *(StartsEarlier, EndsLater, EmptyBatches),
        ),
        *_wrong(Suite.test_only_the_projected_columns_are_read, AllColumns, SortsColumns),
        *_wrong(Suite.test_batches_belong_to_the_caller, SharesMemory),
        *_wrong(Suite.test_an_iterator_can_be_abandoned, NeedsTheEnd),
        *_wrong(Suite.test_a_reader_reads_one_range_after_another, ReadsOn),
        *_wrong(Suite.test_append_time_is_told_from_create_time, AlwaysCreateTime),
        *_wrong(Suite.test_expected_ranges_are_read_like_others, ReadsInOrder),
        *_wrong(Suite.test_an_expected_range_fails_when_it_is_read, FailsTogether),
        *_wrong(Suite.test_every_column_is_read, Seconds, DropsHeaders, KeyAndValue),
        *_wrong(
            Suite.test_headers_keep_order_duplicates_and_nulls,
            *(HeadersByKey, HeadersNeverNull, HeadersWithText),
        ),
        *_wrong(Suite.test_null_and_empty_differ, NullKeyIsEmpty, EmptyValueIsNull),
        *_wrong(Suite.test_aborted_records_are_skipped_under_read_committed, IgnoresTransactions),
        *_wrong(
            Suite.test_aborted_records_are_read_under_read_uncommitted,
            *(AlwaysReadsCommitted, ReturnsMarkers),
        ),
        *_wrong(
            Suite.test_an_open_transaction_is_out_of_range_under_read_committed,
            ReadsOpenTransactions,
        ),
        *_wrong(Suite.test_a_range_may_end_in_offsets_without_records, GapIsAnError),
        *_wrong(
            Suite.test_a_range_that_ends_after_the_log_is_out_of_range,
            *(EndsAtTheLog, ErrorsFirst, NamesTheStart),
        ),
        *_wrong(Suite.test_a_deleted_start_is_out_of_range, StartsAtTheEarliest),
        *_wrong(
            Suite.test_a_start_after_the_end_is_out_of_range,
            *(EndsIfItStartsLater, StopsWhenCorrupt),
        ),
        *_wrong(
            Suite.test_records_that_are_deleted_during_a_read_are_an_error,
            *(SkipsDeleted, EndsAtDeleted, LosesTooMuch),
        ),
        *_wrong(
            Suite.test_a_recreated_topic_is_an_error,
            *(ReadsRecreated, StartsWithTheNewTopic, RecreatedIsOutOfRange),
        ),
        *_wrong(Suite.test_a_recreated_topic_that_is_shorter_is_an_error, EndsAtRecreated),
        *_wrong(Suite.test_a_topic_that_is_recreated_before_a_range_is_read, RemembersTopics),
        *_wrong(
            Suite.test_a_corrupt_batch_is_an_error,
            *(IgnoresChecksums, SkipsCorrupt, EndsAtCorrupt, CorruptIsRefused),
        ),
        *_wrong(Suite.test_an_oversized_record_is_an_error, SkipsOversized, OversizedFirst),
        *_wrong(Suite.test_oversized_records_are_skipped, SkipsInSilence),
        *_wrong(Suite.test_headers_that_are_not_read_have_no_limit, CountsUnreadHeaders),
        *_wrong(
            Suite.test_a_timestamp_overflow_names_its_record,
            *(EndsAtMalformed, MalformedFirst, ChecksEveryTimestamp),
        ),
        *_wrong(Suite.test_an_unreachable_cluster_is_an_error, UnreachableIsEmpty),
        *_wrong(Suite.test_a_partition_that_does_not_exist_is_an_error, MissingIsEmpty),
        *_wrong(Suite.test_closing_twice_is_allowed, ClosesOnce),
    ),
)
