"""The need to know which partitions there are and which offsets they hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.subscription import Subscription
    from ..domain.topic_partition import TopicPartition


class OffsetFetcher(ABC):
    """Asks a Kafka cluster for partitions and offsets.

    Every call asks the cluster afresh, may be repeated, blocks for a bounded time (the client's
    ``default.api.timeout.ms``, in milliseconds) and may be made from any one thread at a time.
    Every call but ``close`` may raise, besides what it names:

    :raises BrokerUnreachableError: if no broker answered in that time.
    :raises KafkaRequestError: if a broker answered with an error, authorization included.
    :raises UnsupportedFeatureError: if the client cannot do it: groups and timestamps may lack.
    """

    @abstractmethod
    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        """Give the partitions that a subscription stands for now.

        Of assigned partitions, those that do not exist are left out; a pattern does not find
        internal topics. Both as in Spark's ``ConsumerStrategy``.

        :raises UnknownTopicError: if a topic of a ``Subscribe`` does not exist.
        """

    @abstractmethod
    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Give the first offset that each partition holds.

        Partitions that do not exist are left out of the answer.
        """

    @abstractmethod
    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Give the offset after the last one that may be read from each partition.

        With ``isolation.level=read_committed`` that is the last stable offset, which an open
        transaction holds back. Partitions that do not exist are left out of the answer.
        """

    @abstractmethod
    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """Give the first offset whose record is not older than a time.

        ``timestamps`` are milliseconds since the epoch. ``None`` stands for a partition without
        such a record. Partitions that do not exist are left out of the answer.
        """

    @abstractmethod
    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        """Give the next offsets that a consumer group has committed.

        Partitions for which it has committed nothing are left out of the answer.
        """

    @abstractmethod
    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        """Commit next offsets for a consumer group that has no members.

        Repeating it changes nothing.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back connections and threads. A second call does nothing."""
