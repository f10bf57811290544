import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.application.lag.meter import LagMeter
from pyspark_kafka.application.lag.worker import (
    LagFeed,
    LagWorker,
    QueryProgress,
    SourceProgress,
)
from pyspark_kafka.bootstrap.plugins import PluginError
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.lag.lag import QueryLag
from pyspark_kafka.domain.newest import MAX_ITEMS
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.lag import LagExporter
from tests.slowness import bound_s

from ..conftest import Kit

SECONDS = bound_s(20)
NAME = "pyspark-kafka-lag"


class Notes(LagExporter):
    """Keeps its calls; can be made to wait and to fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.told: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.was_called = threading.Event()
        self._fails = fails

    def export(self, lag: QueryLag) -> None:
        assert (lag.query_id, lag.name, lag.timestamp_ms) == ("id", "name", 17)
        self._note(f"{lag.run_id} {lag.batch_id}: {lag.lag.total}{'' if lag.is_exact else '?'}")

    def query_ended(self, query_id: str, run_id: str) -> None:
        self._note(f"{query_id} {run_id} ended")

    def close(self) -> None:
        self._note("closed")

    def _note(self, text: str) -> None:
        self.told.append(text)
        self.was_called.set()
        assert self.may_go_on.wait(SECONDS)
        if self._fails:
            raise ZeroDivisionError


def offsets(offset: int) -> PartitionOffsets:
    return PartitionOffsets({TopicPartition("t", 0): offset})


def progress(
    batch_id: int, consumed: int = 3, latest: int | None = 5, run: str = "run"
) -> QueryProgress:
    source = SourceProgress(offsets(consumed), None if latest is None else offsets(latest))
    return QueryProgress("id", run, "name", batch_id, 17, {"0": source})


def export(worker: LagWorker, notes: Notes, report: QueryProgress) -> None:
    """Report the progress of a query, and wait until its lag is exported."""
    notes.was_called.clear()
    worker.progressed(report)
    assert notes.was_called.wait(SECONDS)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def cluster_watermarks(cluster: MemoryCluster, *, is_there: bool) -> Callable[..., object]:
    """Return how a cluster answers, or fails to."""

    def fail(*_: object, **__: object) -> object:
        raise BrokerUnreachableError("memory", 10.0)

    return partial(MemoryCluster.watermarks, cluster) if is_there else fail


class Metering:
    """Yields a meter of a cluster in memory, or fails."""

    def __init__(self, kit: Kit) -> None:
        self.error: Exception | None = None
        self.lent = self.given_back = 0
        self._container = kit.container({"kafka.isolation.level": "read_committed"})

    @contextmanager
    def __call__(self) -> Iterator[LagMeter]:
        if self.error is not None:
            raise self.error
        self.lent += 1
        yield self._container.lag_meter()
        self.given_back += 1


@pytest.fixture
def metering(kit):
    """Return what meters five records, followed by two aborted ones and a marker."""
    kit.produce(5)
    aborted = kit.cluster.begin_transaction()
    for _ in range(2):
        kit.cluster.produce("t", b"v", transaction=aborted)
    kit.cluster.end_transaction(aborted, commit=False)
    return Metering(kit)


def test_lag_is_exported_after_each_batch():
    notes = Notes()
    worker = LagWorker([notes], None)
    export(worker, notes, progress(0))
    worker.progressed(progress(1, consumed=5))
    worker.query_ended("id", "run")
    worker.close()
    assert notes.told == ["run 0: 2?", "run 1: 0", "id run ended", "closed"]
    assert threads() == []


def test_a_worker_without_news_has_no_thread():
    notes = Notes()
    worker = LagWorker([notes], None, idle_seconds=0.01)
    assert threads() == []
    for batch_id in range(2):
        worker.progressed(progress(batch_id))
        for thread in threads():
            thread.join(SECONDS)
    assert threads() == []
    assert notes.told == ["run 0: 2?", "run 1: 2?"]
    worker.close()


def test_of_what_waits_only_the_newest_is_kept():
    """A slow exporter neither holds Spark up nor fills the memory."""
    notes = Notes()
    notes.may_go_on.clear()
    worker = LagWorker([notes], None)
    export(worker, notes, progress(0))
    for batch_id in range(1, 1_000):
        worker.progressed(progress(batch_id))
    worker.progressed(progress(7, run="other"))
    notes.may_go_on.set()
    worker.close()
    assert notes.told == ["run 0: 2?", "run 999: 2?", "other 7: 2?", "closed"]


def test_a_failing_exporter_harms_no_other(caplog):
    failing, notes = Notes(fails=True), Notes()
    worker = LagWorker([failing, notes], None)
    worker.progressed(progress(0))
    worker.query_ended("id", "run")
    worker.close()
    assert failing.told == notes.told == ["run 0: 2?", "id run ended", "closed"]
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["A lag exporter failed; the query continues"] * 3


def test_records_are_counted_with_a_meter(metering):
    notes = Notes()
    worker = LagWorker([notes], metering)
    export(worker, notes, progress(0, consumed=3, latest=None))
    worker.progressed(progress(1, consumed=5, latest=5))
    worker.close()
    assert notes.told == ["run 0: 2", "run 1: 0", "closed"]
    assert (metering.lent, metering.given_back) == (1, 1)


@pytest.mark.parametrize(
    "error",
    [BrokerUnreachableError("b:1", 10.0), PluginError("x:y", "it is none"), KeyError("a bug")],
)
def test_what_cannot_be_counted_is_given_in_offsets(metering, error, caplog):
    """Spark's offsets are enough; the failure is logged once, until it is over."""
    notes = Notes()
    metering.error = error
    worker = LagWorker([notes], metering)
    for batch_id in range(2):
        export(worker, notes, progress(batch_id))
    metering.error = None
    worker.progressed(progress(2))
    worker.close()
    assert notes.told == ["run 0: 2?", "run 1: 2?", "run 2: 2", "closed"]
    [record] = caplog.records
    expected = f"Lag is in offsets until records can be counted: {error}"
    assert record.getMessage() == expected


def test_any_error_of_counting_leaves_the_worker_alive(kit, metering, caplog, monkeypatch):
    """One that is no error of this library's has its traceback in the log."""
    notes = Notes()
    worker = LagWorker([notes], metering)
    monkeypatch.setattr(kit.cluster, "watermarks", lambda *_, **__: 1 / 0)
    for batch_id in range(2):
        export(worker, notes, progress(batch_id))
    worker.close()
    assert notes.told == ["run 0: 2?", "run 1: 2?", "closed"]
    [record] = caplog.records
    assert record.exc_info is not None


def test_an_exporter_may_close_its_worker():
    """An exporter runs in the worker's thread, which cannot wait for itself."""
    closed = threading.Event()

    class Closing(Notes):
        def export(self, lag: QueryLag) -> None:
            super().export(lag)
            worker.close()
            closed.set()

    worker = LagWorker([Closing()], None)
    feed = worker.feed(None)
    worker.progressed(progress(0))
    assert closed.wait(SECONDS)
    assert len(list(feed.follow(SECONDS))) == 1


def test_each_time_that_counting_fails_is_logged(kit, metering, caplog, monkeypatch):
    notes = Notes()
    worker = LagWorker([notes], metering)
    for batch_id, is_there in enumerate((False, False, True, False)):
        answers = cluster_watermarks(kit.cluster, is_there=is_there)
        monkeypatch.setattr(kit.cluster, "watermarks", answers)
        export(worker, notes, progress(batch_id))
    worker.close()
    assert notes.told == ["run 0: 2?", "run 1: 2?", "run 2: 2", "run 3: 2?", "closed"]
    assert len(caplog.records) == 2


def test_a_source_of_which_nothing_is_known_is_left_out():
    notes = Notes()
    worker = LagWorker([notes], None)
    worker.progressed(progress(0, latest=None))
    worker.close()
    assert notes.told == ["closed"]


def test_a_feed_gives_what_comes_and_ends_with_its_run():
    worker = LagWorker([], None)
    known = worker.feed(None)
    worker.progressed(progress(0))
    assert next(known.follow(SECONDS)).batch_id == 0
    feed = worker.feed("run")
    worker.progressed(progress(5, run="other"))
    worker.query_ended("id", "other")
    worker.progressed(progress(1))
    worker.query_ended("id", "run")
    assert [lag.batch_id for lag in feed.follow(SECONDS)] == [0, 1]
    assert [lag.batch_id for lag in worker.feed("run").follow(SECONDS)] == [0, 1]
    worker.close()
    assert {(lag.run_id, lag.batch_id) for lag in known.follow(SECONDS)} == {
        ("other", 5),
        ("run", 1),
    }


def test_a_feed_ends_with_its_own_run_alone():
    one, every = LagFeed("run"), LagFeed(None)
    for feed in (one, every):
        feed.query_ended("other")
    one.put(QueryLag("id", "run", None, 0, 0, {}))
    assert next(one.follow(0)).batch_id == 0
    ended = LagFeed("run")
    ended.query_ended("run")
    assert list(ended.follow(None)) == []
    every.put(QueryLag("id", "run", None, 1, 0, {}))
    assert [lag.batch_id for lag in every.follow(0)] == [1]


def test_a_feed_ends_when_its_time_has_passed():
    assert list(LagWorker([], None).feed(None).follow(0.01)) == []


def test_a_feed_keeps_the_newest_only():
    worker = LagWorker([], None)
    feed, other = worker.feed("run"), worker.feed("run")
    for batch_id in range(MAX_ITEMS + 50):
        worker.progressed(progress(batch_id))
        while next(other.follow(SECONDS)).batch_id != batch_id:
            pass
    worker.close()
    assert [lag.batch_id for lag in feed.follow(SECONDS)] == list(range(50, MAX_ITEMS + 50))


def test_nothing_is_taken_after_the_end():
    notes = Notes()
    worker = LagWorker([notes], None)
    worker.close()
    worker.progressed(progress(0))
    assert list(worker.feed("run").follow(None)) == []
    assert threads() == []
    assert notes.told == ["closed"]
