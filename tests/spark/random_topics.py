"""Topics whose records, batches, codecs, writers and transactions are chosen at random."""

import string
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition
from kafka.protocol.consumer import OffsetSpec
from pyspark.sql import SparkSession

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import Record, await_until
from pyspark_kafka.testing.kafka_world import produce_with
from tests.slowness import bound_s

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SIZES = (1, 1, 2, 7, 50, 300, 1_500)
LARGE = 200_000

MAX_TIMESTAMP = (2**63 - 1) // 1_000
"""The last millisecond that Spark's microseconds hold."""

LEVELS = ("read_uncommitted", "read_committed")

C = TypeVar("C", bound="_Closed")

_ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
_SECONDS = bound_s(30)


class Row(NamedTuple):
    """A record, as all readers are to see it; ``timestamp`` is in microseconds."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...] | None


class _Closed(Protocol):
    def close(self) -> None: ...


class RandomRecords:
    """Records of every shape."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def some(self, count: int) -> list[Record]:
        return [
            Record(self._text(), self._text(), self._headers(), self._timestamp())
            for _ in range(count)
        ]

    def _text(self) -> bytes | None:
        chance = self._random.random()
        if chance < 0.1:
            return None
        if chance < 0.2:
            return b""
        if chance < 0.201:
            return self._random.randbytes(LARGE)
        if chance < 0.202:
            return self._random.randbytes(10) * (LARGE // 10)
        if chance < 0.6:
            return "".join(self._random.choices(string.ascii_letters, k=20)).encode()
        return self._random.randbytes(self._random.randrange(1, 300))

    def _headers(self) -> tuple[tuple[str, bytes | None], ...]:
        count = self._random.choice((0, 0, 0, 1, 1, 2, 5))
        keys = self._random.choices(("a", "b", "", "ключ", "\U0001f511" * 20, "k" * 300), k=count)
        values = (None, b"", b"1", b"\x00\xff", b"v" * 1_000)
        return tuple((key, self._random.choice(values)) for key in keys)

    def _timestamp(self) -> int:
        chance = self._random.random()
        if chance < 0.02:
            return self._random.choice((0, 1, MAX_TIMESTAMP))
        if chance < 0.1:
            return self._random.randrange(MAX_TIMESTAMP)
        return self._random.randrange(1_600_000_000_000, 1_800_000_000_000)


class Writer(ABC):
    @abstractmethod
    def write(self, partition: TopicPartition, records: Sequence[Record]) -> None: ...


class ConfluentWriter(Writer):
    def __init__(self, cluster: KafkaCluster, random: Random, transactional_id: str = "") -> None:
        config: dict[str, Any] = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "compression.type": random.choice(CODECS),
            "linger.ms": 5,
            "batch.num.messages": random.choice((1, 10, 500, 10_000)),
        }
        if transactional_id:
            config["transactional.id"] = transactional_id
            # The longest that a broker allows: one is to stay open until all have read.
            config["transaction.timeout.ms"] = 900_000
        self._producer = Producer(config)
        if transactional_id:
            self._producer.init_transactions(_SECONDS)

    def write(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        produce_with(self._producer, partition, records)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction(_SECONDS)
        else:
            self._producer.abort_transaction(_SECONDS)

    def close(self) -> None:
        """Nothing is open that is not collected."""


class KafkaPythonWriter(Writer):
    """kafka-python's producer, which takes no null headers, and no record of nulls only."""

    def __init__(self, cluster: KafkaCluster, random: Random, transactional_id: str = "") -> None:
        codec = random.choice(CODECS)
        self._producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            compression_type=None if codec == "none" else codec,
            batch_size=random.choice((0, 1_000, 16_384, 500_000)),
            linger_ms=5,
            transactional_id=transactional_id or None,
        )
        if transactional_id:
            self._producer.init_transactions()

    def write(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        sent = [
            self._producer.send(
                partition.topic,
                b"" if record.key is None else record.value,
                record.key,
                [(key, value or b"") for key, value in record.headers],
                partition.partition,
                record.timestamp,
            )
            for record in records
        ]
        self._producer.flush(_SECONDS)
        for future in sent:
            future.get(_SECONDS)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close()


class SinkWriter(Writer):
    """The JVM connector's sink, which takes no timestamps."""

    def __init__(self, cluster: KafkaCluster, random: Random, spark: SparkSession) -> None:
        self._spark = spark
        self._options = {
            **cluster.options,
            "kafka.compression.type": random.choice(CODECS),
            "kafka.batch.size": str(random.choice((100, 16_384, 500_000))),
            "kafka.linger.ms": "5",
        }

    def write(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        rows = [
            (record.key, record.value, partition.partition, list(record.headers) or None)
            for record in records
        ]
        schema = (
            "key binary, value binary, partition int, "
            "headers array<struct<key: string, value: binary>>"
        )
        sink = self._spark.createDataFrame(rows, schema).coalesce(1).write.format("kafka")
        sink.options(**self._options).option("topic", partition.topic).save()


@dataclass
class RandomTopics:
    """Writes topics from a seed, and knows at which offsets they end."""

    cluster: KafkaCluster
    spark: SparkSession
    fresh_name: Callable[[], str]
    seed: int
    ends: Counter[TopicPartition] = field(default_factory=Counter)
    unstable: dict[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311  # the same for the same seed
        self._records = RandomRecords(self._random)
        self._open = ExitStack()
        self._judges: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self._admin = self._closed_at_end(
                KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers)
            )
            for level in LEVELS:
                self._judges[level] = self._closed_at_end(_consumer(self.cluster, level))
            self._fill()
            self._await_ends()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self.ends})

    def ends_for(self, level: str) -> dict[TopicPartition, int]:
        return dict(self.ends) | (self.unstable if level == "read_committed" else {})

    def read_by_judge(self, level: str) -> dict[TopicPartition, list[Row]]:
        return self._read(self.ends_for(level), level)

    def _fill(self) -> None:
        self._plain(3, 14, {})
        self._plain(2, 7, {"message.timestamp.type": "LogAppendTime"})
        self._transactions(2)
        self._compacted()

    def _plain(self, partitions: int, chunks: int, config: dict[str, str]) -> None:
        created = self._create(partitions, config)
        for number in range(chunks):
            size = self._random.choice(SIZES) if number else 4_000
            self._write(self._writer(), self._random.choice(created), size)

    def _transactions(self, partitions: int, steps: int = 40) -> None:
        """Let transactions and other writers mix, and leave one transaction open."""
        created = self._create(partitions, {})
        kinds = (ConfluentWriter, ConfluentWriter, ConfluentWriter, KafkaPythonWriter)
        writers = [
            self._closed_at_end(kind(self.cluster, self._random, self.fresh_name()))
            for kind in kinds
        ]
        begun: dict[ConfluentWriter | KafkaPythonWriter, set[TopicPartition]] = {}
        for _ in range(steps):
            writer = self._random.choice(writers)
            if writer not in begun:
                writer.begin()
                begun[writer] = set()
            if self._random.random() < 0.6:
                begun[writer].add(partition := self._random.choice(created))
                self._write(writer, partition, self._random.choice((1, 2, 30, 200)))
            else:
                self._end(writer, begun.pop(writer))
            if self._random.random() < 0.2:
                self._write(self._writer(), self._random.choice(created), 5)
        for writer, touched in begun.items():
            self._end(writer, touched)
        self._leave_open(writers, created[0])

    def _leave_open(
        self, writers: Sequence[ConfluentWriter | KafkaPythonWriter], partition: TopicPartition
    ) -> None:
        """Write a transaction that does not end, and others among its records and behind them."""
        stays, other = writers[0], writers[1]
        self.unstable[partition] = self.ends[partition]
        stays.begin()
        self._write(stays, partition, 20)
        other.begin()
        self._write(other, partition, 10)
        self._write(stays, partition, 20)
        self._end(other, {partition})
        self._write(self._writer(), partition, 20)
        self._open.callback(stays.end, commit=False)

    def _end(
        self, writer: ConfluentWriter | KafkaPythonWriter, touched: Collection[TopicPartition]
    ) -> bool:
        commit = self._random.random() < 0.5
        writer.end(commit=commit)
        # Its control record is written to each partition, some time later.
        self.ends.update(touched)
        self._await_ends(LEVELS[:1])
        return commit

    def _compacted(self) -> None:
        """Write a topic in which a cleaner leaves each key's last record, tombstones included."""
        [partition] = self._create(
            1,
            {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0",
                "max.compaction.lag.ms": "1",
                # A segment ends where a record is a second younger than its first one.
                "segment.ms": "1000",
            },
        )
        last: dict[bytes | None, int] = {}
        for number in range(15):
            writer = self._random.choice((ConfluentWriter, KafkaPythonWriter))
            records = [
                Record(
                    record.value if self._random.random() < 0.8 else None,
                    b"key-%d" % self._random.randrange(300),
                    record.headers,
                    1_700_000_000_000 + 10_000 * number + self._random.randrange(1_000),
                )
                for record in self._records.some(self._random.choice((1, 20, 200)))
            ]
            in_transaction = self._random.random() < 0.4
            opened = self._closed_at_end(
                writer(self.cluster, self._random, self.fresh_name() if in_transaction else "")
            )
            start = self.ends[partition]
            if in_transaction:
                opened.begin()
            opened.write(partition, records)
            self.ends[partition] += len(records)
            if not in_transaction or self._end(opened, {partition}):
                last |= {record.key: offset for offset, record in enumerate(records, start)}
        # What stands in the last segment is not compacted: it is one record, of a key of its own.
        last[b"the last"] = self.ends[partition]
        final = Record(b"", b"the last", timestamp=1_800_000_000_000)
        ConfluentWriter(self.cluster, self._random).write(partition, [final])
        self.ends[partition] += 1
        kept = sorted(last.values())
        assert len(kept) < self.ends[partition]
        await_until(lambda: self._offsets(partition) == kept)

    def _offsets(self, partition: TopicPartition) -> list[int]:
        found = self._read({partition: self.ends[partition]}, LEVELS[0])
        return [row.offset for row in found[partition]]

    def _create(self, partitions: int, config: dict[str, str]) -> list[TopicPartition]:
        name = self.fresh_name()
        self.cluster.create_topic(name, partitions, config=_ANY_TIME | config)
        created = [TopicPartition(name, number) for number in range(partitions)]
        self.ends.update(dict.fromkeys(created, 0))
        return created

    def _writer(self) -> Writer:
        match self._random.randrange(5):
            case 0 | 1:
                return ConfluentWriter(self.cluster, self._random)
            case 2 | 3:
                return self._closed_at_end(KafkaPythonWriter(self.cluster, self._random))
            case _:
                return SinkWriter(self.cluster, self._random, self.spark)

    def _write(self, writer: Writer, partition: TopicPartition, size: int) -> None:
        writer.write(partition, self._records.some(size))
        self.ends[partition] += size

    def _closed_at_end(self, opened: C) -> C:
        self._open.callback(opened.close)
        return opened

    def _await_ends(self, levels: Sequence[str] = LEVELS) -> None:
        """Wait for control records, which a broker writes after it has answered."""
        for level in levels:
            expected = {_theirs(part): end for part, end in self.ends_for(level).items()}
            await_until(partial(self._are_latest, expected, level))

    def _are_latest(self, expected: dict[ClientPartition, int], level: str) -> bool:
        asked = dict.fromkeys(expected, OffsetSpec.LATEST)
        answers = self._admin.list_partition_offsets(asked, isolation_level=level)
        return {partition: answer.offset for partition, answer in answers.items()} == expected

    def _read(self, ends: dict[TopicPartition, int], level: str) -> dict[TopicPartition, list[Row]]:
        found: dict[TopicPartition, list[Row]] = {partition: [] for partition in ends}
        consumer = self._judges[level]
        assigned = [_theirs(partition) for partition in ends]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)

        def is_read() -> bool:
            for records in consumer.poll(timeout_ms=100, max_records=10_000).values():
                for record in records:
                    found[TopicPartition(record.topic, record.partition)].append(_row(record))
            return all(
                consumer.position(_theirs(partition)) >= end for partition, end in ends.items()
            )

        await_until(is_read, 2 * _SECONDS)
        return found


def _consumer(cluster: KafkaCluster, level: str) -> Any:
    return KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        isolation_level=level,
        enable_auto_commit=False,
        auto_offset_reset="none",
    )


def _row(record: Any) -> Row:
    return Row(
        record.key,
        record.value,
        record.topic,
        record.partition,
        record.offset,
        record.timestamp * 1_000,
        record.timestamp_type,
        tuple(record.headers) or None,
    )


def _theirs(partition: TopicPartition) -> ClientPartition:
    return ClientPartition(partition.topic, partition.partition)
