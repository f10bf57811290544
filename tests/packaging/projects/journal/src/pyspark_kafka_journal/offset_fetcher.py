"""Partitions and offsets of a journal."""

from collections.abc import Collection, Mapping
from typing import final

from pyspark_kafka.domain.errors import UnknownTopicError, UnsupportedFeatureError
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Assign, Subscribe, SubscribePattern, Subscription
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.reading import OffsetFetcher

from .journal import Journal


@final
class JournalOffsetFetcher(OffsetFetcher):
    """Looks at a journal's files. Nothing is ever deleted from one, so that it begins at 0."""

    def __init__(self, options: SourceOptions) -> None:
        self._directory = options.bootstrap_servers
        self._journal = Journal(self._directory)

    def partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        sizes = self._journal.topics()
        match subscription:
            case Assign(partitions):
                return frozenset(
                    one for one in partitions if one.partition < sizes.get(one.topic, 0)
                )
            case Subscribe(topics):
                missing = [topic for topic in topics if topic not in sizes]
                if missing:
                    raise UnknownTopicError(missing, "subscribe", self._directory)
            case SubscribePattern():
                topics = tuple(filter(subscription.matches, sizes))
        return frozenset(TopicPartition(topic, n) for topic in topics for n in range(sizes[topic]))

    def earliest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(dict.fromkeys(self._ends(partitions), 0))

    def latest(self, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        return PartitionOffsets(self._ends(partitions))

    def for_timestamps(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return {
            partition: next(
                (
                    record.offset
                    for record in self._journal.records(partition, 0, end)
                    if record.timestamp >= timestamps[partition]
                ),
                None,
            )
            for partition, end in self._ends(timestamps).items()
        }

    def committed(self, group_id: str, partitions: Collection[TopicPartition]) -> PartitionOffsets:
        raise UnsupportedFeatureError("The client 'journal'", f"give offsets of '{group_id}'")

    def commit(self, group_id: str, offsets: PartitionOffsets) -> None:
        raise UnsupportedFeatureError("The client 'journal'", f"keep offsets of '{group_id}'")

    def close(self) -> None:
        """Do nothing: files are open while they are looked at only."""

    def _ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        ends = {partition: self._journal.end(partition) for partition in partitions}
        return {partition: end for partition, end in ends.items() if end is not None}
