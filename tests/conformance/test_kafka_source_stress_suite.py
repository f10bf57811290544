"""KafkaSourceStressSuite, and KafkaSourceStressForDontFailOnDataLossSuite."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import KafkaWorld, await_until

from .churn import Churn
from .numbered_streams import SECONDS, OpenStreams, Streams
from .peer import Held, peer
from .start_offsets import write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pyspark_kafka.brokers import KafkaCluster

OPTIONS = {"failOnDataLoss": "false", "fetchOffset__numRetries": "10"}


@pytest.fixture
def streams(spark: SparkSession, kafka: KafkaCluster, tmp_path: Path) -> OpenStreams:
    """Return a function to run streams."""
    return OpenStreams(spark, kafka, tmp_path)


class Stress:
    """A stream under random changes; no number is written twice, and none may be missed."""

    def __init__(self, world: KafkaWorld, run: Streams, prefix: str) -> None:
        self._world = world
        self._run = run
        self._prefix = prefix
        self._chance = random.Random(5)  # noqa: S311  # the same run each time
        self._sizes: dict[str, int] = {}
        self._running = True
        self._created = 0
        self._next = 1_000
        self.read: list[int] = []

    def create(self) -> None:
        """Create a topic of a new name."""
        topic = f"{self._prefix}-{self._created}"
        self._created += 1
        self._sizes[topic] = self._chance.randint(1, 6)
        self._world.create(topic, self._sizes[topic])

    def write(self, *numbers: int) -> None:
        """Write numbers to random partitions of a random topic."""
        topic = self._chance.choice(list(self._sizes))
        for number in numbers:
            write(self._world, topic, self._chance.randrange(self._sizes[topic]), number)

    def step(self) -> None:
        """Change the topics or stop or start the query; write; sometimes look at what was read."""
        match self._chance.randrange(6):
            case 0:
                self.create()
            case 1 if self._running and len(self._sizes) > 1:
                self._delete(self._chance.choice(list(self._sizes)[1:]))
            case 2:
                self._add_partitions(self._chance.choice(list(self._sizes)))
            case 3:
                self._turn()
        numbers = range(self._next, self._next + self._chance.randint(1, 10))
        self._next = numbers.stop
        self.write(*numbers)
        self.read += numbers
        if self._running and self._chance.random() < 0.4:
            self._run.await_numbers(self.read)

    def end(self) -> None:
        """Look at what was read at last."""
        if not self._running:
            self._turn()
        self._run.await_numbers(self.read)

    def _turn(self) -> None:
        if self._running:
            self._run.stop()
        else:
            self._run.start()
        self._running = not self._running

    def _delete(self, topic: str) -> None:
        # What it has is read before, so that nothing is lost.
        self._run.await_numbers(self.read)
        self._world.delete_topic(topic)
        del self._sizes[topic]

    def _add_partitions(self, topic: str) -> None:
        self._sizes[topic] += self._chance.randint(1, 6)
        self._world.add_partitions(topic, self._sizes[topic])


@peer("KafkaSourceStressSuite", "stress test with multiple topics and partitions", Held.SPARK)
@pytest.mark.parametrize("client", ["confluent"])
def test_stress_test_with_multiple_topics_and_partitions(
    streams: OpenStreams, world: KafkaWorld
) -> None:
    """While topics and partitions come and go and a query restarts, all is read once."""
    prefix = world.fresh_name()
    opened = streams.ours(
        world.client, subscribePattern=f"{prefix}-.*", startingOffsets="latest", **OPTIONS
    )
    with streams(opened) as run:
        stress = Stress(world, run, prefix)
        for _ in range(5):
            stress.create()
            stress.write(*range(101, 106))
        run.start()
        run.settle()
        for _ in range(30):
            stress.step()
        stress.end()


@peer(
    "KafkaSourceStressForDontFailOnDataLossSuite",
    "stress test for failOnDataLoss=false",
    Held.SPARK,
)
def test_stress_test_for_fail_on_data_loss_false(streams: OpenStreams, world: KafkaWorld) -> None:
    """While topics and records vanish, the query reads the rest, once, and does not fail."""
    churn = Churn(world, world.fresh_name())
    churn.begin()
    stream = streams.ours(
        world.client,
        subscribePattern=churn.pattern,
        startingOffsets="earliest",
        fetchOffset__retryIntervalMs="100",
        kafkaConsumer__pollTimeoutMs="1000",
        **OPTIONS,
    )

    def are_read(marks: set[int]) -> bool:
        return marks <= set(stream.numbers) or not stream.query.isActive

    with streams(stream) as run:
        # A batch takes a while, so that more changes between two.
        run.start(lambda _numbers: time.sleep(0.1))
        for marks in churn.steps():
            await_until(partial(are_read, marks), SECONDS)
            assert stream.query.isActive, stream.outcome
    numbers = stream.numbers
    assert len(numbers) == len(set(numbers))
    assert churn.kept <= set(numbers) < set(range(churn.written))
