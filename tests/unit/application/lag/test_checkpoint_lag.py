"""Rounds of measurements of several checkpoints."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.logs import QueryCheckpoint
from pyspark_kafka.application.lag.checkpoint_lag import (
    TIMEOUT,
    UNEXPECTED,
    CheckpointReport,
    CheckpointWatch,
    WatchedCheckpoint,
)
from pyspark_kafka.application.lag.monitor import LagMonitor
from pyspark_kafka.testing.world import await_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..conftest import Kit

LONG = 60.0
SHORT = 0.05
BATCH = b'v1\n{"batchTimestampMs":1500}\n{"t":{"0":4,"1":0}}'


class Checkpoint:
    """A checkpoint whose storage hangs or fails as a test says."""

    def __init__(self, kit: Kit, name: str) -> None:
        self.kit = kit
        self.name = name
        self.offsets, self.commits = MemoryMetadataLog(), MemoryMetadataLog()
        self.answers = threading.Event()
        self.answers.set()
        self.error: Exception | None = None
        self.measurements = 0
        self.is_closed = False
        self.watched = WatchedCheckpoint(name, self.monitor, self.query_id)

    def commit(self, content: bytes = BATCH) -> None:
        self.offsets.add(7, content)
        self.commits.add(7, b"v1\n{}")

    def query_id(self) -> str:
        self.measurements += 1
        self.answers.wait()
        if self.error:
            raise self.error
        return f"id of {self.name}"

    @contextmanager
    def monitor(self) -> Iterator[LagMonitor]:
        container = self.kit.container()
        checkpoint = QueryCheckpoint(self.offsets, self.commits)
        yield LagMonitor(checkpoint, container.lag_meter(), container.clock())
        self.is_closed = True


@pytest.fixture
def orders(kit: Kit) -> Iterator[Checkpoint]:
    kit.produce(10)
    checkpoint = Checkpoint(kit, "orders")
    yield checkpoint
    checkpoint.answers.set()


def reports(watch: CheckpointWatch) -> dict[str, CheckpointReport]:
    return {report.name: report for report in watch.measure()}


def test_each_checkpoint_has_a_report(kit: Kit, orders: Checkpoint) -> None:
    """One that fails has its condition, and does not affect the other."""
    orders.commit()
    empty = Checkpoint(kit, "empty")
    watch = CheckpointWatch([orders.watched, empty.watched], LONG)
    found = reports(watch)
    lag = found["orders"].lag
    assert lag is not None
    assert (lag.query_id, lag.name, lag.batch_id, lag.timestamp_ms) == (
        "id of orders",
        "orders",
        7,
        1_500,
    )
    assert lag.lag.total == 6
    assert found["empty"].lag is None
    failure = found["empty"].failure
    assert failure is not None
    assert failure.condition == "KAFKA_METADATA_LOG"
    assert "There is no checkpoint of a streaming query" in failure.text
    watch.close()
    assert orders.is_closed
    assert empty.is_closed


def test_a_query_without_a_commit_has_no_lag(orders: Checkpoint) -> None:
    """Its first batch is in flight, which is no failure."""
    orders.offsets.add(0, BATCH)
    report = reports(CheckpointWatch([orders.watched], LONG))["orders"]
    assert (report.lag, report.failure) == (None, None)


def test_an_old_checkpoint_has_no_times(orders: Checkpoint) -> None:
    orders.commit(b'v1\n\n{"t":{"0":4,"1":0}}')
    lag = reports(CheckpointWatch([orders.watched], LONG))["orders"].lag
    assert lag is not None
    assert lag.timestamp_ms == 0


def test_an_unexpected_error_is_a_report(orders: Checkpoint) -> None:
    """A bug in a plug-in, say, does not end the exporter, and may pass."""
    orders.commit()
    orders.error = RuntimeError("a bug\nin a plug-in")
    watch = CheckpointWatch([orders.watched], LONG)
    failure = reports(watch)["orders"].failure
    assert failure is not None
    assert (failure.condition, failure.text) == (UNEXPECTED, "RuntimeError: a bug in a plug-in")
    orders.error = None
    assert reports(watch)["orders"].failure is None


def test_a_storage_that_hangs_is_reported_at_the_deadline(kit: Kit, orders: Checkpoint) -> None:
    """Others are not held up, and no second measurement is started beside the one that hangs."""
    other = Checkpoint(kit, "other")
    for checkpoint in (orders, other):
        checkpoint.commit()
    orders.answers.clear()
    watch = CheckpointWatch([orders.watched, other.watched], SHORT)
    for _ in range(2):
        await_until(lambda: reports(watch)["other"].failure is None)
        late = reports(watch)["orders"].failure
        assert late is not None
        assert late.condition == TIMEOUT
    assert orders.measurements == 1
    watch.close()
    assert not orders.is_closed
    assert other.is_closed


def test_what_came_between_two_rounds_is_dropped(orders: Checkpoint) -> None:
    """It is older than what the next round measures."""
    orders.commit()
    orders.answers.clear()
    watch = CheckpointWatch([orders.watched], SHORT)
    assert reports(watch)["orders"].failure is not None
    orders.answers.set()
    await_until(lambda: not watch._results.empty())
    orders.kit.produce(5)
    lag = None
    while lag is None:
        lag = reports(watch)["orders"].lag
    assert lag.lag.total == 11
