"""Reading offsets and records of Kafka, and the reports about that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import pyarrow as pa

    from ..domain.errors import PysparkKafkaError
    from ..domain.lag.lag import Lag
    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.reading.data_loss import DataLoss
    from ..domain.reading.errors import OffsetOutOfRangeError
    from ..domain.reading.ranges import OffsetRange
    from ..domain.reading.records import Projection
    from ..domain.subscription import Subscription
    from ..domain.topic_partition import TopicPartition
    from ..domain.values.errors import BadRecordStats
    from ..domain.writing.transaction import DeliveryStats


class OffsetFetcher(ABC):
    """Fetches partitions and offsets from a Kafka cluster.

    Every method sends a new request, is idempotent and blocks for at most the client's
    ``default.api.timeout.ms`` (milliseconds). One thread at a time may call it. Every method
    but ``close`` may raise, in addition to its own errors:

    :raises BrokerUnreachableError: if no broker answered in that time.
    :raises AuthenticationError: if a login is refused; the login is not retried.
    :raises TlsError: if a TLS handshake fails.
    :raises AuthorizationError: if the user may not describe a topic, or use a group.
    :raises KafkaRequestError: if a broker refused the request for another reason.
    :raises UnsupportedFeatureError: if the client does not support groups or timestamps.
    """

    @abstractmethod
    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        """Return the current partitions of a subscription.

        Assigned partitions that do not exist are left out, and a pattern does not match internal
        topics, as in Spark's ``ConsumerStrategy``.

        :raises UnknownTopicError: if a topic of a ``Subscribe`` does not exist.
        """

    @abstractmethod
    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Return the earliest offset of each partition (the log start offset).

        Partitions that do not exist are left out.
        """

    @abstractmethod
    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Return the latest offset of each partition (the high watermark).

        With ``isolation.level=read_committed`` it is the last stable offset, which an open
        transaction holds back. Partitions that do not exist are left out.
        """

    @abstractmethod
    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """Return the offset of the first record at or after a timestamp, or ``None``.

        ``timestamps`` are milliseconds since the epoch. ``None`` stands for a partition without
        such a record, with ``isolation.level=read_committed`` before the last stable offset.
        Partitions that do not exist are left out.
        """

    @abstractmethod
    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Return the committed offsets of a consumer group.

        Partitions without a committed offset are left out.
        """

    @abstractmethod
    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        """Commit offsets for a consumer group that has no members. Idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Close connections and stop threads. A second call does nothing."""


class RecordReader(ABC):
    """Reads the visible records of offset ranges, one range at a time."""

    @abstractmethod
    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        """Yield the records of a bound range in order, each once.

        Each batch has the schema ``record_schema(projection)`` and at least one row, and belongs to
        the caller. Offsets without a visible record (control batches, aborted transactions under
        ``read_committed``, compacted records) are skipped. Memory is bounded by a few fetches,
        not by the size of the range. The iterator may be closed or dropped at any time; the
        reader can then read another range.

        Blocks for at most ``kafkaConsumer.pollTimeoutMs`` without progress. An empty response, or
        one of a replica that lags, never ends a range. Records before an error are yielded first.

        :raises OffsetOutOfRangeError: if the broker does not hold the next offset to read.
        :raises LogTruncatedError: if the log has other records than were read of the range.
        :raises TopicRecreatedError: if the topic was deleted and created again after a part of the
            range was read.
        :raises MissingOffsetsError: if offsets of the range were deleted while it was read.
        :raises UnknownTopicError: if the partition does not exist.
        :raises FetchTimeoutError: if the broker holds the next offset and does not return it.
        :raises MalformedTimestampError: if ``timestamp`` is projected and overflows.
        :raises BrokerUnreachableError: if no broker answers.
        :raises AuthenticationError: if a login is refused; the login is not retried.
        :raises TlsError: if a TLS handshake fails.
        :raises AuthorizationError: if the user may not read.
        :raises CorruptBatchError: if a record batch is corrupt.
        :raises OversizedRecordError: if a record exceeds a limit of the options, and
            ``skipOversizedRecords`` is false. A record before the range never does.
        :raises KafkaRequestError: if a broker refuses the request, and retries do not help.
        """

    def expect(self, ranges: Collection[OffsetRange]) -> None:  # noqa: B027  # it may be ignored
        """Take the bound ranges that ``read`` is called with next, in this order.

        A reader may fetch many of them by one request; it need not. Memory stays bounded. What is
        not read of them is forgotten with the next call.
        """

    def take_skipped(self) -> Iterable[DataLoss]:
        """Return reports of the records that were skipped since the last call."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Close connections and stop threads. A second call does nothing."""


class SourceEvents(ABC):
    """A listener. Its methods return immediately and raise nothing."""

    @abstractmethod
    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        """Called with the offsets at which a new stream starts."""

    @abstractmethod
    def partitions_added(self, offsets: PartitionOffsets) -> None:
        """Called with new partitions and the offsets from which they are read."""

    @abstractmethod
    def partitions_left_out(self, partitions: Collection[TopicPartition]) -> None:
        """Called with new partitions that a batch query has no bounds for, and does not read."""

    @abstractmethod
    def data_lost(self, loss: DataLoss) -> None:
        """Called when data is lost and the query continues.

        Either ``failOnDataLoss`` is false, or ``skipOversizedRecords`` is true.
        """

    @abstractmethod
    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        """Called when a read starts outside of the broker's log."""

    @abstractmethod
    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        """Called when a fetch of offsets failed and is retried; ``attempt`` counts from 1."""

    @property
    def takes_lag(self) -> bool:
        """Whether to measure lag, which takes milliseconds with thousands of partitions."""
        return True

    @abstractmethod
    def lag_measured(self, lag: Lag) -> None:
        """Called with the lag between committed and latest offsets."""

    @abstractmethod
    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        """Called when a commit of offsets to a consumer group failed."""

    @abstractmethod
    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        """Called when records of a task could not be decoded, and the query continues.

        The partition and the offset are the first one's. Dead letters are acknowledged by then.
        """

    @abstractmethod
    def tasks_are_small(self, tasks: int, offsets: int) -> None:
        """Called once if a query has many tasks that read few offsets each, all together these."""

    @abstractmethod
    def records_delivered(self, delivered: DeliveryStats) -> None:
        """Called when all records of a sink's task are acknowledged."""


class RackFinder(ABC):
    """Finds the rack of this host, which is a zone in clouds; any thread may call it."""

    @abstractmethod
    def find(self) -> str:
        """Return the rack of this host, after a second at most; each call looks for it again.

        :raises RackNotFoundError: if there is none, or it is not known in that time.
        """
