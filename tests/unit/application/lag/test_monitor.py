import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.logs import CheckpointLogs
from pyspark_kafka.application.lag.monitor import (
    TIMEOUT,
    UNEXPECTED,
    CheckpointReport,
    CheckpointWatch,
    LagMonitor,
    LagSnapshot,
    WatchedCheckpoint,
)
from pyspark_kafka.domain.lag.trend import Direction
from pyspark_kafka.testing.world import await_until

from ..conftest import Kit, tp

LONG = 60.0
SHORT = 0.05
BATCH = '{"t":{"0":4,"1":0}}'


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

    def begin(self, batch_id: int, *ends: str, notes: str = '{"batchTimestampMs":1500}') -> None:
        self.offsets.add(batch_id, "\n".join(["v1", notes, *ends]).encode())

    def commit(self, batch_id: int) -> None:
        self.commits.add(batch_id, b"v1\n{}")

    def complete(self, **given: str) -> None:
        self.begin(7, BATCH, **given)
        self.commit(7)

    def query_id(self) -> str:
        self.measurements += 1
        self.answers.wait()
        if self.error:
            raise self.error
        return f"id of {self.name}"

    @contextmanager
    def monitor(self) -> Iterator[LagMonitor]:
        container = self.kit.container()
        checkpoint = CheckpointLogs(self.offsets, self.commits)
        yield LagMonitor(checkpoint, container.lag_meter(), container.clock())
        self.is_closed = True


@pytest.fixture
def query(kit):
    return Checkpoint(kit, "query")


def look(query: Checkpoint) -> LagSnapshot:
    with query.monitor() as monitor:
        return monitor.snapshot()


def test_before_the_first_commit_nothing_is_measured(query):
    assert look(query) == LagSnapshot()
    query.begin(0, '{"t":{"0":1}}')
    seen = look(query)
    assert seen.state.committed is None
    assert seen.state.in_flight is not None
    assert (seen.sources, seen.total, seen.gone) == ({}, 0, ())


def test_each_kafka_source_is_measured_from_the_end_of_the_committed_batch(kit, query):
    kit.produce(10)
    query.begin(0, "17", '{"t":{"0":4,"1":0}}', '{"t":{"0":9}}')
    query.commit(0)
    query.begin(1, "18", '{"t":{"0":10,"1":0}}', '{"t":{"0":10}}')
    seen = look(query)
    assert {name: lag.lag.total for name, lag in seen.sources.items()} == {"1": 6, "2": 1}
    assert (seen.total, seen.is_exact, seen.numbers) == (7, True, (6, 0, 1, 0))
    assert seen.state.offsets_in_flight == 7


def test_partitions_that_are_gone_are_named(query):
    query.begin(0, '{"t":{"0":0},"u":{"3":5}}')
    query.commit(0)
    assert look(query).gone == (tp(3, "u"),)


def test_looks_make_a_trend(kit, query):
    kit.produce(100)
    with query.monitor() as monitor:
        for batch_id, end in enumerate((10, 30, 50)):
            query.begin(batch_id, f'{{"t":{{"0":{end},"1":0}}}}')
            query.commit(batch_id)
            kit.clock.sleep_ms(1_000)
            seen = monitor.snapshot()
    assert (seen.trend.direction, seen.trend.read) == (Direction.CATCHING_UP, 20.0)


@pytest.fixture
def orders(kit):
    kit.produce(10)
    checkpoint = Checkpoint(kit, "orders")
    yield checkpoint
    checkpoint.answers.set()


def reports(watch: CheckpointWatch) -> dict[str, CheckpointReport]:
    return {report.name: report for report in watch.measure()}


def test_each_checkpoint_has_a_report(kit, orders):
    orders.complete()
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
    assert failure.condition == "KAFKA_NO_CHECKPOINT"
    assert "There is no checkpoint of a streaming query" in failure.text
    watch.close()
    assert orders.is_closed
    assert empty.is_closed


def test_a_query_without_a_commit_has_no_lag(orders):
    """Its first batch is in flight, which is no failure."""
    orders.begin(0, BATCH)
    report = reports(CheckpointWatch([orders.watched], LONG))["orders"]
    assert (report.lag, report.failure) == (None, None)


def test_an_old_checkpoint_has_no_times(orders):
    orders.complete(notes="")
    lag = reports(CheckpointWatch([orders.watched], LONG))["orders"].lag
    assert lag is not None
    assert lag.timestamp_ms == 0


def test_an_unexpected_error_is_a_report(orders):
    """A bug in a plug-in, say, does not end the exporter, and may pass."""
    orders.complete()
    orders.error = RuntimeError("a bug\nin a plug-in")
    watch = CheckpointWatch([orders.watched], LONG)
    failure = reports(watch)["orders"].failure
    assert failure is not None
    assert (failure.condition, failure.text) == (UNEXPECTED, "RuntimeError: a bug in a plug-in")
    orders.error = None
    assert reports(watch)["orders"].failure is None


def test_a_storage_that_hangs_is_reported_at_the_deadline(kit, orders):
    """Others are not held up, and no second measurement is started beside the one that hangs."""
    other = Checkpoint(kit, "other")
    for checkpoint in (orders, other):
        checkpoint.complete()
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


def test_what_came_between_two_rounds_is_dropped(orders):
    """A report between two rounds is older than what the next round measures."""
    orders.complete()
    orders.answers.clear()
    watch = CheckpointWatch([orders.watched], SHORT)
    assert reports(watch)["orders"].failure is not None
    orders.answers.set()
    measured = orders.watched._last
    assert measured is not None
    await_until(measured.done)
    orders.kit.produce(5)
    lag = None
    while lag is None:
        lag = reports(watch)["orders"].lag
    assert lag.lag.total == 11


def test_what_came_between_two_rounds_counts_if_the_next_measurement_is_late(orders, monkeypatch):
    """Measurements that always take longer than a round's time-out are reported all the same."""
    orders.complete()
    measure = LagMonitor.snapshot

    def snapshot(monitor: LagMonitor) -> LagSnapshot:
        found = measure(monitor)
        orders.answers.wait()
        return found

    monkeypatch.setattr(LagMonitor, "snapshot", snapshot)
    watch = CheckpointWatch([orders.watched], SHORT)
    orders.answers.clear()
    first = reports(watch)["orders"]
    measured = orders.watched._last
    assert measured is not None
    orders.answers.set()
    await_until(measured.done)
    orders.answers.clear()
    orders.kit.produce(5)
    second, third = (reports(watch)["orders"] for _ in range(2))
    assert second.lag is not None
    assert second.lag.lag.total == 6
    for late in (first, third):
        assert late.failure is not None
        assert late.failure.condition == TIMEOUT
