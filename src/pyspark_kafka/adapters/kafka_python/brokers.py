"""State that the fetchers of one reader share: connections, metadata, and ranges to read next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final
from weakref import WeakSet

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from ...domain.options.option import INT64_MAX
from ...domain.reading.cursor import Cursor
from ...domain.reading.errors import CorruptBatchError
from ...domain.reading.expected_ranges import ExpectedRanges
from ...domain.reading.leader_epochs import EpochEndOffset
from ...domain.reading.near_replicas import NearReplicas
from ...domain.reading.record_limits import OversizedRecords
from ...ports.continuous import PolledRecords
from ..fetching import Watermarks
from ..kafka_format.column_buffers import BufferPool
from ..kafka_format.record_decoder import DecoderMemory, FetchedRecords, RecordDecoder
from .cluster_metadata import ClusterMetadata
from .connections import FetchConnection, Opened, ReceiveBuffer
from .offset_fetcher import KafkaPythonOffsetFetcher
from .responses import MAX_FRAME_BYTES
from .settings import client_settings
from .wire import FetchedData, FetchPosition, FetchResponse, FetchSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    import pyarrow as pa

    from ...domain.options.source import SourceOptions
    from ...domain.reading.leader_epochs import FetchedEpochs
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition

PARTITION_BYTES: Final = 4 * 1024 * 1024 - 64 * 1024
"""The default size of a fetch, which a ``ReceiveBuffer`` holds with its head.

Of 2 MB, uncompressed records were read at 0.85 times the speed: each request wakes the broker. A
thread that receives while records are decoded takes the processor from the broker, and was slower.
"""

MAX_WAIT_MS: Final = 1_000
"""How long a broker may wait for records before it sends an empty response."""

_BEFORE_SIZE: Final = 12
"""The bytes of a batch before those that its size counts: its offset, and the size."""

RANGE_BYTES: Final = 32 * 1024
"""How much of each is asked for: together they take 4 MB at most, but for single large batches."""


_CONSUMER: Final = -1
"""The replica id of a consumer."""

_MIN_EPOCH_VERSION: Final = 3
"""The first version for which a consumer needs no right on the cluster, of Kafka 2.3."""

_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_Partition = _Topic.OffsetForLeaderPartition


@final
class Brokers:
    """The settings, connections and metadata that the fetchers of one reader share."""

    def __init__(self, options: SourceOptions, **defaults: int) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options.

        ``defaults`` are settings that hold unless the options have them.
        """
        config, self.errors = client_settings(
            options.java, {"max_partition_fetch_bytes": PARTITION_BYTES, **defaults}
        )
        self.settings = FetchSettings(
            client_id=config["client_id"],
            rack=config["client_rack"],
            isolation_level=int(options.reads_committed_only),
            min_bytes=config["fetch_min_bytes"],
            max_bytes=config["fetch_max_bytes"],
            partition_bytes=config["max_partition_fetch_bytes"],
            max_wait_ms=min(config["fetch_max_wait_ms"], MAX_WAIT_MS),
            max_batch_bytes=max(MAX_FRAME_BYTES, options.max_record_bytes),
        )
        self.retry_s: float = config["retry_backoff_ms"] / 1_000
        self.timeout_ms: int = min(config["request_timeout_ms"], self.errors.timeout_ms)
        if self.settings.rack:
            # There is time left for the leader if a replica does not answer.
            self.timeout_ms = min(self.timeout_ms, options.poll_timeout_ms // 2)
        self.watermarks = Watermarks(partial(KafkaPythonOffsetFetcher, options), options)
        self.connections: dict[int, FetchConnection] = {}
        """Connections that no fetcher uses, without a request in flight."""

        self.not_before: dict[int, float] = {}
        """The ends of pauses that brokers asked for (KIP-219)."""

        self.buffers: BufferPool[ReceiveBuffer] = BufferPool(ReceiveBuffer)
        self.expected = ExpectedRanges[HeldData]()
        self.oversized = OversizedRecords(options.record_limits)
        self.near = NearReplicas(
            options.poll_timeout_ms / 1_000, config["metadata_max_age_ms"] / 1_000
        )
        self._config = config
        self._memory = DecoderMemory()
        self._metadata: ClusterMetadata | None = None
        self._opened: WeakSet[FetchConnection] = WeakSet()
        self._is_closed = False

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata, which connect at first use."""
        if self._metadata is None:
            self._metadata = ClusterMetadata(self._config, self.errors)
        return self._metadata

    def cursor(
        self,
        partition: TopicPartition,
        projection: Projection,
        offset: int,
        until_offset: int = INT64_MAX,
    ) -> PartitionCursor:
        """Return a cursor of a part of a partition."""
        decoder = RecordDecoder(
            partition,
            projection,
            self._memory,
            check_crcs=self._config["check_crcs"],
            oversized=self.oversized,
        )
        return PartitionCursor(partition, offset, until_offset, decoder=decoder)

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        """Fetch these ranges together if they are small; they are read next, in this order."""
        self.expected.expect(ranges)
        if ranges or self._metadata is not None:
            self.metadata.in_use.expect(one.partition.topic for one in ranges)

    def connect(self, node: int, *, waits: bool) -> FetchConnection:
        """Return a new connection to a broker; raises as ``ClusterMetadata.connect``."""

        def make(opened: Opened) -> FetchConnection:
            return FetchConnection(opened, self.settings, self.timeout_ms)

        connection = self.metadata.connect(node, make, waits=waits)
        self._opened.add(connection)
        return connection

    def keep(self, node: int, connection: FetchConnection | None) -> None:
        """Take back a connection, for the next range if it has no request in flight."""
        if connection is None:
            return
        if connection.in_flight or node in self.connections or self._is_closed:
            connection.close()
        else:
            self.connections[node] = connection

    def take_held(self, cursor: PartitionCursor) -> HeldData | None:
        """Return what was fetched together with an earlier range."""
        self.expected.begin(cursor.partition, cursor.offset)
        held = self.expected.take(cursor.partition)
        if held is None:
            return None
        cursor.see_metadata(self.metadata)
        return held if held.position == cursor.position._replace(max_bytes=RANGE_BYTES) else None

    def hold(
        self,
        response: FetchResponse,
        positions: Mapping[TopicPartition, FetchPosition],
        *,
        is_by_id: bool,
    ) -> None:
        """Keep a copy of what was sent of expected ranges; what failed is fetched again alone."""
        for partition, position in positions.items():
            data = response.partitions.get(partition)
            if data is None:
                continue
            if data.error is not kafka_errors.NoError:
                self.expected.refuse(partition)
            elif _is_whole(data.records):
                # The memory of the response is used again.
                copied = data._replace(records=memoryview(bytes(data.records)))
                self.expected.hold(partition, HeldData(position, copied, is_by_id))

    def node_of(self, partition: TopicPartition) -> int | None:
        """Return the broker to fetch from by the last metadata; ``None`` without a leader."""
        replica = self.near.of(partition)
        return self.metadata.view.leadership(partition).node if replica is None else replica

    def close(self) -> None:
        """Close all connections, also of ranges that are read; a second call does nothing."""
        self._is_closed = True
        for connection in list(self._opened):
            connection.close()
        self.connections.clear()
        if self._metadata is not None:
            self._metadata.close()
            self._metadata = None


@dataclass(slots=True, eq=False, kw_only=True)
class PartitionCursor(Cursor):
    """A cursor with what decodes its records."""

    decoder: RecordDecoder

    @property
    def position(self) -> FetchPosition:
        """The position of the next request."""
        return FetchPosition(self.offset, self.epochs.last, self.leader_epoch, self.topic.topic_id)

    def asks_for(self, position: FetchPosition) -> bool:
        """Return whether the answer to an earlier request for this position may be taken.

        Until a topic has answered, metadata may name another one, which that request was not for.
        A former leader may have records that its successor has not, and brokers before Kafka 2.7
        compare the logs only when they are asked to.
        """
        is_same = (position.offset, position.topic_id) == (self.offset, self.topic.topic_id)
        return is_same and position.leader_epoch >= self.leader_epoch

    def see_metadata(self, metadata: ClusterMetadata) -> None:
        """Note the leader's epoch and the topic's id by the last metadata."""
        self.see(metadata.view.topic_id(self.partition.topic), metadata.source)
        self.follow(metadata.view.leadership(self.partition).epoch)

    def take(self, data: FetchedData) -> FetchedBatches | None:
        """Pass records that were fetched, and return them; ``None`` if all are before the offset.

        :raises CorruptBatchError: if there is no complete batch.
        :raises LogTruncatedError: if the log has other records than were read.
        """
        records = FetchedRecords.of(data.records, data.aborted)
        offset, next_offset = self.offset, records.next_offset
        if next_offset is None:
            # A broker sends the first batch complete, even beyond the limits (KIP-74).
            raise CorruptBatchError(self.partition, offset, records.problem or "it is cut off")
        if next_offset <= offset:
            return None
        self.advance(next_offset, self.epochs.extend(records.index.batches))
        batches = self.decoder.decode(records, offset, self.until_offset)
        return FetchedBatches(self, batches, offset, next_offset)


@final
@dataclass(slots=True, eq=False)
class FetchedBatches:
    """Records of one partition, which are decoded while they are taken."""

    cursor: PartitionCursor
    batches: Iterator[pa.RecordBatch]
    passed: int
    """The offset after what was taken."""

    next_offset: int

    def take(self) -> PolledRecords | None:
        """Return the next batch; ``None`` at the end."""
        partition = self.cursor.partition
        records = next(self.batches, None)
        if records is not None:
            self.passed = self.cursor.decoder.next_offset
            return PolledRecords(partition, records, self.passed)
        if self.passed < self.next_offset:
            self.passed = self.next_offset
            return PolledRecords(partition, None, self.passed)
        return None


@final
@dataclass(frozen=True, slots=True)
class HeldData:
    """Records of a range that is read later."""

    position: FetchPosition
    data: FetchedData
    is_by_id: bool


def _is_whole(records: memoryview) -> bool:
    """Return whether the first batch is complete: only one partition's is, beyond the limits."""
    size = int.from_bytes(records[8:12], "big", signed=True)
    return len(records) >= _BEFORE_SIZE + size > _BEFORE_SIZE


def find_other_log(
    metadata: ClusterMetadata,
    node: int,
    partition: TopicPartition,
    position: FetchPosition,
    epochs: FetchedEpochs,
) -> EpochEndOffset | None:
    """Ask a leader that does not compare epochs itself; return its answer if its log differs.

    :raises KafkaError: if there is no answer in time, or an error.
    """
    if epochs.is_confirmed(position.leader_epoch):
        return None
    request = OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            _Topic(
                topic=partition.topic,
                partitions=[
                    _Partition(
                        partition=partition.partition,
                        current_leader_epoch=position.leader_epoch,
                        leader_epoch=position.last_epoch,
                    )
                ],
            )
        ],
        min_version=_MIN_EPOCH_VERSION,
    )
    try:
        found = _answer(metadata.send(request, node), partition)
    except kafka_errors.IncompatibleBrokerVersion:
        return None
    return None if epochs.confirm(found, position.offset, position.leader_epoch) else found


def _answer(response: Any, partition: TopicPartition) -> EpochEndOffset:
    for topic in response.topics:
        for answer in topic.partitions:
            if (topic.topic, answer.partition) == (partition.topic, partition.partition):
                error = kafka_errors.for_code(answer.error_code)
                if error is not kafka_errors.NoError:
                    raise error
                return EpochEndOffset(answer.leader_epoch, answer.end_offset)
    raise kafka_errors.KafkaProtocolError(f"an answer about leader epochs leaves out {partition}")
