"""The checkpoint of a query, as Spark keeps it."""

from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.domain.topic_partition import TopicPartition

from .query import Offsets

Json: TypeAlias = dict[str, dict[str, int]]


@dataclass
class Checkpoint:
    """Ends of batches by their ids, the batches that are committed, and the source's own log."""

    offsets: dict[int, Json] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    metadata: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    engine_offsets: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    engine_commits: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    ids: dict[TopicPartition, int] = field(default_factory=dict)
    """The incarnations of topics when the newest end was logged."""

    @property
    def planned(self) -> int:
        """The newest batch whose end is logged, or -1."""
        return max(self.offsets, default=-1)

    @property
    def committed(self) -> int:
        return max(self.commits, default=-1)

    def end(self, batch_id: int) -> dict[TopicPartition, int] | None:
        """Return the logged end of a batch."""
        content = self.offsets.get(batch_id)
        return None if content is None else parsed(content)


def parsed(content: Json) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, partitions in content.items()
        for number, offset in partitions.items()
    }


def written(offsets: Offsets) -> Json:
    content: Json = {}
    for part, offset in sorted(offsets.items()):
        content.setdefault(part.topic, {})[str(part.partition)] = offset
    return content
