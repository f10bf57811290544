"""What every ``MetadataLog`` owes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.ports.metadata_log import MetadataLog


@pytest.fixture(params=[MemoryMetadataLog])
def log(request: pytest.FixtureRequest) -> MetadataLog:
    """Give each log in turn."""
    made: MetadataLog = request.param()
    return made


def test_what_was_added_is_given_back(log: MetadataLog) -> None:
    """A batch's bytes are given back as they were, whatever they are."""
    assert log.add(0, b"\x00v1\n{}")
    assert log.add(7, b"")
    assert (log.get(0), log.get(7)) == (b"\x00v1\n{}", b"")


def test_an_empty_log_has_nothing(log: MetadataLog) -> None:
    """What was never written is not there."""
    assert log.get(0) is None
    assert log.latest() is None


def test_a_batch_is_written_once(log: MetadataLog) -> None:
    """The second writer is told that it was not the first, and changes nothing."""
    assert log.add(3, b"first")
    assert not log.add(3, b"second")
    assert log.get(3) == b"first"


def test_the_latest_batch_is_the_highest(log: MetadataLog) -> None:
    """Batches are ordered by number, not by when they were written or how they are spelled."""
    for batch_id in (9, 10, 2):
        log.add(batch_id, str(batch_id).encode())
    assert log.latest() == (10, b"10")


def test_purging_keeps_the_threshold_and_what_is_above(log: MetadataLog) -> None:
    """Batches below the threshold are gone, and a second purge changes nothing."""
    for batch_id in range(5):
        log.add(batch_id, b"x")
    for _ in range(2):
        log.purge(3)
        assert [log.get(batch_id) is not None for batch_id in range(5)] == [False] * 3 + [True] * 2


def test_of_many_writers_one_wins(log: MetadataLog) -> None:
    """Of concurrent writers of one batch exactly one is told that it was first."""
    with ThreadPoolExecutor(50) as pool:
        won = list(pool.map(lambda number: log.add(0, b"%d" % number), range(50)))
    assert won.count(True) == 1
    assert log.get(0) == b"%d" % won.index(True)
