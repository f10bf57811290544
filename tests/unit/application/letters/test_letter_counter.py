import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final
from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.application.lag.worker import LagWorker, QueryProgress, SourceProgress
from pyspark_kafka.application.letters.dead_letter_log import DeadLetterLog, LetterCounter
from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.lag.lag import QueryLag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Subscribe
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.dead_letter import TaskIdentity
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.ports.lag import LagExporter
from pyspark_kafka.testing import MemoryWorld, Record
from pyspark_kafka.testing.dead_letters_contract import bad
from pyspark_kafka.testing.writing_contract import keys_of_partition

TOPIC: Final = TopicPartition("letters", 0)


@pytest.fixture
def world():
    world = MemoryWorld()
    world.create("letters", 2)
    return world


def write(world: MemoryWorld, query: str, *reasons: FailureReason) -> None:
    letters = world.container().dead_letters("letters")
    made = bad(*({} for _ in reasons), reasons=reasons)
    letters.write(replace(made, task=TaskIdentity(query)))
    letters.flush()


def counter(
    world: MemoryWorld, topic: str = "letters", clock: Clock | None = None
) -> LetterCounter:
    container = world.container()
    log = DeadLetterLog(container.offset_fetcher(), container.range_read, topic)
    return LetterCounter(log, clock or MemoryClock(), 1_000)


def test_each_query_has_its_letters(world):
    write(world, "a", FailureReason.MALFORMED, FailureReason.BAD_UTF8, FailureReason.MALFORMED)
    write(world, "b", FailureReason.TOO_DEEP)
    world.produce(TOPIC, [Record(b"of another program")])
    counting = counter(world)
    expected = {FailureReason.MALFORMED: 2, FailureReason.BAD_UTF8: 1}
    assert counting.count("a") == BadRecordStats(expected, 3)
    assert counting.count("b") == BadRecordStats({FailureReason.TOO_DEEP: 1}, 1)
    assert counting.count("c") == BadRecordStats()


def test_a_letter_is_counted_once(world):
    counting = counter(world)
    for number in (1, 2, 3):
        write(world, "a", FailureReason.MALFORMED)
        assert counting.count("a").total == counting.count("a").total == number
        for partition in (0, 1):
            world.delete_records(TopicPartition("letters", partition), number)


def test_a_topic_that_was_created_again_is_counted_from_its_start(world):
    """Its end lies before the place that the counter had reached."""
    counting = counter(world)
    write(world, "a", *[FailureReason.MALFORMED] * 3)
    assert counting.count("a").total == 3
    world.delete_topic("letters")
    world.create("letters", 2)
    write(world, "a", FailureReason.BAD_UTF8)
    assert counting.count("a").total == 4


def test_letters_of_kafka_connect_have_no_reason_of_ours(world):
    """Kafka Connect's letters are of connectors, not of queries."""
    names = ("topic", "partition", "offset", "connector.name", "exception.class.name")
    headers = tuple((f"__connect.errors.{name}", b"1") for name in names)
    world.produce(TOPIC, [Record(b"v", headers=headers)])
    assert counter(world).count("1") == BadRecordStats()


def test_a_call_reads_for_a_bounded_time(world):
    letters = world.container().dead_letters("letters")
    for number in (0, 1):
        rows = [{"key": keys_of_partition(number, 2)[0]}] * (number + 1)
        letters.write(replace(bad(*rows), task=TaskIdentity("a")))
    letters.flush()
    hurried = Mock(now_ms=partial(next, count(1_000, 1_000)))
    counting = counter(world, clock=hurried)
    assert [counting.count("a").total for _ in range(3)] == [1, 3, 3]


def progress(bad_records: BadRecordStats | None = None) -> QueryProgress:
    read = PartitionOffsets({TopicPartition("t", 0): 1})
    return QueryProgress("a", "run", None, 0, 0, {"0": SourceProgress(read, read)}, bad_records)


def counting_worker(exporter: LagExporter, world: MemoryWorld, topic: str) -> LagWorker:
    """Return a worker whose thread ends at once when it has nothing to do."""

    @contextmanager
    def counting() -> Iterator[LetterCounter]:
        yield counter(world, topic)

    return LagWorker([exporter], None, idle_seconds=0, open_counter=counting)


def export(world: MemoryWorld, topic: str, bad_records: BadRecordStats | None = None) -> QueryLag:
    """Return what is exported after a batch of query ``a``."""
    exporter = Mock()
    worker = counting_worker(exporter, world, topic)
    worker.progressed(progress(bad_records))
    worker.close()
    [exported] = exporter.export.call_args_list
    lag: QueryLag = exported.args[0]
    return lag


def test_letters_that_expire_while_a_query_is_idle_stay_counted(world):
    """The worker closes its connections then, and its count goes to a counter of Prometheus."""
    exporter = Mock()
    worker = counting_worker(exporter, world, "letters")
    for number in (1, 2):
        write(world, "a", *[FailureReason.MALFORMED] * (4 - number))
        worker.progressed(progress())
        for thread in threading.enumerate():
            if thread.name == "pyspark-kafka-lag":
                thread.join()
        fetcher = world.container().offset_fetcher()
        for partition, end in fetcher.latest(fetcher.partitions(Subscribe(("letters",)))).items():
            world.delete_records(partition, end)
    worker.close()
    totals = [call.args[0].bad_records.total for call in exporter.export.call_args_list]
    assert totals == [3, 5]


def test_the_lag_of_a_query_has_its_letters(world):
    """Those of a continuous query are known from its tasks."""
    write(world, "a", FailureReason.MALFORMED)
    assert export(world, "letters").bad_records == BadRecordStats({FailureReason.MALFORMED: 1}, 1)
    known = BadRecordStats({FailureReason.BAD_UTF8: 7}, 0)
    assert export(world, "letters", known).bad_records == known


def test_lag_is_exported_without_letters_that_cannot_be_read(world, caplog):
    assert export(world, "ghost").bad_records is None
    with pytest.raises(UnknownTopicError) as caught:
        counter(world, "ghost").count("a")
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [f"Dead letters are not counted: {caught.value}"]
