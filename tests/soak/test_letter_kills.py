"""Workers of a query with dead letters are killed."""

import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.dead_letter import DeadLetter
from pyspark_kafka.testing import KafkaWorld, Record, await_until
from pyspark_kafka.testing.world import COMMITTED
from verification.soak import letter_points
from verification.soak.driver_process import DriverProcess
from verification.soak.letter_points import LetterPoint
from verification.soak.processes import kill
from verification.soak.trap import Trap

PROGRAM: Final = Path(__file__).parent / "programs" / "run_letters.py"
PARTITIONS: Final = 2
RECORDS: Final = 800
BATCH: Final = 200
BAD_EVERY: Final = 7
SECONDS: Final = 120.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes"),
    pytest.mark.timeout(480),
]


@pytest.fixture
def world(fresh_name, kafka):
    world = KafkaWorld("kafka-python", fresh_name, kafka)
    yield world
    world.close()


@pytest.fixture
def directory():
    directory = Path(tempfile.mkdtemp(prefix="letters-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def test_each_bad_record_has_a_letter_and_each_good_one_a_row(world, directory):
    """Wherever a worker dies on the way of a letter: rows are there once, letters at least once."""
    source, bad = produce(world)
    target, letters = world.topic(PARTITIONS), world.topic(PARTITIONS)
    driver = DriverProcess(PROGRAM, directory, letter_points.install(directory))
    trap = Trap(directory)
    trap.arm(LetterPoint.WRITING)
    try:
        driver.launch(settings_of(world, directory, source, target, letters))
        for point in (*LetterPoint, *LetterPoint):  # one round for each client
            trap.arm(point)
            await_until(lambda: not trap.is_armed or driver.has_ended(), SECONDS)
            assert not trap.is_armed, driver.last_words()
        await_until(lambda: bool(task_workers(driver)), SECONDS)
        kill(random.choice(task_workers(driver)))  # noqa: S311  # any of them
        assert driver.wait(SECONDS) == 0, driver.last_words()
        said = re.search(r"starts: (\d+)", driver.log())
        assert said is not None
        assert int(said[1]) > 1
    finally:
        driver.kill()
    good = Counter(number for number in range(RECORDS) if number % BAD_EVERY)
    assert numbers_in(world, target) == good
    assert origins_in(world, letters, source) == bad


def task_workers(driver: DriverProcess) -> list[int]:
    return [worker.pid for worker in driver.workers() if worker.is_daemon]


def produce(world: KafkaWorld) -> tuple[str, set[tuple[int, int]]]:
    """Write numbers, some of which are none; return their topic, and where the bad ones are."""
    topic, bad = world.topic(PARTITIONS), set()
    for partition in range(PARTITIONS):
        records = []
        for offset in range(RECORDS // PARTITIONS):
            number = offset * PARTITIONS + partition
            if number % BAD_EVERY:
                records.append(Record(b'{"number": %d}' % number))
            else:
                records.append(Record(b"number %d" % number))
                bad.add((partition, offset))
        world.produce(TopicPartition(topic, partition), records)
    return topic, bad


def settings_of(
    world: KafkaWorld, directory: Path, source: str, target: str, letters: str
) -> dict[str, dict[str, str]]:
    read = {
        **world.addresses,
        "subscribe": source,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(BATCH),
        "valueFormat": "json",
        "valueSchema": "number BIGINT",
        "deadLetterTopic": letters,
    }
    write = {
        **world.addresses,
        "client": world.client,
        "topic": target,
        "deliveryGuarantee": "exactly-once",
        "checkpointLocation": str(directory / "checkpoint"),
    }
    return {"read": read, "write": write}


def numbers_in(world: KafkaWorld, topic: str) -> Counter[int]:
    """Return how often each number is in a topic, as consumers of committed records see it."""
    partitions = (TopicPartition(topic, number) for number in range(PARTITIONS))
    rows = (row for one in partitions for row in world.records(one, **COMMITTED))
    return Counter(int(row["value"]) for row in rows)


def origins_in(world: KafkaWorld, letters: str, source: str) -> set[tuple[int, int]]:
    """Return the partitions and offsets of a topic's letters, which are of records of another."""
    found = set()
    for number in range(PARTITIONS):
        for row in world.records(TopicPartition(letters, number)):
            headers = [(pair["key"], pair["value"]) for pair in row["headers"]]
            letter = DeadLetter.from_headers(headers)
            assert letter is not None
            assert (letter.origin.topic, letter.reason) == (source, "MALFORMED")
            found.add((letter.origin.partition, letter.offset))
    return found
