"""Which partition has accepted no record for too long."""

from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from pyspark_kafka.adapters.confluent import awaited_records
from pyspark_kafka.adapters.confluent.awaited_records import AwaitedRecords

TIMEOUT_S: Final = 10.0


@pytest.fixture
def clock(monkeypatch):
    """Return a clock whose time tests set."""
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(awaited_records, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


@pytest.fixture
def records():
    return AwaitedRecords(TIMEOUT_S)


def rows(**partitions: list[int]) -> Any:
    """Return rows by topic, with the partitions of each."""
    numbers = [number for each in partitions.values() for number in each]
    return SimpleNamespace(
        topics=list(partitions),
        topic_ends=np.cumsum([len(each) for each in partitions.values()]),
        partitions=np.array(numbers, np.int32),
    )


def test_each_acknowledgement_of_a_partition_gives_it_time_again(records, clock):
    records.add(rows(a=[0, 0, 0], b=[1]), 0, 4)
    clock.now += 9
    records.acknowledge("a", 0, 1)
    records.acknowledge("b", 1, 1)
    clock.now += 9
    assert records.stalled() is None
    clock.now += 2
    assert records.stalled() == ("a", 0)


def test_a_partition_has_no_limit_while_no_record_waits(records, clock):
    records.add(rows(a=[0, 0]), 0, 2)
    records.acknowledge("a", 0, 2)
    clock.now += 99
    assert records.stalled() is None
    records.add(rows(a=[0]), 0, 1)
    clock.now += 9
    assert records.stalled() is None


def test_only_rows_that_were_queued_wait(records, clock):
    sent = rows(a=[0, 1], b=[2])
    records.add(sent, 0, 1)
    clock.now += 9
    records.acknowledge("a", 0, 1)
    records.add(sent, 1, 3)
    clock.now += 9
    assert records.stalled() is None
    records.acknowledge("a", 1, 1)
    clock.now += 2
    assert records.stalled() == ("b", 2)


def test_records_whose_partition_librdkafka_chooses_are_those_of_their_topic(records, clock):
    records.add(rows(a=[-1, -1, -1]), 0, 3)
    clock.now += 9
    records.acknowledge("a", 5, 1)
    clock.now += 9
    assert records.stalled() is None
    clock.now += 2
    assert records.stalled() == ("a", -1)
    records.acknowledge("a", 6, 2)
    clock.now += 1
    assert records.stalled() is None
