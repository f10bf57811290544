"""Records from librdkafka's consumer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError
from ...domain.reading.errors import TopicRecreatedError
from ...domain.reading.near_replicas import NearReplicas
from ...domain.reading.record_limits import OversizedRecords
from ...domain.security.rights import Operation, topic_right
from ...ports.clock import Deadline
from ...ports.reading import RecordReader
from ..fetching import Fetched, FetchedPartition, Watermarks, read_range
from ..kafka_format import status
from ..kafka_format.column_buffers import BufferPool, ColumnBuffers
from ..process_local import ProcessLocal
from .cluster import Cluster
from .consumer_handle import FORCED, RACK, TUNED, response_limit
from .error_codes import OUT_OF_RANGE_ERRORS, REFUSED_RESOURCES
from .idle_watch import IdleWatch
from .log_lines import TopicIds
from .message_gatherer import MessageGatherer
from .offset_fetcher import ConfluentOffsetFetcher
from .range_consumer import MAX_OFFSETS, RangeConsumer, settings_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    import pyarrow as pa

    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition
    from .cluster_errors import ClusterErrors

POLL_S: Final = 0.1
"""How long to wait for the next message before the rows are returned."""

ANY: Final = -1
"""Stands for the broker that librdkafka fetches from."""

FETCH_S: Final = 0.5
"""How long a batch that is not full waits for more messages at most."""


@final
class ConfluentRecordReader(RecordReader):
    """Reads one range at a time, and fetches the next small ones ahead; connects at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        :raises UnsupportedFeatureError: if its C API cannot be called.
        """
        self._cluster = Cluster(options)
        self._watch = IdleWatch(self._cluster.settings)
        self._watermarks = Watermarks(partial(ConfluentOffsetFetcher, options), options)
        self._oversized = OversizedRecords(options.record_limits)
        limit = response_limit(options.record_limits, self._cluster.settings.fetch_max_bytes)
        self._tuned = {**TUNED, **limit}
        self._poll_timeout_ms = options.poll_timeout_ms
        self._local: ProcessLocal[RangeConsumers] = ProcessLocal()

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        with self._watch.in_use():
            client = self._client() if ranges else self._local.get()
            if client is not None:
                client.expect(ranges)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        with self._watch.in_use():
            partition = self._client().partition(offset_range, projection)
        return self._read(partition, offset_range)

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def close(self) -> None:
        with self._watch.in_use():
            self._close_client()

    def handle_idle_events(self) -> bool:
        """Implement ``Watched``."""
        client = self._local.get()
        if client is not None:
            try:
                client.handle_events()
            except PysparkKafkaError:
                self._close_client()
        return self._local.get() is not None

    def _read(
        self, partition: FetchedPartition, offset_range: OffsetRange
    ) -> Iterator[pa.RecordBatch]:
        with self._watch.in_use():
            # The client may have been closed since.
            self._cluster.errors.raise_refusal()
            yield from read_range(partition, offset_range, self._poll_timeout_ms)

    def _close_client(self) -> None:
        client = self._local.pop()
        if client is not None:
            client.close()

    def _client(self) -> RangeConsumers:
        if self._cluster.settings.is_outdated:
            self._close_client()
        client = self._local.get() or self._local.set(self._new_client())
        self._watch.start(self)
        return client

    def _new_client(self) -> RangeConsumers:
        config = self._cluster.settings.config(FORCED, self._tuned)
        near = NearReplicas(self._poll_timeout_ms / 1_000)
        return RangeConsumers(self._cluster, config, self._watermarks, self._oversized, near)


@final
class RangeConsumers:
    """Up to three consumers, which are created at first use.

    One fetches one range at a time, another many small ranges at once. The third has no rack, so
    that leaders name no replica: librdkafka goes back to one that fails again and again.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: Mapping[str, str],
        watermarks: Watermarks,
        oversized: OversizedRecords,
        near: NearReplicas,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._near = near if config.get(RACK) else None
        self._topic_ids = TopicIds()
        self._watermarks = watermarks
        self._oversized = oversized
        self._memory: BufferPool[ColumnBuffers] = BufferPool(ColumnBuffers)
        self._large: RangeConsumer | None = None
        self._small: RangeConsumer | None = None
        self._leaders: RangeConsumer | None = None
        self._expected: frozenset[OffsetRange] = frozenset()

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Fetch small ranges ahead if there are several; forget the previous ones."""
        small = [one for one in ranges if one.size <= MAX_OFFSETS]
        self._expected = frozenset(small if len(small) > 1 else ())
        if self._small not in self._consumers and self._expected:
            self._small = self._new(settings_ahead(self._config))
        if self._small is not None:
            self._small.expect(small)

    def partition(self, offset_range: OffsetRange, projection: Projection) -> FetchedPartition:
        """Return a client for a range.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        consumer = self._consumer_of(offset_range)
        partition = offset_range.partition
        calls = consumer.handle.calls
        gatherer = MessageGatherer(partition, projection, self._memory, calls, self._oversized)
        replica = None
        if self._near is not None and consumer is not self._leaders:
            replica = Replica(self._near, partition, self._consumer_of_leaders)
        errors = self._cluster.errors
        return RangeFetcher(consumer, errors, offset_range, gatherer, self._watermarks, replica)

    def handle_events(self) -> None:
        for consumer in self._consumers:
            consumer.handle_events()

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.handle.close()

    @property
    def _consumers(self) -> list[RangeConsumer]:
        """The open consumers: a consumer is closed if librdkafka does not end its fetch in time."""
        consumers = (self._large, self._small, self._leaders)
        return [each for each in consumers if each is not None and each.handle.is_open]

    def _consumer_of(self, offset_range: OffsetRange) -> RangeConsumer:
        near = self._near
        if near is not None and near.is_avoided(offset_range.partition, time.monotonic()):
            return self._consumer_of_leaders()
        if self._small in self._consumers and offset_range in self._expected:
            return self._small
        if self._large is None or not self._large.handle.is_open:
            self._large = self._new(self._config)
        return self._large

    def _consumer_of_leaders(self) -> RangeConsumer:
        if self._leaders not in self._consumers or self._leaders is None:
            self._leaders = self._new({**self._config, RACK: ""})
        return self._leaders

    def _new(self, config: Mapping[str, str]) -> RangeConsumer:
        return RangeConsumer(self._cluster, config, self._topic_ids if self._near else None)


@final
@dataclass(slots=True)
class Replica:
    """The replica that serves a partition while its leader may name one."""

    near: NearReplicas
    partition: TopicPartition
    consumer_of_leaders: Callable[[], RangeConsumer]

    def start(self) -> None:
        """Note that a fetch begins; librdkafka does not report the broker that serves it."""
        self.near.prefer(self.partition, ANY, time.monotonic())

    def is_behind(self, *, is_empty: bool) -> bool:
        """Note a fetch; return whether the replica has returned nothing for too long."""
        now = time.monotonic()
        is_behind = self.near.has_answered(self.partition, now, is_empty=is_empty)
        if is_behind:
            self.near.fail(self.partition, now)
        return is_behind


@final
class RangeFetcher(FetchedPartition):
    """Fetches one range; memory is bounded by librdkafka's queue and a few batches."""

    def __init__(
        self,
        consumer: RangeConsumer,
        errors: ClusterErrors,
        offset_range: OffsetRange,
        gatherer: MessageGatherer,
        watermarks: Watermarks,
        replica: Replica | None,
    ) -> None:
        """Take a consumer, and the function that leaves the replica that its leader may name."""
        self._replica = replica
        self._watermarks = watermarks
        self._consumer = consumer
        self._errors = errors
        self._partition = offset_range.partition
        self._until_offset = offset_range.until_offset
        self._gatherer = gatherer
        self._is_topic_known = False
        self._recreations = 0
        self._has_read = False

    def fetch(self, position: int) -> Fetched | None:
        gatherer = self._gatherer
        if not self._consumer.serves(self):
            self._start(position)
        deadline = Deadline.after(FETCH_S)
        while True:
            result = gatherer.gather(self._until_offset, lambda: self._poll(deadline))
            if self._is_recreated():
                return self._leave_topic(position)
            if not gatherer.skip_oversized(result):
                break
        if result != status.DONE and not gatherer.has_rows:
            self._require_out_of_range(result)
            return None
        if gatherer.next_offset == position:
            self._require_topic()
        if self._replica is not None:
            self._leave_replica(self._replica, is_empty=gatherer.next_offset == position)
        # An error of the next message is raised by the next fetch.
        return self._fetched(position)

    def leave(self) -> None:
        self._consumer.stop(self)

    def watermarks(self) -> tuple[int, int]:
        return self._watermarks.of(self._partition)

    def _start(self, position: int) -> None:
        consumer, gatherer = self._consumer, self._gatherer
        if not self._has_read:
            # All records from here on must be of one topic, also if another range comes between.
            self._recreations = consumer.recreations(self._partition.topic)
        queue = consumer.start(self, self._partition, position, gatherer.last_epoch)
        gatherer.start(queue, position)
        if self._replica is not None:
            self._replica.start()

    def _leave_replica(self, replica: Replica, *, is_empty: bool) -> None:
        """Continue with the leader if a replica has nothing of the range for too long."""
        if replica.is_behind(is_empty=is_empty):
            self.leave()
            self._consumer, self._replica = replica.consumer_of_leaders(), None

    def _is_recreated(self) -> bool:
        """Return whether rows that were gathered may be of another topic than those before."""
        return self._consumer.recreations(self._partition.topic) != self._recreations

    def _leave_topic(self, position: int) -> Fetched:
        """Forget rows that may be of two topics, and continue if nothing of the range was read.

        :raises TopicRecreatedError: if the old topic's records of the range were read.
        """
        if self._has_read:
            earliest, _ = self.watermarks()
            raise TopicRecreatedError(self._partition, position, earliest=earliest)
        self._gatherer.discard()
        self._gatherer.forget_epoch()
        self.leave()
        return Fetched((), position)

    def _poll(self, deadline: Deadline) -> bool:
        """Take the next messages out of the queue; return whether any came in time."""
        if deadline.has_passed:
            return False
        self._consumer.handle_events()
        return self._gatherer.take(POLL_S)

    def _require_topic(self) -> None:
        """Raise the error of a topic without records if the user may not see it."""
        if self._is_topic_known:
            return
        self._is_topic_known = True
        error = self._consumer.handle.topic_error(self._partition.topic, FETCH_S)
        if error is not None and error.code() in REFUSED_RESOURCES:
            right = topic_right(Operation.DESCRIBE, self._partition.topic)
            raise self._errors.error(f"a fetch from {self._partition}", error, right)

    def _fetched(self, position: int) -> Fetched:
        batches = (self._gatherer.finish(),) if self._gatherer.has_rows else ()
        for records in batches:
            self._consumer.see(records)
        next_offset = self._gatherer.next_offset
        self._has_read = self._has_read or next_offset > position
        return Fetched(batches, next_offset)

    def _require_out_of_range(self, result: int) -> None:
        """Raise the error of the next message; return if its offset is out of range.

        :raises LogTruncatedError: if the log has other records than were read.
        """
        error, offset = self._gatherer.require_event(result)
        if error.code() not in OUT_OF_RANGE_ERRORS:
            raise self._errors.fetch_error(self._partition, error, offset)
        # librdkafka reports it once and stops fetching: the next fetch starts again.
        self.leave()
        self._gatherer.require_same_log(error, self._gatherer.next_offset)
