"""Writers that break a promise of ``RecordWriter``."""

from __future__ import annotations

import threading
import time
import zlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from kafka.partitioner.default import murmur2

from pyspark_kafka.domain.errors import KafkaRequestError, UnknownTopicError
from pyspark_kafka.domain.writing.errors import (
    InvalidRecordError,
    RecordDeliveryError,
    UnknownPartitionError,
)
from pyspark_kafka.domain.writing.transaction import DeliveryStats
from pyspark_kafka.ports.writing import RecordWriter
from pyspark_kafka.testing import RecordWriterContract

from .adapted_world import AdaptedWorld
from .adapter import PortFaults, suite_with, wrong_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.adapters.memory.writing import MemoryRecordWriter
    from pyspark_kafka.domain.writing.transaction import Transaction

    Values = list[Any]


YEAR: Final = 2026


class Passing(RecordWriter):
    """Passes every call to another writer."""

    def __init__(self, writer: MemoryRecordWriter) -> None:
        self.writer = writer

    def join_transaction(self, transaction: Transaction) -> None:
        self.writer.join_transaction(transaction)

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(self.rewritten(batch, topic), topic)

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        """Return what is written of a batch."""
        return batch

    def flush(self) -> DeliveryStats:
        return self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class FirstTopic(Passing):
    """Takes the first row's topic for a whole batch."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with(batch, "topic", _repeat_first)


class FirstPartition(Passing):
    """Takes the first row's partition for a whole batch."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with(batch, "partition", _repeat_first)


class ColumnFirst(Passing):
    """Lets the column ``topic`` override the argument."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(batch, None if "topic" in batch.schema.names else topic)


class LastWriteOnly(Passing):
    """Keeps only the last write before a flush."""

    def __init__(self, writer: MemoryRecordWriter) -> None:
        super().__init__(writer)
        self.kept: list[tuple[pa.RecordBatch, str | None]] = []

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.kept = [(batch, topic)]

    def flush(self) -> DeliveryStats:
        for batch, topic in self.kept:
            self.writer.write(batch, topic)
        self.kept.clear()
        return self.writer.flush()


class FirstWritesTopic(LastWriteOnly):
    """Sends all writes before a flush to the topic of the first."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.kept.append((batch, self.kept[0][1] if self.kept else topic))


class LastWriteFirst(LastWriteOnly):
    """Sends the writes before a flush in the wrong order."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.kept.insert(0, (batch, topic))


class LastRowFirst(Passing):
    """Sends the rows of a batch in the wrong order."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


class HundredRows(Passing):
    """Sends the first hundred rows of a batch."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch.slice(0, 100)


class WholeArrays(Passing):
    """Does not know that a batch may be a slice, and sends rows from the beginning."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        columns = [
            pa.Array.from_buffers(column.type, len(column), column.buffers()[:3])
            if pa.types.is_binary(column.type)
            else column
            for column in batch.columns
        ]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)


class SentTwice(Passing):
    """Sends each batch twice, and counts it once."""

    def flush(self) -> DeliveryStats:
        delivered = self.writer.flush()
        return DeliveryStats(delivered.records // 2, delivered.bytes // 2)

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch.take(pa.array([*range(batch.num_rows)] * 2, pa.int64()))


class AllToPartitionZero(Passing):
    """Sends what has no partition to 0."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        partitions = _values(batch, "partition")
        return _set(batch, "partition", [each or 0 for each in partitions], pa.int32())


class KeylessToPartitionZero(Passing):
    """Sends what has neither partition nor key to 0."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        rows = zip(_values(batch, "partition"), _values(batch, "key"), strict=True)
        partitions = [0 if each is None and key is None else each for each, key in rows]
        return _set(batch, "partition", partitions, pa.int32())


class Crc32(Passing):
    """Hashes keys by CRC-32, as librdkafka does by default."""

    def hashed(self, key: bytes) -> int:
        return zlib.crc32(key)

    def rewritten(self, batch: pa.RecordBatch, topic: str | None) -> pa.RecordBatch:
        if topic is None or "key" not in batch.schema.names:
            return batch
        count = self.writer._cluster.topics()[topic]
        rows = zip(_values(batch, "partition"), _values(batch, "key"), strict=True)
        partitions = [
            self.hashed(key) % count if each is None and key is not None else each
            for each, key in rows
        ]
        return _set(batch, "partition", partitions, pa.int32())


class AbsoluteHash(Crc32):
    """Takes the absolute value of a hash, where Java clears its sign."""

    def hashed(self, key: bytes) -> int:
        code: int = murmur2(key)
        return min(code, 2**32 - code)


class HashedText(Crc32):
    """Hashes a key's text in UTF-8, and not its bytes."""

    def hashed(self, key: bytes) -> int:
        code: int = murmur2(key.decode("latin-1").encode())
        return code & 0x7FFFFFFF


class NamedOnce(Crc32):
    """Looks at the column of partitions only if it has no null."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        has_null = None in _values(batch, "partition")
        return _with(
            batch, "partition", lambda values: [None] * len(values) if has_null else values
        )


class EmptyNulls(Passing):
    """Writes null keys and values as empty ones."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        for name in ("key", "value"):
            batch = _with(batch, name, lambda values: [value or b"" for value in values])
        return batch


class NullEmpties(Passing):
    """Writes empty keys and values as nulls."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        for name in ("key", "value"):
            batch = _with(batch, name, lambda values: [value or None for value in values])
        return batch


class Latin1(Passing):
    """Writes strings in Latin-1."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        for name in ("key", "value"):
            if name in batch.schema.names and pa.types.is_string(batch.schema.field(name).type):
                encoded = [text and text.encode("latin-1") for text in _values(batch, name)]
                batch = _set(batch, name, encoded, pa.binary())
        return batch


class NoNullHeaders(Passing):
    """Drops headers with a null value."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with_headers(batch, lambda found: [h for h in found if h["value"] is not None])


class EmptyHeaders(Passing):
    """Writes headers with a null value as empty ones."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with_headers(
            batch, lambda found: [{**h, "value": h["value"] or b""} for h in found]
        )


class UniqueHeaders(Passing):
    """Keeps the last header of a name."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with_headers(batch, lambda found: [*{h["key"]: h for h in found}.values()])


class SortedHeaders(Passing):
    """Sorts a record's headers by their names."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with_headers(batch, lambda found: sorted(found, key=lambda h: h["key"]))


class NoTimestamps(Passing):
    """Writes every record with the current time."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch.select([name for name in batch.schema.names if name != "timestamp"])


class WholeSeconds(Passing):
    """Drops the milliseconds of timestamps."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with(
            batch,
            "timestamp",
            lambda values: [value and value.replace(microsecond=0) for value in values],
        )


class FirstTimestamp(Passing):
    """Takes the first row's timestamp for a whole batch."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with(batch, "timestamp", _repeat_first)


class ZeroTimestamps(Passing):
    """Writes records without a timestamp with the time 0."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return _with(batch, "timestamp", lambda values: [value or 0 for value in values])


class CountsForever(Passing):
    """Counts records from its beginning on."""

    def __init__(self, writer: MemoryRecordWriter) -> None:
        super().__init__(writer)
        self.delivered = DeliveryStats()

    def flush(self) -> DeliveryStats:
        self.delivered += self.writer.flush()
        return self.delivered


class CountsLastWrite(Passing):
    """Counts the records of the last write."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer._delivered = DeliveryStats()
        self.writer.write(batch, topic)


class CountsRowsOnly(Passing):
    """Counts no bytes."""

    def flush(self) -> DeliveryStats:
        return DeliveryStats(self.writer.flush().records)


class CountsNoHeaders(Passing):
    """Counts the bytes of keys and values only."""

    def __init__(self, writer: MemoryRecordWriter) -> None:
        super().__init__(writer)
        self.headers = 0

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(batch, topic)
        found = [pair for pairs in _values(batch, "headers") for pair in pairs or ()]
        self.headers += sum(len(pair["key"]) + len(pair["value"] or b"") for pair in found)

    def flush(self) -> DeliveryStats:
        return self.writer.flush() + DeliveryStats(0, -self.headers)


class SwallowsUnknownTopics(Passing):
    """Loses the records of a topic that does not exist."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        try:
            self.writer.write(batch, topic)
        except UnknownTopicError:
            return


class CreatesTopics(Passing):
    """Creates topics that do not exist."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        if topic is not None and topic not in self.writer._cluster.topics():
            self.writer._cluster.create_topic(topic)
        self.writer.write(batch, topic)


class KeepsPartitionCounts(Passing):
    """Does not ask again how many partitions a topic has."""

    def __init__(self, writer: MemoryRecordWriter) -> None:
        super().__init__(writer)
        self.counts: dict[str | None, int] = {}

    def rewritten(self, batch: pa.RecordBatch, topic: str | None) -> pa.RecordBatch:
        known = self.writer._cluster.topics().get(topic or "", 0)
        count = self.counts.setdefault(topic, known)
        named = _values(batch, "partition")
        if topic and any(number is not None and number >= count for number in named):
            raise UnknownPartitionError(topic, count, 0, "it was not there before")
        return batch


class SwallowsDeliveryErrors(Passing):
    """Loses records that cannot be delivered."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        try:
            self.writer.write(batch, topic)
        except RecordDeliveryError:
            return


class AcknowledgesLargeRecords(Passing):
    """Counts records that are too large as delivered, and loses them."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        fits = [len(value or b"") < 2_000 for value in _values(batch, "value")]
        return batch.filter(pa.array(fits))

    def flush(self) -> DeliveryStats:
        return DeliveryStats(max(1, self.writer.flush().records))


class AcknowledgesRefusals(Passing):
    """Counts records without a key as delivered, and loses them, as if a broker refused them."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch.filter(pa.array([key is not None for key in _values(batch, "key")]))

    def flush(self) -> DeliveryStats:
        return DeliveryStats(max(1, self.writer.flush().records))


class AcknowledgesOldRecords(AcknowledgesRefusals):
    """Counts records of past years as delivered, and loses them, as if a broker refused them."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        years = (stamp.year if stamp else YEAR for stamp in _values(batch, "timestamp"))
        return batch.filter(pa.array([year >= YEAR for year in years]))


class OtherErrors(Passing):
    """Raises an error that is not of the port."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        try:
            self.writer.write(batch, topic)
        except RecordDeliveryError as error:
            raise KafkaRequestError("a request to produce", str(error)) from error


class LastError(Passing):
    """Raises for the last record that cannot be delivered."""

    def rewritten(self, batch: pa.RecordBatch, _topic: str | None) -> pa.RecordBatch:
        return batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


class ErrorsWithContent(Passing):
    """Shows the record in an error."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        try:
            self.writer.write(batch, topic)
        except RecordDeliveryError as error:
            shown = f"{error}: {batch.to_pylist()}"
            raise RecordDeliveryError(error.topic, error.partition, error.size, shown) from error


class SkipsInvalidRecords(Passing):
    """Loses rows that cannot become records."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        try:
            self.writer.write(batch, topic)
        except InvalidRecordError:
            return


class SendsBeforeItChecks(Passing):
    """Sends the rows before the first without a topic."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        for row in range(batch.num_rows):
            self.writer.write(batch.slice(row, 1), topic)


class AnyTopic(Passing):
    """Writes records without a topic to nowhere."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        if topic is not None or "topic" in batch.schema.names:
            self.writer.write(batch, topic)


class DoesNotWait(Passing):
    """Returns from a flush before records are delivered."""

    def __init__(self, writer: MemoryRecordWriter) -> None:
        super().__init__(writer)
        self.rows = 0

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.rows += batch.num_rows
        threading.Thread(target=self._write_later, args=(batch, topic)).start()

    def _write_later(self, batch: pa.RecordBatch, topic: str | None) -> None:
        time.sleep(0.5)
        self.writer.write(batch, topic)

    def flush(self) -> DeliveryStats:
        return DeliveryStats(self.rows)


class IgnoresTransactions(Passing):
    """Writes outside of the transaction that it has joined."""

    def join_transaction(self, _transaction: Transaction) -> None:
        return


class FirstWriteInTransaction(Passing):
    """Leaves a transaction after the first write."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(batch, topic)
        self.writer._transaction = None


class StaysInTransaction(Passing):
    """Writes to a transaction after the flush that ends it."""

    def flush(self) -> DeliveryStats:
        joined = self.writer._transaction
        delivered = self.writer.flush()
        self.writer._transaction = joined
        return delivered


class AbortsOnClose(Passing):
    """Aborts the transaction that it has joined when it is closed."""

    is_committed = False

    def __init__(self, writer: MemoryRecordWriter) -> None:
        super().__init__(writer)
        self.joined: Transaction | None = None

    def join_transaction(self, transaction: Transaction) -> None:
        self.joined = transaction
        self.writer.join_transaction(transaction)

    def close(self) -> None:
        if self.joined is not None:
            self.writer._cluster.close_transaction(self.joined, commit=self.is_committed)


class CommitsOnClose(AbortsOnClose):
    """Commits the transaction that it has joined when it is closed."""

    is_committed = True


class ClosesOnce(Passing):
    """Fails when it is closed again."""

    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True


def _values(batch: pa.RecordBatch, name: str) -> Values:
    """Return the values of a column, nulls without it."""
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


def _with_headers(batch: pa.RecordBatch, change: Callable[[Values], Values]) -> pa.RecordBatch:
    return _with(batch, "headers", lambda values: [found and change(found) for found in values])


def _repeat_first(values: Values) -> Values:
    return values[:1] * len(values)


def _suite(adapter: type[Passing]) -> type:
    return suite_with(
        RecordWriterContract,
        world=lambda: AdaptedWorld("record_writer", lambda made, _: adapter(made)),
    )


_wrong: Final = wrong_with(_suite)


_Suite = RecordWriterContract

_WRONG: Final = (
    *_wrong(
        _Suite.test_every_column_is_written,
        *(NoNullHeaders, EmptyHeaders, UniqueHeaders, SortedHeaders),
        *(NoTimestamps, WholeSeconds, FirstTimestamp),
    ),
    *_wrong(_Suite.test_records_without_a_timestamp_get_the_current_time, ZeroTimestamps),
    *_wrong(_Suite.test_every_column_is_written, EmptyNulls, NullEmpties),
    *_wrong(_Suite.test_strings_are_written_as_utf8, Latin1),
    *_wrong(_Suite.test_a_slice_is_written, WholeArrays),
    *_wrong(_Suite.test_the_sinks_topic_overrides_the_column, ColumnFirst),
    *_wrong(
        _Suite.test_each_row_may_name_its_topic_and_partition,
        *(FirstTopic, FirstPartition, SentTwice),
    ),
    *_wrong(_Suite.test_rows_may_name_partitions_that_were_added, KeepsPartitionCounts),
    *_wrong(_Suite.test_records_of_one_key_go_to_one_partition, LastRowFirst),
    *_wrong(
        _Suite.test_keys_decide_as_in_java,
        *(AllToPartitionZero, Crc32, AbsoluteHash, HashedText, NamedOnce),
    ),
    *_wrong(_Suite.test_records_without_a_key_are_written, HundredRows, DoesNotWait),
    *_wrong(_Suite.test_records_without_a_key_are_spread, KeylessToPartitionZero),
    *_wrong(
        _Suite.test_a_flush_delivers_every_write_before_it,
        *(LastWriteOnly, FirstWritesTopic, LastWriteFirst),
    ),
    *_wrong(
        _Suite.test_flush_counts_since_the_last_one, CountsForever, CountsLastWrite, CountsRowsOnly
    ),
    *_wrong(_Suite.test_delivered_bytes_are_those_of_keys_values_and_headers, CountsNoHeaders),
    *_wrong(_Suite.test_a_record_needs_a_topic, AnyTopic),
    *_wrong(_Suite.test_a_record_needs_a_topic, SendsBeforeItChecks),
    *_wrong(_Suite.test_the_topic_has_to_exist, SwallowsUnknownTopics, CreatesTopics),
    *_wrong(
        _Suite.test_the_partition_has_to_exist,
        *(SwallowsDeliveryErrors, OtherErrors, LastError, ErrorsWithContent),
    ),
    *_wrong(_Suite.test_a_header_needs_a_key, SkipsInvalidRecords),
    *_wrong(
        _Suite.test_a_record_that_is_too_large_for_its_topic_is_an_error, AcknowledgesLargeRecords
    ),
    *_wrong(_Suite.test_a_record_that_a_broker_refuses_is_an_error, AcknowledgesRefusals),
    *_wrong(_Suite.test_a_timestamp_that_a_broker_refuses_is_an_error, AcknowledgesOldRecords),
    *_wrong(
        _Suite.test_a_transaction_ends_with_the_flush,
        *(IgnoresTransactions, FirstWriteInTransaction, StaysInTransaction),
    ),
    *_wrong(_Suite.test_a_transaction_stays_open_after_close, AbortsOnClose, CommitsOnClose),
    *_wrong(_Suite.test_closing_twice_is_allowed, ClosesOnce),
)
FAULTS: Final = PortFaults(_suite(Passing), _WRONG)
