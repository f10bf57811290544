"""Reading a range by polling a client's public API: one loop for every client.

The client only says what a poll brought. When a range is at its end, what a gap between offsets
means and when to give up is decided here, by the rules of Spark's ``InternalKafkaConsumer``.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from ...domain.errors import (
    FetchTimeoutError,
    MissingOffsetsError,
    OffsetOutOfRangeError,
    PysparkKafkaError,
)
from .record_columns import RecordColumns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ...domain.offset_range import OffsetRange
    from ...domain.projection import Projection
    from ...domain.topic_partition import TopicPartition

RECORDS_A_POLL: Final = 10_000
"""As many rows as a batch has: Spark takes some thousands at once faster than a few."""


@final
@dataclass(frozen=True, slots=True)
class Polled:
    """What a poll brought: records in order, and the offset behind everything it passed.

    Without a record, ``next_offset`` may still have moved over offsets that hold none.
    """

    records: Sequence[Any]
    next_offset: int


class PolledPartition(ABC):
    """A client that stands at an offset of one partition."""

    @abstractmethod
    def poll(self, most: int) -> Polled | None:
        """Wait a moment for up to ``most`` records from where the last poll ended.

        ``None`` says that the broker does not hold that offset.
        """

    @abstractmethod
    def leave(self) -> None:
        """Stop fetching: what comes behind the range is not wanted."""

    @abstractmethod
    def ends(self) -> tuple[int, int]:
        """Ask for the first offset that the broker holds, and the one after the last."""


def read_by_polling(
    client: PolledPartition,
    offset_range: OffsetRange,
    projection: Projection,
    poll_timeout_ms: int,
) -> Iterator[pa.RecordBatch]:
    """Read a range from a client that stands at its start; owes what ``RecordReader.read`` owes."""
    try:
        yield from _read(client, offset_range, projection, poll_timeout_ms)
    finally:
        client.leave()


def _read(
    client: PolledPartition,
    offset_range: OffsetRange,
    projection: Projection,
    poll_timeout_ms: int,
) -> Iterator[pa.RecordBatch]:
    partition, until = offset_range.partition, offset_range.until_offset
    position = offset_range.from_offset
    while position < until:
        polled = _poll_until_progress(client, partition, position, until, poll_timeout_ms)
        records = [record for record in polled.records if record.offset < until]
        kept, error = _before_loss(partition, position, records, client)
        if kept:
            yield RecordColumns.of(records[:kept]).to_record_batch(partition, projection)
        if error is not None:
            raise error
        position = polled.next_offset


def _poll_until_progress(
    client: PolledPartition,
    partition: TopicPartition,
    position: int,
    until: int,
    poll_timeout_ms: int,
) -> Polled:
    deadline = time.monotonic() + poll_timeout_ms / 1_000
    while True:
        polled = client.poll(min(RECORDS_A_POLL, until - position))
        if polled is not None and polled.next_offset > position:
            return polled
        if polled is None or time.monotonic() > deadline:
            earliest, latest = client.ends()
            if not earliest <= position < latest:
                raise OffsetOutOfRangeError(partition, position, earliest=earliest, latest=latest)
        if time.monotonic() > deadline:
            raise FetchTimeoutError(partition, position, poll_timeout_ms)


def _before_loss(
    partition: TopicPartition, position: int, records: Sequence[Any], client: PolledPartition
) -> tuple[int, PysparkKafkaError | None]:
    """Count the records before the first offsets that were deleted while they were to be read.

    A gap is such a loss only if the log now starts behind it; else it is what compaction,
    aborted transactions and control batches leave. The log's start only moves forward, so one
    look serves every gap of a poll.
    """
    if not records or records[-1].offset - position + 1 == len(records):
        return len(records), None
    earliest, _ = client.ends()
    expected = position
    for index, record in enumerate(records):
        if expected < min(record.offset, earliest):
            return index, MissingOffsetsError(partition, expected, min(record.offset, earliest))
        expected = record.offset + 1
    return len(records), None
