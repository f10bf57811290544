"""Records by librdkafka's consumer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from ...ports.record_reader import RecordReader
from ..arrow.polling import Polled, PolledPartition, read_by_polling
from .connection import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ...domain.offset_range import OffsetRange
    from ...domain.options import SourceOptions
    from ...domain.projection import Projection

OUT_OF_RANGE: Final = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001
)

FORCED: Final[dict[str, object]] = {
    # Required by the consumer, and never used: partitions are assigned and nothing is committed.
    "group.id": "pyspark-kafka",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # An offset that the broker does not hold is an error, and never a silent jump.
    "auto.offset.reset": "error",
    # Tells the end of a partition whose last offsets hold no visible record.
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "check.crcs": True,
}

TUNED: Final[dict[str, object]] = {
    # At their defaults (100,000 messages and 1,000 ms) these two pause a range read for a
    # second whenever the queue is full: three to five times slower.
    "queued.min.messages": 1_000_000,
    "fetch.queue.backoff.ms": 1,
    # ... and this bounds the queue, in kilobytes.
    "queued.max.messages.kbytes": 65_536,
    # A fetch that waits at the end of the last range holds the next range's fetch up for as long,
    # half a second by default; what a range spans is in the log already.
    "fetch.wait.max.ms": 10,
}

CONSUME_S: Final = 0.1
"""The wait of one `consume`, which takes all of it when fewer messages come than it may take."""


@final
class ConfluentRecordReader(RecordReader):
    """Consumes one partition at a time, with one ``Consumer`` that is made at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Check the options; nothing is connected yet."""
        self._connection = Connection(options)
        self._poll_timeout_ms = options.poll_timeout_ms
        self._made: Any = None

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        if self._made is None:
            self._made = self._connection.make(Consumer, FORCED, TUNED)
        partition = _ConsumerPartition(self._made, self._connection, offset_range)
        return read_by_polling(partition, offset_range, projection, self._poll_timeout_ms)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None


@final
@dataclass(frozen=True, slots=True)
class _Record:
    """A message, as the columns are taken from it."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] | None
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
class _ConsumerPartition(PolledPartition):
    """A ``Consumer`` that is assigned one partition."""

    def __init__(self, consumer: Any, connection: Connection, offset_range: OffsetRange) -> None:
        self._consumer = consumer
        self._connection = connection
        self._partition = ClientPartition(
            offset_range.partition.topic,
            offset_range.partition.partition,
            offset_range.from_offset,
        )
        self._next_offset = offset_range.from_offset
        self._is_out_of_range = False
        consumer.assign([self._partition])

    def poll(self, most: int) -> Polled | None:
        if self._is_out_of_range:
            return None
        messages = self._consumer.consume(most, CONSUME_S)
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(_Record.of(message))
                self._next_offset = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                # The end of a replica that lags comes before offsets that were read already.
                self._next_offset = max(self._next_offset, message.offset())
            elif error.code() in OUT_OF_RANGE:
                # librdkafka says so once, and then nothing any more.
                self._is_out_of_range = True
            else:
                raise self._connection.error(f"a fetch from {self._name}", error)
        if self._is_out_of_range and not records:
            return None
        return Polled(records, self._next_offset)

    def leave(self) -> None:
        self._consumer.unassign()

    def ends(self) -> tuple[int, int]:
        try:
            earliest, latest = self._consumer.get_watermark_offsets(
                self._partition, timeout=self._connection.timeout_s
            )
        except KafkaException as error:
            raise self._connection.error(
                f"a request for the offsets of {self._name}", error.args[0]
            ) from error
        return earliest, latest

    @property
    def _name(self) -> str:
        return f"{self._partition.topic}-{self._partition.partition}"
