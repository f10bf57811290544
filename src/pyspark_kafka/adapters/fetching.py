"""Reading a range of offsets through a client that fetches: one loop for every client."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ..domain.errors import BrokerUnreachableError, KafkaRequestError, UnknownTopicError
from ..domain.reading.range_progress import RangeProgress
from .call_deadline import Attempts, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from ..domain.options.source import SourceOptions
    from ..domain.reading.ranges import OffsetRange
    from ..domain.topic_partition import TopicPartition
    from ..ports.reading import OffsetFetcher


@final
@dataclass(frozen=True, slots=True)
class Fetched:
    """Batches of visible records, and the offset after everything that the fetch passed.

    Without a record, ``next_offset`` may still have moved over offsets that hold none. The
    batches may be made while they are iterated, which is done before the next fetch.
    """

    batches: Iterable[pa.RecordBatch]
    next_offset: int


class FetchedPartition(ABC):
    """A client that fetches from one partition."""

    @abstractmethod
    def fetch(self, position: int) -> Fetched | None:
        """Wait up to a second for records from an offset on.

        It is the range's first offset, and then where the last fetch ended. No record at or after
        the range's end is returned. ``None`` says that the broker does not hold that offset; a
        fetch that may be tried again returns nothing and leaves the offset where it is.
        """

    @abstractmethod
    def leave(self) -> None:
        """Stop fetching: what follows the range is not wanted."""

    @abstractmethod
    def watermarks(self) -> tuple[int, int]:
        """Ask for the first offset that the broker holds, and the one after the last."""


def read_range(
    client: FetchedPartition, offset_range: OffsetRange, poll_timeout_ms: int
) -> Iterator[pa.RecordBatch]:
    """Read a range, as ``RecordReader.read`` does."""
    progress = RangeProgress(offset_range, poll_timeout_ms)
    try:
        while not progress.is_finished:
            yield from _fetch(client, progress)
    finally:
        client.leave()


def _fetch(client: FetchedPartition, progress: RangeProgress) -> Iterable[pa.RecordBatch]:
    progress.poll(time.monotonic())
    while True:
        fetched = client.fetch(progress.position)
        if fetched is not None and progress.advance(fetched.next_offset):
            return fetched.batches
        if progress.needs_watermarks(time.monotonic(), is_missing=fetched is None):
            progress.check(*client.watermarks(), time.monotonic())


@final
class Watermarks:
    """Asks for watermarks, with a new fetcher each time: only a failing read needs them."""

    def __init__(self, make: Callable[[], OffsetFetcher], options: SourceOptions) -> None:
        self._make = make
        self._options = options
        self._timeout_s = options.java.timeout_ms / 1_000
        self._attempts = Attempts()
        self._failing: dict[TopicPartition, tuple[float, float]] = {}
        """Since when the attempts for a partition fail, and when the last one did."""

    def of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset that the broker holds, and the one after the last.

        :raises UnknownTopicError: if the partition does not exist.
        :raises BrokerUnreachableError: if no broker answers.
        """
        with within(self._timeout_s), closing(self._make()) as fetcher:
            earliest = fetcher.earliest([partition])
            latest = fetcher.latest([partition])
        if not (earliest and latest):
            option = self._options.subscription.option
            raise UnknownTopicError([partition.topic], option, self._options.bootstrap_servers)
        return earliest[partition], latest[partition]

    def attempt(self, partition: TopicPartition) -> tuple[int, int] | None:
        """Return the same in a short time, or ``None``: the caller has to ask again.

        A partition that does not exist may be created again.

        :raises BrokerUnreachableError: if no broker answers for as long as a call may take.
        :raises KafkaRequestError: if a broker refuses the request for as long.
        """
        began = time.monotonic()
        found = None
        try:
            with self._attempts.next(within, partition), suppress(UnknownTopicError):
                found = self.of(partition)
        except (BrokerUnreachableError, KafkaRequestError):
            since, last = self._failing.pop(partition, (began, began))
            if began - last > self._timeout_s:
                # Nobody asked since then: the partition was fetched again, or revoked.
                since = began
            now = time.monotonic()
            if now - since <= self._timeout_s:
                self._failing[partition] = since, now
                return None
            raise
        self._failing.pop(partition, None)
        return found
