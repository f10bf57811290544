"""Fetching partitions and offsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.subscription import Subscription
    from ...domain.topic_partition import TopicPartition


class OffsetFetcher(ABC):
    """Fetches partitions and offsets from a Kafka cluster.

    Every method sends a new request, is idempotent and blocks for at most the client's
    ``default.api.timeout.ms`` (milliseconds). One thread at a time may call it. Every method
    but ``close`` may raise, in addition to its own errors:

    :raises BrokerUnreachableError: if no broker answered in that time.
    :raises AuthenticationError: if a login is refused; it is not tried again.
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
        such a record. Partitions that do not exist are left out.
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
