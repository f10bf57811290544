"""Small random topics, which grow and lose records between the runs of a stream."""

from collections import Counter

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until
from tests.spark.random_topics import CODECS, SIZES, RandomTopics


class ChangingTopics(RandomTopics):
    """One or two topics of random kinds; ``begins`` has the first offset of each partition."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.begins = Counter[TopicPartition]()
        self._cleaned: set[str] = set()

    def change(self) -> None:
        if self._random.random() < 0.2:
            topic = self._random.choice(self.topics)
            total = sum(part.topic == topic for part in self.ends) + 1
            self.cluster.add_partitions(topic, total)
            self.ends[TopicPartition(topic, total - 1)] = 0
        self._append(self._changeable())
        if self._random.random() < 0.2:
            self._delete_records()
        self._await_ends()

    def _fill(self) -> None:
        kinds = (self._small, self._small, lambda: self._transactions(2, 15), self._compacted)
        for fill in self._random.choices(kinds, k=self._random.choice((1, 1, 2))):
            fill()
        if self._random.random() < 0.4:
            self._delete_records()

    def _small(self) -> None:
        codec = self._random.choice(CODECS).replace("none", "uncompressed")
        configs = ("compression.type", codec), ("message.timestamp.type", "LogAppendTime")
        created = self._create(self._random.randint(1, 4), dict([self._random.choice(configs)]))
        for _ in range(3):
            self._append(created)

    def _create(self, partitions: int, config: dict[str, str]) -> list[TopicPartition]:
        created = super()._create(partitions, config)
        if "cleanup.policy" in config:
            # What a cleaner removes while one of two connectors has read it is no difference.
            self._cleaned.add(created[0].topic)
        return created

    def _changeable(self) -> list[TopicPartition]:
        return sorted(part for part in self.ends if part.topic not in self._cleaned)

    def _append(self, partitions: list[TopicPartition]) -> None:
        """Write to some of the partitions; the others stay as they are, perhaps empty."""
        for part in self._random.sample(partitions, self._random.randint(0, len(partitions))):
            self._write(self._writer(), part, self._random.choice(SIZES[:-1]))

    def _delete_records(self) -> None:
        ends = self.ends_for("read_committed")
        if full := [part for part in self._changeable() if ends[part] > self.begins[part]]:
            part = self._random.choice(full)
            begin = self._random.randint(self.begins[part] + 1, ends[part])
            self.begins[part] = begin
            self.cluster.delete_records({(part.topic, part.partition): begin})
            await_deleted(self.cluster, part, begin)


def await_deleted(cluster: KafkaCluster, part: TopicPartition, begin: int) -> None:
    """Wait until segments are deleted that are before an offset.

    Until then brokers look for a time in the first one that had it
    (``UnifiedLog.fetchOffsetByTimestamp``).
    """
    folder = cluster._nodes[0].data / f"{part.topic}-{part.partition}"
    await_until(lambda: sum(int(log.stem) <= begin for log in folder.glob("*.log")) == 1)
