from __future__ import annotations

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.logs import QueryCheckpoint
from pyspark_kafka.application.lag.monitor import LagMonitor, LagSnapshot
from pyspark_kafka.domain.lag.trend import Direction

from ..conftest import Kit, tp


class FakeQuery:
    """The checkpoint of a query, and what watches it."""

    def __init__(self, kit: Kit) -> None:
        self.offsets, self.commits = MemoryMetadataLog(), MemoryMetadataLog()
        checkpoint = QueryCheckpoint(self.offsets, self.commits)
        container = kit.container()
        self.watch = LagMonitor(checkpoint, container.lag_meter(), container.clock())

    def begin(self, batch_id: int, *ends: str) -> None:
        self.offsets.add(batch_id, "\n".join(["v1", "{}", *ends]).encode())

    def commit(self, batch_id: int) -> None:
        self.commits.add(batch_id, b"v1\n{}")


@pytest.fixture
def query(kit: Kit) -> FakeQuery:
    return FakeQuery(kit)


def test_before_the_first_commit(query: FakeQuery) -> None:
    """Nothing is measured, and what is on its way is seen."""
    assert query.watch.snapshot() == LagSnapshot()
    query.begin(0, '{"t":{"0":1}}')
    look = query.watch.snapshot()
    assert look.state.committed is None
    assert look.state.in_flight is not None
    assert (look.sources, look.total, look.gone) == ({}, 0, ())


def test_a_query_of_several_sources(kit: Kit, query: FakeQuery) -> None:
    """Each Kafka source is measured from the end of the committed batch, not of a later one."""
    kit.produce(10)
    query.begin(0, "17", '{"t":{"0":4,"1":0}}', '{"t":{"0":9}}')
    query.commit(0)
    query.begin(1, "18", '{"t":{"0":10,"1":0}}', '{"t":{"0":10}}')
    look = query.watch.snapshot()
    assert {name: lag.lag.total for name, lag in look.sources.items()} == {"1": 6, "2": 1}
    assert (look.total, look.is_exact, look.numbers) == (7, True, (6, 0, 1, 0))
    assert look.state.offsets_in_flight == 7


def test_partitions_that_are_gone_are_named(query: FakeQuery) -> None:
    """A deleted topic is not measured, and is reported."""
    query.begin(0, '{"t":{"0":0},"u":{"3":5}}')
    query.commit(0)
    assert query.watch.snapshot().gone == (tp(3, "u"),)


def test_looks_make_a_trend(kit: Kit, query: FakeQuery) -> None:
    """From look to look the watch sees where the lag goes."""
    kit.produce(100)
    for batch_id, end in enumerate((10, 30, 50)):
        query.begin(batch_id, f'{{"t":{{"0":{end},"1":0}}}}')
        query.commit(batch_id)
        kit.clock.sleep_ms(1_000)
        look = query.watch.snapshot()
    assert (look.trend.direction, look.trend.read) == (Direction.CATCHING_UP, 20.0)
