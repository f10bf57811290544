"""Reading by ``Consumer.consume``, where librdkafka's C API cannot be called.

It creates a Python object per record, and reads at a fifth of the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from ...domain.errors import MissingOffsetsError, TopicRecreatedError
from ..fetching import Fetched, FetchedPartition
from ..kafka_format.record_columns import record_batches
from .client_closing import close_in_time
from .client_handle import LEVELS, log
from .error_codes import OUT_OF_RANGE_ERRORS, PARTITION_EOF
from .log_truncation import truncation
from .topic_ids import TopicIds, topic_debug

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ...domain.reading.offset_range import OffsetRange
    from ...domain.reading.projection import Projection
    from ...domain.reading.record_limits import OversizedRecords
    from ..fetching import Watermarks
    from .connection import Connection

GROUP: Final = {
    # Required by the consumer, and never used: partitions are assigned, nothing is committed.
    "group.id": "pyspark-kafka"
}

CONSUME_RECORDS: Final = 10_000
"""The rows of a batch: Spark takes batches of thousands of rows faster than small ones."""

CONSUME_S: Final = 0.1
"""The timeout of ``consume``, which waits all of it unless it gets as many messages as it may."""


@final
class ConsumeFallback:
    """A ``Consumer``, for one partition at a time."""

    def __init__(
        self,
        connection: Connection,
        forced: Mapping[str, str],
        tuned: Mapping[str, str],
        watermarks: Watermarks,
        oversized: OversizedRecords,
    ) -> None:
        """Create the consumer.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._connection = connection
        self._watermarks = watermarks
        self._oversized = oversized
        logger = _LineReader(LEVELS[connection.max_log_level])
        debug = topic_debug(connection.config(forced, tuned))
        client = connection.make(Consumer, {**forced, **GROUP, **debug}, tuned, logger)
        self._consumer = _Consumer(client, logger.topic_ids)

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Fetch nothing ahead."""

    def partition(self, offset_range: OffsetRange, projection: Projection) -> FetchedPartition:
        return _AssignedPartition(
            self._consumer,
            self._connection,
            offset_range,
            projection,
            self._watermarks,
            self._oversized,
        )

    def handle_events(self) -> None:
        self._consumer.client.poll(0)
        self._connection.raise_refusal()

    def close(self) -> None:
        close_in_time(self._consumer.client.close)


@final
class _LineReader:
    """The logger of a ``Consumer``, which reads its lines before they are logged."""

    def __init__(self, min_level: int) -> None:
        self.topic_ids = TopicIds()
        self._min_level = min_level

    def log(self, level: int, text: str, *values: object) -> None:
        """Log a line that the user wants."""
        self.topic_ids.read_line(text % values)
        if level >= self._min_level:
            log.log(level, text, *values)


@final
@dataclass(frozen=True, slots=True)
class _Consumer:
    """A ``Consumer``, and the ids of topics by its log."""

    client: Any
    topic_ids: TopicIds


@final
@dataclass(frozen=True, slots=True)
class _Record:
    """A message with attributes, as ``record_batches`` takes it."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any
    timestamp: int
    timestamp_type: int

    @classmethod
    def of(cls, message: Any) -> _Record:
        kind, timestamp = message.timestamp()
        return cls(
            message.offset(),
            message.key(),
            message.value(),
            message.headers(),
            timestamp,
            # TIMESTAMP_NOT_AVAILABLE is 0 here and -1 in Kafka.
            kind - 1,
        )


@final
class _AssignedPartition(FetchedPartition):
    """A ``Consumer`` that is assigned one partition."""

    def __init__(
        self,
        consumer: _Consumer,
        connection: Connection,
        offset_range: OffsetRange,
        projection: Projection,
        watermarks: Watermarks,
        oversized: OversizedRecords,
    ) -> None:
        self._oversized = oversized
        self._consumer = consumer
        self._watermarks = watermarks
        self._connection = connection
        self._partition = offset_range.partition
        self._until_offset = offset_range.until_offset
        self._projection = projection
        self._is_assigned = False
        self._is_out_of_range = False
        self._failure: Exception | None = None
        self._recreations = 0
        self._has_read = False

    def fetch(self, position: int) -> Fetched | None:
        if not self._is_assigned:
            self._assign(position)
        if self._failure is not None:
            raise self._failure
        if self._is_out_of_range:
            return None
        count = min(CONSUME_RECORDS, self._until_offset - position)
        # Lines come out of the same queue, before the first record of a new topic.
        messages = self._consumer.client.consume(count, CONSUME_S)
        if self._consumer.topic_ids.recreations(self._partition.topic) != self._recreations:
            return self._leave_topic(position)
        self._connection.raise_refusal()
        return self._fetched(position, messages)

    def leave(self) -> None:
        if self._is_assigned:
            self._is_assigned = False
            self._consumer.client.unassign()

    def watermarks(self) -> tuple[int, int]:
        return self._watermarks.of(self._partition)

    def _fetched(self, position: int, messages: Iterable[Any]) -> Fetched | None:
        records = []
        next_offset = position
        for message in messages:
            error = message.error()
            if error is None:
                records.append(_Record.of(message))
                next_offset = message.offset() + 1
            elif error.code() == PARTITION_EOF:
                # A lagging replica may end before offsets that were already read.
                next_offset = max(next_offset, message.offset())
            elif error.code() in OUT_OF_RANGE_ERRORS:
                # librdkafka reports it once only.
                self._is_out_of_range = True
                self._failure = truncation(self._partition, next_offset, error)
            else:
                self._failure = self._connection.fetch_error(
                    self._partition, error, message.offset()
                )
                break
        # An error after records is raised by the next fetch.
        if self._failure is not None and not records:
            raise self._failure
        if self._is_out_of_range and not records:
            return None
        self._has_read = self._has_read or next_offset > position
        return Fetched(self._batches(position, records), next_offset)

    def _assign(self, position: int) -> None:
        # What is read from here on must be of one topic.
        self._recreations = self._consumer.topic_ids.recreations(self._partition.topic)
        self._consumer.client.assign([self._client_partition(position)])
        self._is_assigned = True

    def _leave_topic(self, position: int) -> Fetched:
        """Read on from the new topic if nothing of the range was read.

        :raises TopicRecreatedError: if the old topic's records of the range were read.
        """
        if self._has_read:
            earliest, _ = self.watermarks()
            raise TopicRecreatedError(self._partition, position, earliest=earliest)
        self.leave()
        return Fetched((), position)

    def _batches(self, position: int, records: Sequence[_Record]) -> Iterator[pa.RecordBatch]:
        in_range = [record for record in records if record.offset < self._until_offset]
        kept, error = self._before_deleted(position, in_range)
        yield from record_batches(
            in_range[:kept], self._partition, self._projection, self._oversized
        )
        if error is not None:
            raise error

    def _before_deleted(
        self, position: int, records: Sequence[_Record]
    ) -> tuple[int, MissingOffsetsError | None]:
        """Return the number of records before the first deleted offsets, and the error for these.

        Offsets of a gap were deleted only if the log now starts after them; otherwise compaction,
        aborted transactions or control batches left it. The log start offset only increases, so
        one request is enough for all gaps.
        """
        if not records or records[-1].offset - position + 1 == len(records):
            return len(records), None
        earliest, _ = self.watermarks()
        expected = position
        for index, record in enumerate(records):
            until = min(record.offset, earliest)
            if expected < until:
                return index, MissingOffsetsError(self._partition, expected, until)
            expected = record.offset + 1
        return len(records), None

    def _client_partition(self, offset: int = 0) -> ClientPartition:
        return ClientPartition(self._partition.topic, self._partition.partition, offset)
