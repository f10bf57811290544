"""Random options of a read, of those that both connectors have."""

import json
from random import Random
from typing import TypeAlias

from pyspark_kafka.domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from tests.spark.random_topics import LEVELS

from .changing_topics import ChangingTopics

Options: TypeAlias = "dict[str, str]"

_FAR = 4_000_000_000_000
"""A time after most records, in milliseconds."""


class RandomOptions:
    def __init__(self, topics: ChangingTopics, random: Random) -> None:
        self._topics = topics
        self._random = random
        rows = [row for each in topics.read_by_judge(LEVELS[0]).values() for row in each]
        self._times = [0, _FAR, *sorted({row.timestamp // 1_000 for row in rows})]

    def batch(self) -> Options:
        chosen, partitions = self._subscription()
        start = self._bound("starting", partitions, ["earliest"])
        end = self._bound("ending", partitions, ["latest"])
        return {**chosen, **start, **end, **self._some(self._common())}

    def stream(self) -> Options:
        """Return options of a stream, which reads all there is in a few micro-batches."""
        chosen, partitions = self._subscription()
        start = self._bound("starting", partitions, ["earliest", "latest"])
        size = self._size()
        limits = {
            "maxOffsetsPerTrigger": str(self._random.randint(size // 5 + 1, size + 2)),
            "minOffsetsPerTrigger": str(self._random.randint(1, size // 5 + 1)),
        }
        return {**chosen, **start, **self._some(limits), **self._some(self._common())}

    def _subscription(self) -> tuple[Options, list[TopicPartition]]:
        topics = self._topics.topics
        some = self._random.sample(topics, self._random.randint(1, len(topics)))
        partitions = sorted(part for part in self._topics.ends if part.topic in some)
        match self._random.randrange(8):
            case 0 | 1 | 2:
                return {"subscribe": ",".join(some)}, partitions
            case 3 | 4:
                return {"subscribePattern": f"^({'|'.join(some)})$"}, partitions
            case 5:
                pattern = f"^{topics[0].rpartition('-')[0]}-[0-9]+"
                return {"subscribePattern": pattern}, sorted(self._topics.ends)
            case _:
                assigned = self._random.sample(partitions, self._random.randint(1, len(partitions)))
                return {"assign": self._assignment(assigned)}, assigned

    def _assignment(self, partitions: list[TopicPartition]) -> str:
        by_topic: dict[str, list[int]] = {}
        for part in sorted(partitions):
            by_topic.setdefault(part.topic, []).append(part.partition)
        if self._rarely():
            by_topic[partitions[0].topic].append(99)
        if self._rarely():
            by_topic[f"{partitions[0].topic}-missing"] = [0]
        return json.dumps(by_topic)

    def _bound(self, side: str, partitions: list[TopicPartition], words: list[str]) -> Options:
        """Return where a query starts or ends, in each way that there is."""
        times = PartitionOffsets({part: self._random.choice(self._times) for part in partitions})
        strategy = self._random.choice(("error", "latest"))
        strategies = {"startingOffsetsByTimestampStrategy": strategy} if side == "starting" else {}
        match self._random.randrange(6):
            case 0:
                return {}
            case 1:
                return {f"{side}Offsets": self._random.choice(words)}
            case 2:
                time = str(self._random.choice(self._times))
                return {f"{side}Timestamp": time} | self._some(strategies)
            case 3:
                return {f"{side}OffsetsByTimestamp": times.to_json()} | self._some(strategies)
            case _:
                offsets = {part: self._offset(part, words) for part in partitions}
                if self._rarely():
                    del offsets[partitions[0]]
                return {f"{side}Offsets": PartitionOffsets(offsets).to_json()}

    def _offset(self, part: TopicPartition, words: list[str]) -> int:
        begin, end = self._topics.begins[part], self._topics.ends[part]
        if self._rarely():
            return self._random.choice((max(begin - 1, 0), end + 3))
        named = {"earliest": EARLIEST, "latest": LATEST}
        if self._random.random() < 0.3:
            return named[self._random.choice(words)]
        return self._random.randint(begin, end)

    def _size(self) -> int:
        return sum(self._topics.ends.values()) - sum(self._topics.begins.values())

    def _common(self) -> Options:
        return {
            "includeHeaders": self._random.choice(("true", "false")),
            "failOnDataLoss": self._random.choice(("true", "false")),
            "kafka.isolation.level": self._random.choice(LEVELS),
            "minPartitions": str(self._random.randint(1, 9)),
            "maxRecordsPerPartition": str(self._random.randint(self._size() // 9 + 1, 9_999)),
            "groupIdPrefix": "trial",
            # The JVM connector refuses the group of another query, if it has other settings.
            "kafka.group.id": f"trial-{self._random.getrandbits(40)}",
            "kafka.client.id": "trial",
            "kafka.max.partition.fetch.bytes": self._random.choice(("1", "10000", "1048576")),
            "kafka.fetch.max.bytes": self._random.choice(("1", "100000")),
            "kafka.check.crcs": self._random.choice(("true", "false")),
            "fetchOffset.numRetries": self._random.choice(("1", "2")),
            "partition.metadata.cache.ttl.ms": "60000",
        }

    def _some(self, given: Options) -> Options:
        count = self._random.randint(0, (len(given) + 1) // 2)
        return {name: given[name] for name in self._random.sample(sorted(given), count)}

    def _rarely(self) -> bool:
        return self._random.random() < 0.05
