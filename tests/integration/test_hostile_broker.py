"""Answers that lie: each ends in an error of this library, or is survived."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import pytest

from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.offset_range import OffsetRange
from pyspark_kafka.domain.projection import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing.world import Record, World
from tests.servers.hostile_broker import HostileBroker, Lie, hostile_broker
from tests.servers.lies import FRAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PARTITION: Final = TopicPartition("t", 0)
RECORDS: Final = 30
CLIENTS: Final = pytest.mark.parametrize("client", ["kafka-python", "confluent"])

BOUNDS: Final = {
    "kafka.default.api.timeout.ms": "600",
    "kafka.request.timeout.ms": "300",
    "kafka.retry.backoff.ms": "20",
}
POLL_TIMEOUT: Final = "kafkaConsumer.pollTimeoutMs"


@final
class HostileWorld(World):
    """A cluster of one hostile broker, with short time-outs."""

    def __init__(self, client: str, broker: HostileBroker) -> None:
        super().__init__(client)
        self.broker = broker

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": self.broker.bootstrap_servers, **BOUNDS}

    def topic(self, partitions: int = 1, **config: str) -> str:  # noqa: ARG002
        """Return the topic that there is."""
        return PARTITION.topic

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        """Append records, ten in each batch."""
        self.broker.cluster.append(partition, [record.value or b"" for record in records], 10)


@pytest.fixture
def world(client: str) -> Iterator[HostileWorld]:
    """Yield a cluster that has a partition with some records, and tells no lies yet."""
    with hostile_broker() as broker:
        made = HostileWorld(client, broker)
        made.produce(PARTITION, [Record(b"%d" % number) for number in range(RECORDS)])
        yield made
        made.close()


def read(world: HostileWorld, poll_timeout_ms: int = 10_000) -> list[bytes]:
    """Return the values of the partition's records, read as one range."""
    reader = world.container(**{POLL_TIMEOUT: str(poll_timeout_ms)}).record_reader()
    batches = reader.read(OffsetRange(PARTITION, 0, RECORDS), ALL_COLUMNS)
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def values(count: int = RECORDS) -> list[bytes]:
    """Return the values of the partition's first records."""
    return [b"%d" % number for number in range(count)]


@CLIENTS
@pytest.mark.parametrize("name", ["another correlation id", "cut off", "a reset in the frame"])
def test_a_broken_fetch_is_repeated(world: HostileWorld, name: str) -> None:
    """After an answer that cannot be read, all records are read once and in order."""
    world.broker.lies = (replace(FRAMES[name], api="Fetch", times=1),)
    assert read(world) == values()
    assert world.broker.answered["Fetch"] > 1


@CLIENTS
def test_fetches_that_leave_the_partition_out(world: HostileWorld) -> None:
    """An answer without the partition is no answer, and no end of its records."""

    def leave_out(_: object, response: object) -> None:
        response.responses = []  # type: ignore[attr-defined]

    world.broker.lies = (Lie("Fetch", answer=leave_out),)
    with pytest.raises(PysparkKafkaError, match=r"\[KAFKA_"):
        read(world, poll_timeout_ms=300)
