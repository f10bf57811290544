import zlib
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.writing.errors import (
    InvalidRecordError,
    RecordDeliveryError,
    UnknownPartitionError,
)
from pyspark_kafka.domain.writing.transaction import DeliveryStats
from pyspark_kafka.ports.writing import RecordWriter
from pyspark_kafka.testing import RecordWriterContract

from .adapted_world import AdaptedWorld
from .adapter import Faults, PassesOn, suite_with

Values = list[Any]


YEAR: Final = 2026


class Passing(PassesOn, RecordWriter):
    """Passes every call to another writer."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.inner.write(self.rewritten(batch, topic), topic)

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch


def _values(batch: pa.RecordBatch, name: str) -> Values:
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    return batch.column(name).to_pylist()


def _set(batch: pa.RecordBatch, name: str, values: Values, kind: pa.DataType) -> pa.RecordBatch:
    """Return a batch with other values of a column, which it may not have."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return pa.RecordBatch.from_pydict({**columns, name: pa.array(values, kind)})


def _with(batch: pa.RecordBatch, name: str, change: Callable[[Values], Values]) -> pa.RecordBatch:
    """Return a batch with other values of a column, if it has that."""
    if name not in batch.schema.names:
        return batch
    return _set(batch, name, change(_values(batch, name)), batch.schema.field(name).type)


def _repeat_first(values: Values) -> Values:
    return values[:1] * len(values)


def _suite(adapter: type[Passing]) -> type:
    return suite_with(RecordWriterContract, world=lambda: AdaptedWorld("record_writer", adapter))


_Suite = RecordWriterContract

wrong: Final = Faults(Passing, _suite)


@wrong(_Suite.test_each_row_may_name_its_topic_and_partition, "rewritten")
def takes_the_first_rows_topic_for_a_whole_batch(self, batch, _topic):
    return _with(batch, "topic", _repeat_first)


@wrong(_Suite.test_the_sinks_topic_overrides_the_column, "write")
def column_first(self, batch, topic=None):
    """Lets the column ``topic`` override the argument."""
    self.inner.write(batch, None if "topic" in batch.schema.names else topic)


@wrong(_Suite.test_a_flush_delivers_every_write_before_it)
class LastWriteOnly(Passing):
    """Keeps only the last write before a flush."""

    def write(self, batch, topic=None):
        self.seen = {"last": (batch, topic)}

    def flush(self):
        while self.seen:
            self.inner.write(*self.seen.pop("last"))
        return self.inner.flush()


@wrong(_Suite.test_records_of_one_key_go_to_one_partition, "rewritten")
def sends_the_rows_of_a_batch_in_the_wrong_order(self, batch, _topic):
    return batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


@wrong(_Suite.test_records_without_a_key_are_written, "rewritten")
def sends_the_first_hundred_rows_of_a_batch(self, batch, _topic):
    return batch.slice(0, 100)


@wrong(_Suite.test_a_slice_is_written, "rewritten")
def whole_arrays(self, batch, _topic):
    """Does not know that a batch may be a slice, and sends rows from the beginning."""
    columns = [
        pa.Array.from_buffers(column.type, len(column), column.buffers()[:3])
        if pa.types.is_binary(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


@wrong(_Suite.test_keys_decide_as_in_java, "rewritten")
def sends_what_has_no_partition_to_0(self, batch, _topic):
    partitions = _values(batch, "partition")
    return _set(batch, "partition", [each or 0 for each in partitions], pa.int32())


@wrong(_Suite.test_records_without_a_key_are_spread, "rewritten")
def sends_what_has_neither_partition_nor_key_to_0(self, batch, _topic):
    rows = zip(_values(batch, "partition"), _values(batch, "key"), strict=True)
    partitions = [0 if each is None and key is None else each for each, key in rows]
    return _set(batch, "partition", partitions, pa.int32())


@wrong(_Suite.test_keys_decide_as_in_java, "rewritten")
def hashes_keys_by_crc_32_as_librdkafka_does_by_default(self, batch, topic):
    if topic is None or "key" not in batch.schema.names:
        return batch
    count = self.inner._cluster.topics()[topic]
    rows = zip(_values(batch, "partition"), _values(batch, "key"), strict=True)
    partitions = [
        zlib.crc32(key) % count if each is None and key is not None else each for each, key in rows
    ]
    return _set(batch, "partition", partitions, pa.int32())


@wrong(_Suite.test_every_column_is_written, "rewritten")
def writes_null_keys_and_values_as_empty_ones(self, batch, _topic):
    for name in ("key", "value"):
        batch = _with(batch, name, lambda values: [value or b"" for value in values])
    return batch


@wrong(_Suite.test_strings_are_written_as_utf8, "rewritten")
def writes_strings_in_latin_1(self, batch, _topic):
    for name in ("key", "value"):
        if name in batch.schema.names and pa.types.is_string(batch.schema.field(name).type):
            encoded = [text and text.encode("latin-1") for text in _values(batch, name)]
            batch = _set(batch, name, encoded, pa.binary())
    return batch


@wrong(_Suite.test_records_without_a_timestamp_get_the_current_time, "rewritten")
def writes_records_without_a_timestamp_with_the_time_0(self, batch, _topic):
    return _with(batch, "timestamp", lambda values: [value or 0 for value in values])


@wrong(_Suite.test_flush_counts_since_the_last_one, "flush")
def counts_records_from_its_beginning_on(self):
    before = self.seen.get("delivered", DeliveryStats())
    self.seen["delivered"] = before + self.inner.flush()
    return self.seen["delivered"]


@wrong(_Suite.test_delivered_bytes_are_those_of_keys_values_and_headers)
class CountsNoHeaders(Passing):
    """Counts the bytes of keys and values only."""

    def write(self, batch, topic=None):
        self.inner.write(batch, topic)
        found = [pair for pairs in _values(batch, "headers") for pair in pairs or ()]
        self.seen["bytes"] = sum(len(pair["key"]) + len(pair["value"] or b"") for pair in found)

    def flush(self):
        return self.inner.flush() + DeliveryStats(0, -self.seen.pop("bytes", 0))


@wrong(_Suite.test_rows_may_name_partitions_that_were_added, "rewritten")
def does_not_ask_again_how_many_partitions_a_topic_has(self, batch, topic):
    count = self.seen.setdefault(topic, self.inner._cluster.topics().get(topic or "", 0))
    named = _values(batch, "partition")
    if topic and any(number is not None and number >= count for number in named):
        raise UnknownPartitionError(topic, count, 0, "it was not there before")
    return batch


@wrong(_Suite.test_a_record_that_is_too_large_for_its_topic_is_an_error)
class AcknowledgesLargeRecords(Passing):
    """Counts records that are too large as delivered, and loses them."""

    def rewritten(self, batch, _topic):
        fits = [len(value or b"") < 2_000 for value in _values(batch, "value")]
        return batch.filter(pa.array(fits))

    def flush(self):
        return DeliveryStats(max(1, self.inner.flush().records))


@wrong(_Suite.test_a_record_that_a_broker_refuses_is_an_error)
class AcknowledgesRefusals(AcknowledgesLargeRecords):
    """Counts records without a key as delivered, and loses them, as if a broker refused them."""

    def rewritten(self, batch, _topic):
        return batch.filter(pa.array([key is not None for key in _values(batch, "key")]))


@wrong(_Suite.test_a_timestamp_that_a_broker_refuses_is_an_error)
class AcknowledgesOldRecords(AcknowledgesLargeRecords):
    """Counts records of past years as delivered, and loses them, as if a broker refused them."""

    def rewritten(self, batch, _topic):
        years = (stamp.year if stamp else YEAR for stamp in _values(batch, "timestamp"))
        return batch.filter(pa.array([year >= YEAR for year in years]))


@wrong(_Suite.test_a_record_needs_a_topic, "write")
def writes_records_without_a_topic_to_nowhere(self, batch, topic=None):
    if topic is not None or "topic" in batch.schema.names:
        self.inner.write(batch, topic)


@wrong(_Suite.test_a_transaction_ends_with_the_flush, "join_transaction")
def writes_outside_of_the_transaction_that_it_has_joined(self, _transaction):
    return


@wrong(_Suite.test_a_transaction_stays_open_after_close)
class AbortsOnClose(Passing):
    """Aborts the transaction that it has joined when it is closed."""

    def join_transaction(self, transaction):
        self.seen["joined"] = transaction
        self.inner.join_transaction(transaction)

    def close(self):
        if self.seen:
            self.inner._cluster.close_transaction(self.seen["joined"], commit=False)


wrong.drops_error(_Suite.test_the_topic_has_to_exist, "write", UnknownTopicError)
wrong.drops_error(_Suite.test_the_partition_has_to_exist, "write", RecordDeliveryError)
wrong.drops_error(_Suite.test_a_header_needs_a_key, "write", InvalidRecordError)
wrong.fails_when_closed_twice(_Suite.test_closing_twice_is_allowed)
