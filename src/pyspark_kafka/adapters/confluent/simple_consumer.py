"""librdkafka's simple consumer: partitions from an offset on, in no group.

Changing the partition takes a third of the time of an ``assign()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from .consumer_handle import ConsumerHandle
from .fetches_ahead import FetchesAhead
from .topic_ids import TopicIds, topic_debug

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Mapping

    from confluent_kafka import KafkaError

    from ...domain.reading.ranges import OffsetRange
    from ...domain.topic_partition import TopicPartition
    from ..kernels.arrays import UInt64Array
    from .connection import Connection
    from .consumer_handle import FetchQueue


@final
class SimpleConsumer:
    """A consumer that fetches for one reader at a time, for the process that creates it."""

    def __init__(
        self, library: ctypes.CDLL, connection: Connection, config: Mapping[str, str]
    ) -> None:
        """Create the handle; raise as ``ConsumerHandle`` does."""
        self._handle = ConsumerHandle(library, connection, {**config, **topic_debug(config)})
        self._topic_ids = TopicIds()
        self._ahead = FetchesAhead(self._handle, self._topic_ids)
        self._topic = ""
        self._topics: set[str] = set()
        self._reader: object = None
        self._fetch: FetchQueue | None = None

    @property
    def calls(self) -> UInt64Array:
        """The functions that kernels call."""
        return self._handle.calls

    def expect(self, ranges: Iterable[OffsetRange]) -> None:
        """Fetch these ranges ahead as soon as the first of them is read; forget those before."""
        self._ahead.expect(ranges)

    def serves(self, reader: object) -> bool:
        """Return whether this reader started the current fetch."""
        return self._reader is reader and self._handle.is_open

    def start(
        self, reader: object, partition: TopicPartition, offset: int, last_epoch: int
    ) -> FetchQueue:
        """Start to fetch for a reader, and stop to fetch for another one.

        Messages come into a new queue, so that none of an earlier range can be in it.

        :raises RuntimeError: if the handle is closed, or another process created it.
        """
        self._stop_fetch()
        self._reader = reader
        self._topic = partition.topic
        self._handle.take_events(self._topic_ids.read_line)
        self._fetch = self._ahead.take(partition, offset, last_epoch)
        if self._fetch is None:
            self._fetch = self._handle.start(partition, offset, last_epoch)
        self._ahead.start(partition)
        self._leave_topics()
        return self._fetch

    def stop(self, reader: object) -> None:
        """Stop fetching for a reader if it started the fetch, and drop what was fetched."""
        if self.serves(reader):
            self._reader = None
            self._stop_fetch()
            # An error that ended the fetch is not replaced by another one.
            self._handle.take_events(self._topic_ids.read_line)

    def recreations(self, topic: str) -> int:
        """Return how often a topic was created again, by all events until now.

        They tell so before the first record of the new topic can be taken.
        """
        self._handle.take_events(self._topic_ids.read_line)
        return self._topic_ids.recreations(topic)

    def topic_error(self, timeout_s: float) -> KafkaError | None:
        """Return a broker's error for the topic that is fetched, as ``ConsumerHandle`` does."""
        return self._handle.topic_error(self._topic, timeout_s)

    def handle_events(self) -> None:
        """Handle errors and log lines; raise as ``ConsumerHandle.handle_events`` does."""
        self._handle.handle_events(self._topic_ids.read_line)

    def close(self) -> None:
        """Destroy the handle; a second call does nothing."""
        self._handle.close()

    def _leave_topics(self) -> None:
        topics = {self._topic} | self._ahead.topics
        for topic in self._topics - topics:
            self._handle.leave_topic(topic)
        self._topics = topics

    def _stop_fetch(self) -> None:
        fetch, self._fetch = self._fetch, None
        if fetch is not None:
            self._handle.stop(fetch)
