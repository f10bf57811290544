"""Where a query starts, and what it reads from there on, while topics change and it restarts."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record

from .peer import Held, peer

BASE: Final = "KafkaSourceSuiteBase"
PARTITIONS: Final = 5
FIRST, SECOND = 1_000, 2_000
"""Times of records, in milliseconds since the epoch."""

STRATEGIES: Final[Mapping[str, Callable[[str], dict[str, str]]]] = {
    "assign": lambda topic: {"assign": json.dumps({topic: list(range(PARTITIONS))})},
    "subscribing topic by name": lambda topic: {"subscribe": topic},
    "subscribing topic by pattern": lambda topic: {
        "subscribePattern": f"{topic.removesuffix('-suffix')}-.*"
    },
}

NUMBERS: Final = {
    0: (-20, -21, -22),
    1: (-10, -11, -12),
    2: (0, 1, 2),
    3: (10, 11, 12),
    4: (20, 21, 22),
}

AT_FIRST: Final = {0: (-20,), 1: (-10,), 2: (0, 1), 3: (10, 11), 4: (20, 21, 22)}
AT_SECOND: Final = {0: (-21, -22), 1: (-11, -12), 2: (2,), 3: (12,)}
"""No record of partition 4 has the second time."""


@dataclass(frozen=True, slots=True)
class Start:
    """Starting options, the numbers that a topic has before, and those that a query then reads.

    The numbers are by time and partition.
    """

    options: Callable[[str], dict[str, str]]
    before: Mapping[int, Mapping[int, tuple[int, ...]]]
    first: tuple[int, ...]


def at_timestamps(topic: str, *times: int) -> dict[str, str]:
    return {"startingOffsetsByTimestamp": json.dumps({topic: dict(enumerate(times))})}


STARTS: Final[Mapping[str, Start]] = {
    "from latest offsets": Start(
        lambda _topic: {"startingOffsets": "latest"}, {FIRST: {0: (-1,)}}, ()
    ),
    "from earliest offsets": Start(
        lambda _topic: {"startingOffsets": "earliest"}, {FIRST: {0: (1,), 2: (2, 3)}}, (1, 2, 3)
    ),
    "from specific offsets": Start(
        lambda topic: {
            "startingOffsets": json.dumps({topic: {"0": -2, "1": -1, "2": 0, "3": 1, "4": 2}})
        },
        {FIRST: NUMBERS},
        (-20, -21, -22, 0, 1, 2, 11, 12, 22),
    ),
    "from specific timestamps": Start(
        lambda topic: at_timestamps(topic, SECOND, SECOND, SECOND, SECOND, FIRST),
        {FIRST: AT_FIRST, SECOND: AT_SECOND},
        (-21, -22, -11, -12, 2, 12, 20, 21, 22),
    ),
    "from global timestamp per topic": Start(
        lambda _topic: {"startingTimestamp": str(SECOND)},
        {FIRST: AT_FIRST, SECOND: {**AT_SECOND, 4: (23, 24)}},
        (-21, -22, -11, -12, 2, 12, 23, 24),
    ),
}


def covers_all_starts(held: Held) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test as the counterpart of the 30 tests that the JVM connector makes in a loop."""

    def marked(test: Callable[..., None]) -> Callable[..., None]:
        for strategy, start, flag in itertools.product(STRATEGIES, STARTS, ("true", "false")):
            test = peer(BASE, f"{strategy} {start} (failOnDataLoss: {flag})", held)(test)
        return test

    return marked


def write(
    world: KafkaWorld, topic: str, partition: int, *numbers: int, timestamp: int = SECOND
) -> None:
    records = [Record(b"%d" % number, timestamp=timestamp) for number in numbers]
    world.produce(TopicPartition(topic, partition), records)


def filled(world: KafkaWorld, start: Start) -> str:
    topic = f"{world.fresh_name()}-suffix"
    world.create(topic, PARTITIONS)
    for timestamp, partitions in start.before.items():
        for partition, numbers in partitions.items():
            write(world, topic, partition, *numbers, timestamp=timestamp)
    return topic


class Run(Protocol):
    """Queries that run one after another from one checkpoint."""

    def start(self) -> None:
        """Start the next query."""

    def stop(self) -> None:
        """Stop the running query."""

    def settle(self) -> None:
        """Wait until the query has read all that there is."""

    def await_numbers(self, wanted: Iterable[int]) -> None:
        """Wait until the output of all queries is these numbers, each once."""


def assert_all_is_read_once(
    run: Run, world: KafkaWorld, topic: str, first: Iterable[int], partitions: int
) -> None:
    """Start a query that reads ``first``, and restart it without new records, and with some.

    Further records are written while it runs, the last to ``partitions``; some are new.
    """
    read = [*first]

    def add(numbers: Mapping[int, tuple[int, ...]]) -> None:
        for partition, values in numbers.items():
            write(world, topic, partition, *values)
            read.extend(values)

    run.start()
    run.settle()
    run.await_numbers(read)
    add({0: (1_001, 1_002), 4: (1_003,)})
    run.await_numbers(read)
    run.stop()
    run.start()
    run.settle()
    run.await_numbers(read)
    run.stop()
    add({0: (1_004,), 3: (1_005, 1_006)})
    run.start()
    run.await_numbers(read)
    if partitions > PARTITIONS:
        world.add_partitions(topic, partitions)
    add({4: (1_007,), partitions - 2: (1_008,), partitions - 1: (1_009, 1_010)})
    run.await_numbers(read)
    run.stop()
