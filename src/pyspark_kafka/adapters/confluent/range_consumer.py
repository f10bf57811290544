"""librdkafka's simple consumer: ranges of partitions from an offset on, in no group.

Changing the partition takes a third of the time of an ``assign()``. Small ranges that are read
later are fetched ahead, so that one request names many partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...domain.options.option import INT32_MAX
from ...domain.reading.leader_epochs import NO_EPOCH
from ...domain.reading.range_progress import RangeQueue
from .cluster_settings import number_of
from .consumer_handle import ConsumerHandle
from .log_lines import TopicIds, topic_debug

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from ...domain.reading.ranges import OffsetRange
    from ...domain.topic_partition import TopicPartition
    from .cluster import Cluster
    from .consumer_handle import FetchQueue

MAX_AHEAD: Final = 32
"""How many fetches are started before their ranges are read, unless records are large."""

AHEAD_BYTES: Final = 16 * 1024 * 1024
"""The bytes that these fetches may have together: each has one record at least."""

MAX_OFFSETS: Final = 1_000
"""The most offsets of a range that is fetched ahead: larger ranges take longer to read than to
start, and have their own consumer settings."""

_LIMITS: Final = {
    # Together, the fetches ahead ask for two megabytes, as the fetch of a large range does.
    "fetch.message.max.bytes": 64 * 1024,
    "queued.max.messages.kbytes": 64,
    # While a request waits at the ends of all ranges, no further one is fetched.
    "fetch.wait.max.ms": 2,
}

_ALIAS: Final = "max.partition.fetch.bytes"
"""Java's name of ``fetch.message.max.bytes``; librdkafka accepts it as well."""


def settings_ahead(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a consumer that fetches many small ranges at once.

    The user's limits are kept if they are smaller.
    """
    limits = {name: min(number_of(config, name, limit), limit) for name, limit in _LIMITS.items()}
    size = min(number_of(config, _ALIAS, INT32_MAX), limits["fetch.message.max.bytes"])
    limits |= {"fetch.message.max.bytes": size, _ALIAS: size}
    return {**config, **{name: str(limit) for name, limit in limits.items()}}


@final
@dataclass(frozen=True, slots=True)
class _FetchAhead:
    """A fetch whose messages wait until they are read."""

    queue: FetchQueue
    offset: int
    recreations: int


@final
class FetchesAhead:
    """The fetches of one consumer that nothing reads yet; a partition has one at a time."""

    def __init__(self, handle: ConsumerHandle, topic_ids: TopicIds) -> None:
        self._handle = handle
        self._topic_ids = topic_ids
        self._expected = RangeQueue()
        self._most = 1
        self._record_bytes = 0
        self._fetches: dict[TopicPartition, _FetchAhead] = {}

    @property
    def topics(self) -> set[str]:
        """The topics that are fetched."""
        return {partition.topic for partition in self._fetches}

    def expect(self, ranges: Iterable[OffsetRange]) -> None:
        """Stop the previous fetches; ``start`` then starts those of these ranges."""
        self._expected = RangeQueue(ranges)
        for partition in list(self._fetches):
            self._stop(partition)

    def take(self, partition: TopicPartition, offset: int, last_epoch: int) -> FetchQueue | None:
        """Return the fetch from an offset on, if it was started; stop those that were skipped.

        All events have to be read first. A fetch whose topic was created again since its start may
        have messages of both topics: it is stopped, and so is one that would have to compare
        epochs.
        """
        for passed in self._expected.begin(partition, offset):
            self._stop(passed.partition)
        fetch = self._fetches.get(partition)
        if fetch is None:
            return None
        recreations = self._topic_ids.recreations(partition.topic)
        if (fetch.offset, fetch.recreations, NO_EPOCH) == (offset, recreations, last_epoch):
            return self._fetches.pop(partition).queue
        self._stop(partition)
        return None

    def see(self, records: pa.RecordBatch) -> None:
        """Note the size of records that were read: the next records may be as large."""
        size = records.nbytes // max(1, records.num_rows)
        self._record_bytes = max(size, self._record_bytes // 2)

    def start(self, read: TopicPartition) -> None:
        """Start the fetches of the ranges that are read next, after one of a partition.

        Few are started until the sizes of records are known.
        """
        fetch_bytes = max(_LIMITS["fetch.message.max.bytes"], self._record_bytes)
        self._most = min(MAX_AHEAD, 2 * self._most, max(1, AHEAD_BYTES // fetch_bytes))
        for one in self._expected.first(self._most):
            partition, offset = one.partition, one.from_offset
            if partition != read and partition not in self._fetches:
                recreations = self._topic_ids.recreations(partition.topic)
                queue = self._handle.start(partition, offset)
                self._fetches[partition] = _FetchAhead(queue, offset, recreations)

    def _stop(self, partition: TopicPartition) -> None:
        fetch = self._fetches.pop(partition, None)
        if fetch is not None:
            self._handle.stop(fetch.queue)


@final
class RangeConsumer:
    """A consumer that fetches for one reader at a time, for the process that creates it.

    The consumer is closed if librdkafka does not end a fetch in time.
    """

    def __init__(
        self, cluster: Cluster, config: Mapping[str, str], topic_ids: TopicIds | None = None
    ) -> None:
        """Create the handle; raise as ``ConsumerHandle`` does.

        ``topic_ids`` are those of a consumer whose ranges this one may read on.
        """
        self.handle = ConsumerHandle(cluster, {**config, **topic_debug(config)})
        self._topic_ids = topic_ids or TopicIds()
        self._ahead = FetchesAhead(self.handle, self._topic_ids)
        self._topic = ""
        self._topics: set[str] = set()
        self._reader: object = None
        self._fetch: FetchQueue | None = None

    def expect(self, ranges: Iterable[OffsetRange]) -> None:
        """Fetch these ranges ahead as soon as the first of them is read; forget those before."""
        self._ahead.expect(ranges)

    def see(self, records: pa.RecordBatch) -> None:
        """Note records that were read: their size decides how much is fetched ahead."""
        self._ahead.see(records)

    def serves(self, reader: object) -> bool:
        """Return whether this reader started the current fetch."""
        return self._reader is reader and self.handle.is_open

    def start(
        self, reader: object, partition: TopicPartition, offset: int, last_epoch: int
    ) -> FetchQueue:
        """Start fetching for a reader, and stop fetching for another one.

        Messages come into a new queue, so that none of an earlier range can be in it.

        :raises RuntimeError: if the handle is closed, or another process created it.
        """
        self._stop_fetch()
        self._reader = reader
        self._topic = partition.topic
        self.handle.take_events(self._topic_ids.read_line)
        self._fetch = self._ahead.take(partition, offset, last_epoch)
        if self._fetch is None or not self.handle.is_open:
            self._fetch = self.handle.start(partition, offset, last_epoch)
        self._ahead.start(partition)
        self._leave_topics()
        return self._fetch

    def stop(self, reader: object) -> None:
        """Stop fetching for a reader if it started the fetch, and drop what was fetched."""
        if self.serves(reader):
            self._reader = None
            self._stop_fetch()
            if self.handle.is_open:
                # An error that ended the fetch is not replaced by another one.
                self.handle.take_events(self._topic_ids.read_line)

    def recreations(self, topic: str) -> int:
        """Return how often a topic was created again, by all events until now.

        Such an event comes before the first record of the new topic can be taken.
        """
        self.handle.take_events(self._topic_ids.read_line)
        return self._topic_ids.recreations(topic)

    def handle_events(self) -> None:
        """Handle errors and log lines; raise as ``ConsumerHandle.handle_events`` does."""
        self.handle.handle_events(self._topic_ids.read_line)

    def _leave_topics(self) -> None:
        topics = {self._topic} | self._ahead.topics
        for topic in self._topics - topics:
            self.handle.handle.leave_topic(topic)
        self._topics = topics

    def _stop_fetch(self) -> None:
        fetch, self._fetch = self._fetch, None
        if fetch is not None:
            self.handle.stop(fetch)
