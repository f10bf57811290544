"""Reading a range of offsets through a client that fetches: one loop for every client."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, final

from ..domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    LeaderUnavailableError,
    UnknownTopicError,
)
from ..domain.reading.range_progress import RangeProgress
from .call_deadline import Attempts, within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator

    import pyarrow as pa

    from ..domain.options.source import SourceOptions
    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.reading.ranges import OffsetRange
    from ..domain.topic_partition import TopicPartition
    from ..ports.reading import OffsetFetcher

T = TypeVar("T")

_PAUSE_S: Final = 0.1

log = logging.getLogger(__name__)


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

        The offset is the range's first one, and then the end of the last fetch. No record at or
        after the range's end is returned. ``None`` means that the broker does not hold that offset;
        a fetch that may be tried again returns no records and leaves the offset unchanged.
        """

    @abstractmethod
    def leave(self) -> None:
        """Stop fetching: records after the range are not wanted."""

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
        self._failing: dict[Hashable, tuple[float, float]] = {}
        """The times of the first and the last of the attempts that failed in a row."""

    def of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset that the broker holds, and the one after the last.

        :raises UnknownTopicError: if the partition does not exist.
        :raises BrokerUnreachableError: if no broker answers.
        :raises LeaderUnavailableError: if brokers that take themselves for the leader have
            different logs for as long as a call may take.
        """
        with within(self._timeout_s) as deadline:
            while (found := self._ask(partition))[0] > found[1]:
                # One of them was cut off from the cluster, and still answers.
                if deadline.has_passed:
                    reason = f"its log begins at {found[0]} on one broker, and ends at {found[1]}"
                    request = f"a request for the ends of {partition}"
                    raise LeaderUnavailableError(request, f"{reason} on another one")
                time.sleep(min(_PAUSE_S, deadline.remaining))
        return found

    def _ask(self, partition: TopicPartition) -> tuple[int, int]:
        with closing(self._make()) as fetcher:
            earliest = fetcher.earliest([partition])
            latest = fetcher.latest([partition])
        if not (earliest and latest):
            option = self._options.subscription.option
            raise UnknownTopicError([partition.topic], option, self._options.bootstrap_servers)
        return earliest[partition], latest[partition]

    def attempt(self, partition: TopicPartition) -> tuple[int, int] | None:
        """Return the same offsets in a short time, or ``None``: the caller has to ask again.

        A partition that does not exist may be created again.

        :raises BrokerUnreachableError: if no broker answers for as long as a call may take.
        :raises KafkaRequestError: if a broker refuses the request for as long as that.
        """
        return self._attempt(partition, lambda: self.of(partition))

    def attempt_latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets | None:
        """Return the end offsets of those partitions that exist; otherwise like ``attempt``."""

        def ask() -> PartitionOffsets:
            with closing(self._make()) as fetcher:
                return fetcher.latest(partitions)

        return self._attempt("the latest of many", ask)

    def _attempt(self, key: Hashable, ask: Callable[[], T]) -> T | None:
        began = time.monotonic()
        found = None
        try:
            with self._attempts.next(within, key), suppress(UnknownTopicError):
                found = ask()
        except (BrokerUnreachableError, KafkaRequestError):
            since, last = self._failing.pop(key, (began, began))
            if began - last > self._timeout_s:
                # Nobody asked since then: the partition was fetched again, or revoked.
                since = began
            now = time.monotonic()
            if now - since <= self._timeout_s:
                self._failing[key] = since, now
                return None
            raise
        self._failing.pop(key, None)
        return found


@final
class LeaderlessPartitions:
    """Logs once for each outage that a partition has no leader; its fetch continues to wait."""

    def __init__(self, timeout_s: float) -> None:
        """Take the time without a leader after which an outage is logged."""
        self._timeout_s = timeout_s
        self._since: dict[TopicPartition, float] = {}
        self._logged: set[TopicPartition] = set()

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._since

    def __len__(self) -> int:
        return len(self._since)

    def add(self, partition: TopicPartition, since: float) -> None:
        """Note that a partition still has no leader; ``since`` counts for the first call."""
        since = self._since.setdefault(partition, since)
        if partition in self._logged or time.monotonic() - since < self._timeout_s:
            return
        self._logged.add(partition)
        log.warning(
            "%s has had no leader for %g s. Its records are read once it has one: "
            "start the brokers that hold its replicas",
            partition,
            self._timeout_s,
        )

    def remove(self, partition: TopicPartition) -> None:
        """Note that a partition has a leader."""
        if partition in self._logged:
            log.warning("%s has a leader again", partition)
        self.forget(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Forget the outage of a partition."""
        self._since.pop(partition, None)
        self._logged.discard(partition)
