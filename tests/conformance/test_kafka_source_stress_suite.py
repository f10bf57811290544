"""KafkaSourceStressSuite, and KafkaSourceStressForDontFailOnDataLossSuite."""

import random
import time

import pytest

from pyspark_kafka.testing import KafkaWorld

from .churn import Churn
from .live_queries import LiveQueries
from .peer import Held, peer
from .sources import with_client
from .start_offsets import write

OPTIONS = {"failOnDataLoss": "false", "fetchOffset__numRetries": "10"}


class Stress:
    """A stream under random changes; no number is written twice, and none may be missed."""

    def __init__(self, world: KafkaWorld, queries: LiveQueries, prefix: str) -> None:
        self._world = world
        self._queries = queries
        self._prefix = prefix
        self._chance = random.Random(5)  # noqa: S311  # the same run each time
        self._sizes: dict[str, int] = {}
        self._running = True
        self._created = 0
        self._next = 1_000
        self.read: list[int] = []

    def create(self) -> None:
        topic = f"{self._prefix}-{self._created}"
        self._created += 1
        self._sizes[topic] = self._chance.randint(1, 6)
        self._world.create(topic, self._sizes[topic])

    def write(self, *numbers: int) -> None:
        topic = self._chance.choice(list(self._sizes))
        for number in numbers:
            write(self._world, topic, self._chance.randrange(self._sizes[topic]), number)

    def step(self) -> None:
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
            self._queries.await_numbers(self.read)

    def end(self) -> None:
        if not self._running:
            self._turn()
        self._queries.await_numbers(self.read)

    def _turn(self) -> None:
        if self._running:
            self._queries.stop()
        else:
            self._queries.start()
        self._running = not self._running

    def _delete(self, topic: str) -> None:
        # What it has is read before, so that nothing is lost.
        self._queries.await_numbers(self.read)
        self._world.delete_topic(topic)
        del self._sizes[topic]

    def _add_partitions(self, topic: str) -> None:
        self._sizes[topic] += self._chance.randint(1, 6)
        self._world.add_partitions(topic, self._sizes[topic])


@peer("KafkaSourceStressSuite", "stress test with multiple topics and partitions", Held.SPARK)
@pytest.mark.parametrize("client", ["confluent"])
def test_stress_test_with_multiple_topics_and_partitions(live, world):
    prefix = world.fresh_name()
    queries = live.queries(
        lambda open_: open_(subscribePattern=f"{prefix}-.*", startingOffsets="latest", **OPTIONS),
        [with_client(world.client)],
    )
    stress = Stress(world, queries, prefix)
    for _ in range(5):
        stress.create()
        stress.write(*range(101, 106))
    queries.start()
    queries.settle()
    for _ in range(20):
        stress.step()
    stress.end()


@peer(
    "KafkaSourceStressForDontFailOnDataLossSuite",
    "stress test for failOnDataLoss=false",
    Held.SPARK,
)
def test_stress_test_for_fail_on_data_loss_false(live, world):
    churn = Churn(world, world.fresh_name())
    churn.begin()
    queries = live.queries(
        lambda open_: open_(
            subscribePattern=churn.pattern,
            fetchOffset__retryIntervalMs="100",
            kafkaConsumer__pollTimeoutMs="1000",
            **OPTIONS,
        ),
        [with_client(world.client)],
    )
    # A batch takes a while, so that more changes between two.
    queries.start(lambda _numbers: time.sleep(0.1))
    for marks in churn.steps():
        queries.await_some_numbers(marks)
    queries.stop()
    [numbers] = queries.each(lambda one: one.rows()).values()
    assert len(numbers) == len(set(numbers))
    assert churn.kept <= set(numbers) < set(range(churn.written))
