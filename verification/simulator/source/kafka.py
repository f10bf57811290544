"""A cluster in memory, and a ledger of all that was ever written to it."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.scheduler import EPOCH_MS, Scheduler


class Written(NamedTuple):
    """A record that was written to an incarnation of a topic."""

    partition: TopicPartition
    offset: int
    topic_id: int
    timestamp: int
    transaction: int | None


class Log(NamedTuple):
    """The offsets of a partition's log, and the incarnation of its topic."""

    start: int
    end: int
    topic_id: int


View: TypeAlias = Mapping[TopicPartition, Log]
"""All partitions at one moment."""

FIRST_MS: Final = EPOCH_MS - 1_000_000
"""The time of the first record."""


class Kafka:
    """Topics, whose every change raises ``version``."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.cluster = MemoryCluster(lambda: scheduler.now_ms)
        self.version = 0
        self.written: dict[bytes, Written] = {}
        self.values: dict[tuple[TopicPartition, int], list[bytes]] = {}
        """The values in each incarnation of a partition, oldest first."""
        self.deleted: set[str] = set()
        """Topics that were ever deleted."""
        self._seen: dict[bool, tuple[int, View]] = {}
        self._open: list[int] = []
        self._aborted: set[int] = set()

    def view(self, *, committed_only: bool) -> View:
        if self._seen.get(committed_only, (None, {}))[0] != self.version:
            self._seen[committed_only] = self.version, self._view(committed_only=committed_only)
        return self._seen[committed_only][1]

    def _view(self, *, committed_only: bool) -> View:
        return {
            part: Log(*marks, self.cluster.topic_id(part.topic) or 0)
            for topic, count in self.cluster.topics().items()
            for part in (TopicPartition(topic, number) for number in range(count))
            if (marks := self.cluster.watermarks(part, committed_only=committed_only))
        }

    def topic_id(self, partition: TopicPartition) -> int | None:
        """Return the incarnation of a partition, or ``None`` if it does not exist."""
        if partition.partition >= self.cluster.topics().get(partition.topic, 0):
            return None
        return self.cluster.topic_id(partition.topic)

    def create(self, topic: str, partitions: int) -> None:
        self.version += 1
        self.cluster.create_topic(topic, partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        self.version += 1
        self.cluster.add_partitions(topic, total)

    def delete(self, topic: str) -> None:
        self.version += 1
        self.deleted.add(topic)
        self.cluster.delete_topic(topic)

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        self.version += 1
        self.cluster.delete_records({partition: before})

    def append(self, partition: TopicPartition, timestamp: int, *, is_open: bool = False) -> None:
        """Write a record, which may belong to the newest open transaction."""
        self.version += 1
        transaction = self._open[-1] if is_open and self._open else None
        value = str(len(self.written)).encode()
        offset = self.cluster.produce(
            partition.topic,
            value,
            partition=partition.partition,
            timestamp=timestamp,
            transaction=transaction,
        )
        topic_id = self.cluster.topic_id(partition.topic) or 0
        self.written[value] = Written(partition, offset, topic_id, timestamp, transaction)
        self.values.setdefault((partition, topic_id), []).append(value)

    def begin(self) -> None:
        self._open.append(self.cluster.begin_transaction())

    def end(self, *, commit: bool) -> None:
        """End the oldest open transaction, if there is one."""
        if self._open:
            self.version += 1
            transaction = self._open.pop(0)
            self.cluster.end_transaction(transaction, commit=commit)
            if not commit:
                self._aborted.add(transaction)

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    def is_visible(self, value: bytes, *, committed_only: bool) -> bool:
        transaction = self.written[value].transaction
        return (
            not committed_only
            or transaction is None
            or (transaction not in self._aborted and transaction not in self._open)
        )

    def first_since(self, partition: TopicPartition, log: Log, timestamp: int) -> int | None:
        """Return the first offset of a log whose record is not older than a time.

        There is none if it comes after an open transaction and the log ends before that.
        """
        for value in self.values.get((partition, log.topic_id), ()):
            record = self.written[value]
            if record.offset >= log.start and record.timestamp >= timestamp:
                return record.offset if record.offset < log.end else None
        return None
