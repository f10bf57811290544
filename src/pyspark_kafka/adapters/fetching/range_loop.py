"""Reading a range to its end: one loop for every client.

The client only says what a fetch brought. When a range is at its end, when to give up, and what
an offset that the broker does not hold means is decided here, by the rules of Spark's
``InternalKafkaConsumer``.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ...domain.errors import FetchTimeoutError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from ...domain.offset_range import OffsetRange
    from ...domain.topic_partition import TopicPartition


@final
@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch brought: batches of visible records, and the offset behind all it passed.

    Without a record, ``next_offset`` may still have moved over offsets that hold none. The
    batches may be made while they are asked for, and are asked for before the next fetch.
    """

    batches: Iterable[pa.RecordBatch]
    next_offset: int


class FetchedPartition(ABC):
    """A client that fetches from one partition."""

    @abstractmethod
    def fetch(self, position: int) -> Fetched | None:
        """Wait a moment, of a second at the most, for records from an offset on.

        It is the range's first offset, and then where the last fetch ended. Nothing of the range's
        end or behind it is handed out. ``None`` says that the broker does not hold that offset;
        a fetch that may be tried again brings nothing, and leaves the offset where it is.
        """

    @abstractmethod
    def leave(self) -> None:
        """Stop fetching: what comes behind the range is not wanted."""

    @abstractmethod
    def ends(self) -> tuple[int, int]:
        """Ask for the first offset that the broker holds, and the one after the last."""


def read_range(
    client: FetchedPartition, offset_range: OffsetRange, poll_timeout_ms: int
) -> Iterator[pa.RecordBatch]:
    """Read a range; owes what ``RecordReader.read`` owes."""
    position = offset_range.from_offset
    try:
        while position < offset_range.until_offset:
            fetched = _fetch_until_progress(
                client, offset_range.partition, position, poll_timeout_ms
            )
            yield from fetched.batches
            position = fetched.next_offset
    finally:
        client.leave()


def _fetch_until_progress(
    client: FetchedPartition, partition: TopicPartition, position: int, poll_timeout_ms: int
) -> Fetched:
    deadline = time.monotonic() + poll_timeout_ms / 1_000
    while True:
        fetched = client.fetch(position)
        if fetched is not None and fetched.next_offset > position:
            return fetched
        if fetched is None or time.monotonic() > deadline:
            earliest, latest = client.ends()
            if not earliest <= position < latest:
                raise OffsetOutOfRangeError(partition, position, earliest=earliest, latest=latest)
        if time.monotonic() > deadline:
            raise FetchTimeoutError(partition, position, poll_timeout_ms)
