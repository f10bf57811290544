from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.adapters.kafka_format.record_columns import RecordColumns
from pyspark_kafka.adapters.memory.cluster import CREATE_TIME
from pyspark_kafka.adapters.memory.reading import MemoryRecordReader
from pyspark_kafka.domain.errors import BrokerUnreachableError, UnknownTopicError
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
from pyspark_kafka.ports.record_schema import TYPES
from pyspark_kafka.testing import RecordReaderContract as Suite

from .adapted_world import AdaptedWorld
from .adapter import Faults, PassesOn, suite_with


class Passing(PassesOn, RecordReader):
    """Passes every call to another reader."""


def _with_column(batch: pa.RecordBatch, name: str, values: pa.Array[Any]) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), pc.cast(values, values.type))


class _ShortContract(Suite):
    many = 2_500  # batches of the cluster in memory have 1,000


def _suite(adapter: type[Passing]) -> type:
    return suite_with(_ShortContract, world=lambda: AdaptedWorld("record_reader", adapter))


wrong: Final = Faults(Passing, _suite)


@wrong(Suite.test_records_come_in_order_and_once, "read")
def returns_the_last_record_of_a_batch_first(self, offset_range, projection):
    for batch in self.inner.read(offset_range, projection):
        yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


@wrong(Suite.test_nothing_outside_of_the_range_is_read, "read")
def begins_with_the_record_before_the_range(self, offset_range, projection):
    start = max(0, offset_range.from_offset - 1)
    yield from self.inner.read(replace(offset_range, from_offset=start), projection)


@wrong(Suite.test_only_the_projected_columns_are_read, "read")
def returns_columns_that_are_not_projected(self, offset_range, projection):
    yield from self.inner.read(offset_range, ALL_COLUMNS)


@wrong(Suite.test_batches_belong_to_the_caller, "read")
def writes_the_offsets_of_each_batch_to_the_same_memory(self, offset_range, projection):
    memory = self.seen.setdefault("memory", np.zeros(10_000, np.int64))
    for batch in self.inner.read(offset_range, projection):
        shared = memory[: batch.num_rows]
        shared[:] = batch["offset"].to_numpy()
        yield _with_column(batch, "offset", pa.array(shared))


@wrong(Suite.test_an_iterator_can_be_abandoned, "read")
def reads_no_further_range_until_the_last_one_is_read_to_its_end(self, offset_range, projection):
    if self.seen:
        raise RuntimeError("a range is being read")
    self.seen["range"] = offset_range
    yield from self.inner.read(offset_range, projection)
    self.seen.clear()


@wrong(Suite.test_a_reader_reads_one_range_after_another, "read")
def reads_on_where_the_last_range_of_a_partition_ended(self, offset_range, projection):
    end = self.seen.get(offset_range.partition, 0)
    start = min(max(end, offset_range.from_offset), offset_range.until_offset)
    yield from self.inner.read(replace(offset_range, from_offset=start), projection)
    self.seen[offset_range.partition] = offset_range.until_offset


def _changes(test: Callable[..., None], column: str, change: Callable[[Any], Any]) -> None:
    """Add a reader that returns a column with other values."""

    def read(self, offset_range, projection):
        for batch in self.inner.read(offset_range, projection):
            if column not in projection:
                yield batch
                continue
            values = [change(value) for value in batch[column].to_pylist()]
            yield _with_column(batch, column, pa.array(values, TYPES[column]))

    read.__name__ = f"changes_{column}"
    wrong(test, "read")(read)


_changes(Suite.test_append_time_is_told_from_create_time, "timestampType", lambda _: CREATE_TIME)
_changes(Suite.test_every_column_is_read, "timestamp", lambda value: value.replace(microsecond=0))
_changes(
    Suite.test_headers_keep_order_duplicates_and_nulls,
    "headers",
    lambda value: value and list({pair["key"]: pair for pair in value}.values()),
)
_changes(Suite.test_null_and_empty_differ, "key", lambda value: value or b"")


def _ends_with(test: Callable[..., None], *errors: type[Exception]) -> None:
    """Add a reader that takes errors for the end of the range."""

    def read(self, offset_range, projection):
        with suppress(*errors):
            yield from self.inner.read(offset_range, projection)

    read.__name__ = "_".join(("ends_with", *(error.__name__ for error in errors)))
    wrong(test, "read")(read)


_ends_with(Suite.test_a_range_that_ends_after_the_log_is_out_of_range, OffsetOutOfRangeError)
_ends_with(
    Suite.test_a_recreated_topic_that_is_shorter_is_an_error,
    TopicRecreatedError,
    OffsetOutOfRangeError,
)
_ends_with(Suite.test_a_timestamp_overflow_names_its_record, MalformedTimestampError)
_ends_with(Suite.test_an_unreachable_cluster_is_an_error, BrokerUnreachableError)
_ends_with(Suite.test_a_partition_that_does_not_exist_is_an_error, UnknownTopicError)


@wrong(Suite.test_aborted_records_are_skipped_under_read_committed, "read")
def ignores_transactions(self, offset_range, projection):
    """Reads as under ``read_uncommitted``."""
    reader = MemoryRecordReader(self.world.cluster, self.world.options())
    yield from reader.read(offset_range, projection)


@wrong(Suite.test_aborted_records_are_read_under_read_uncommitted, "read")
def always_reads_committed(self, offset_range, projection):
    """Reads as under ``read_committed``."""
    options = self.world.options(kafka__isolation__level="read_committed")
    yield from MemoryRecordReader(self.world.cluster, options).read(offset_range, projection)


@wrong(Suite.test_an_open_transaction_is_out_of_range_under_read_committed, "read")
def returns_records_of_transactions_that_may_still_be_aborted(self, offset_range, projection):
    try:
        yield from self.inner.read(offset_range, projection)
    except OffsetOutOfRangeError as error:
        rest = replace(offset_range, from_offset=error.offset)
        reader = MemoryRecordReader(self.world.cluster, self.world.options())
        yield from reader.read(rest, projection)


@wrong(Suite.test_a_range_may_end_in_offsets_without_records, "read")
def takes_an_offset_without_a_record_for_a_deleted_one(self, offset_range, projection):
    position = offset_range.from_offset
    for batch in self.inner.read(offset_range, projection):
        for offset in (row["offset"] for row in batch.to_pylist()):
            if offset > position:
                raise MissingOffsetsError(offset_range.partition, position, offset)
            position = offset + 1
        yield batch
    if position < offset_range.until_offset:
        raise MissingOffsetsError(offset_range.partition, position, offset_range.until_offset)


@wrong(Suite.test_a_deleted_start_is_out_of_range, "read")
def begins_with_the_earliest_offset_if_the_range_begins_before(self, offset_range, projection):
    try:
        yield from self.inner.read(offset_range, projection)
    except OffsetOutOfRangeError as error:
        if error.offset >= error.earliest:
            raise
        yield from self.inner.read(replace(offset_range, from_offset=error.earliest), projection)


@wrong(Suite.test_a_start_after_the_end_is_out_of_range, "read")
def ends_if_it_starts_later(self, offset_range, projection):
    """Returns no record, and no error, for a range that begins after the log."""
    try:
        yield from self.inner.read(offset_range, projection)
    except OffsetOutOfRangeError as error:
        if offset_range.from_offset < error.latest:
            raise


@wrong(Suite.test_records_that_are_deleted_during_a_read_are_an_error, "read")
def reads_on_after_what_was_deleted_during_the_read(self, offset_range, projection):
    try:
        yield from self.inner.read(offset_range, projection)
    except OffsetOutOfRangeError as error:
        if not offset_range.from_offset < error.offset < error.earliest:
            raise
        yield from self.inner.read(replace(offset_range, from_offset=error.earliest), projection)


@wrong(Suite.test_a_recreated_topic_is_an_error, "read")
def takes_records_of_a_new_topic_for_those_of_the_old_topic(self, offset_range, projection):
    rest = offset_range
    while rest.size > 0:
        # Each read forgets the topic of the one before.
        batch = next(self.inner.read(rest, projection))
        yield batch
        rest = rest.starting_at(batch["offset"][-1].as_py() + 1)


@wrong(Suite.test_an_expected_range_fails_when_it_is_read)
class FailsTogether(Passing):
    """Reads all expected ranges with the first."""

    _expected: Iterable[OffsetRange] = ()

    def expect(self, ranges):
        self._expected = ranges

    def read(self, offset_range, projection):
        for expected in self._expected:
            yield from list(self.inner.read(expected, projection))[:0]
        yield from self.inner.read(offset_range, projection)


@wrong(Suite.test_expected_ranges_are_read_like_others)
class ReadsInOrder(Passing):
    """Reads the next expected range, not the one that is asked for."""

    _expected: Iterator[OffsetRange] = iter(())

    def expect(self, ranges):
        self._expected = iter(ranges)

    def read(self, offset_range, projection):
        yield from self.inner.read(next(self._expected, offset_range), projection)


@wrong(Suite.test_a_topic_that_is_recreated_before_a_range_is_read, "read")
def refuses_a_range_of_a_new_topic_after_one_of_the_old_topic(self, offset_range, projection):
    partition = offset_range.partition
    topic_id = self.world.cluster.topic_id(partition.topic)
    if self.seen.setdefault(partition.topic, topic_id) != topic_id:
        raise TopicRecreatedError(partition, offset_range.from_offset, earliest=0)
    yield from self.inner.read(offset_range, projection)


@wrong(Suite.test_a_corrupt_batch_is_an_error, "read")
def returns_records_of_corrupt_batches(self, offset_range, projection):
    try:
        yield from self.inner.read(offset_range, projection)
    except CorruptBatchError as error:
        partition = offset_range.partition
        records = self.world.cluster._log(partition).records
        [corrupt] = [each for each in records if each.offset == error.offset]
        yield RecordColumns.of([corrupt]).to_record_batch(partition, projection)
        yield from self.read(replace(offset_range, from_offset=error.offset + 1), projection)


@wrong(Suite.test_an_oversized_record_is_an_error, "read")
def skips_oversized(self, offset_range, projection):
    """Reads on after an oversized record, even if the options forbid it."""
    try:
        yield from self.inner.read(offset_range, projection)
    except OversizedRecordError as error:
        yield from self.read(replace(offset_range, from_offset=error.offset + 1), projection)


@wrong(Suite.test_oversized_records_are_skipped, "take_skipped")
def reports_no_record_that_it_skipped(self):
    return ()


@wrong(Suite.test_headers_that_are_not_read_have_no_limit, "read")
def refuses_a_record_for_headers_that_are_not_read(self, offset_range, projection):
    wider = Projection(tuple({*projection.columns, "headers"}))
    for batch in self.inner.read(offset_range, wider):
        yield batch.select(projection.columns)


wrong.fails_when_closed_twice(Suite.test_closing_twice_is_allowed)
