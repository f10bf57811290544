"""Records by this library's own fetch requests, over connections that kafka-python makes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, final

from ...ports.reading import RecordReader
from ..fetching import Fetched, FetchedPartition, read_range
from .brokers import Brokers
from .connections import receive_ready
from .fetcher import Fetcher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection
    from ...ports.clock import Deadline
    from .brokers import FetchedBatches, HeldData, PartitionCursor


@final
class KafkaPythonRecordReader(RecordReader):
    """Reads one partition at a time; connects at first use, and stays connected."""

    def __init__(self, options: SourceOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        self._poll_timeout_ms = options.poll_timeout_ms
        self._brokers = Brokers(options)

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        self._brokers.expect(ranges)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        cursor = self._brokers.cursor(
            offset_range.partition, projection, offset_range.from_offset, offset_range.until_offset
        )
        fetcher = RangeFetcher(self._brokers, cursor, self._poll_timeout_ms)
        return read_range(fetcher, offset_range, self._poll_timeout_ms)

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._brokers.oversized.take_skipped()

    def close(self) -> None:
        self._brokers.close()


@final
class RangeFetcher(FetchedPartition):
    """Fetches a range through elections, restarts and lost connections."""

    def __init__(self, brokers: Brokers, cursor: PartitionCursor, poll_timeout_ms: int) -> None:
        """Connect to nothing yet; brokers may be away for ``poll_timeout_ms``."""
        self._brokers = brokers
        self._errors = replace(brokers.errors, timeout_ms=poll_timeout_ms)
        self._cursor = cursor
        self._poll_timeout_s = poll_timeout_ms / 1_000
        self._fetcher: Fetcher | None = None

    def fetch(self, position: int) -> Fetched | None:
        cursor = self._cursor
        with (
            self._errors.mapped_errors(f"a fetch from {cursor.partition}"),
            self._brokers.errors.one_deadline(self._poll_timeout_s) as deadline,
        ):
            held = self._brokers.take_held(cursor) if self._fetcher is None else None
            fetched = self._fetch(deadline) if held is None else self._take(held)
        if cursor.is_out_of_range:
            # The caller asks for the ends of the log.
            cursor.is_out_of_range = False
            return None
        if fetched is None:
            return Fetched((), position)
        return Fetched(fetched.batches, fetched.next_offset)

    def _fetch(self, deadline: Deadline) -> FetchedBatches | None:
        if self._fetcher is None:
            self._fetcher = Fetcher(self._brokers, lasting_s=self._poll_timeout_s)
            self._fetcher.assign([self._cursor])
        self._fetcher.begin()
        wait_s = self._fetcher.send()
        if not self._fetcher.has_fetched:
            receive_ready(self._fetcher.awaited(), min(wait_s, deadline.remaining))
        return self._fetcher.take_undecoded()

    def _take(self, held: HeldData) -> FetchedBatches | None:
        topic = self._cursor.topic
        topic.is_fetched_by_id = held.is_by_id
        if held.is_by_id:
            topic.accept(None)
        return self._cursor.take(held.data)

    def leave(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()

    def watermarks(self) -> tuple[int, int]:
        return self._brokers.watermarks.of(self._cursor.partition)
