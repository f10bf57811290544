"""The contract suite of ``ProgressListener``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from ..domain.continuous.messages import TaskProgress
from ..domain.continuous.progress import EpochProgress, LatencyHistogram, QueryIdentity
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..ports.clock import Deadline
from ..ports.lag import ProgressListener

Observed = Callable[[QueryIdentity], "int | None"]


def _query(query_id: str = "query", *, run: int = 1, is_named: bool = True) -> QueryIdentity:
    name = f"name of {query_id}" if is_named else None
    return QueryIdentity(query_id, f"run {run} of {query_id}", name)


def _progress(epoch: int, query: QueryIdentity | None = None, *, rows: int = 3) -> EpochProgress:
    partition = TopicPartition("t", 0)
    return EpochProgress(
        query=query or _query(),
        source="KafkaContinuous[Subscribe[t]]",
        sink="Kafka[totals]",
        epoch=epoch,
        timestamp_ms=1_700_000_000_000,
        duration_ms=1_000,
        start=PartitionOffsets({partition: 2}),
        end=PartitionOffsets({partition: 2 + rows}),
        latest=PartitionOffsets({partition: 2 + rows}) if rows else None,
        work=TaskProgress(rows, rows, LatencyHistogram.of([2] * rows)),
        tasks=1,
        restarts=0,
    )


class ProgressListenerContract:
    """The contract of ``ProgressListener``; a subclass overrides ``listener`` and ``observed``."""

    forgets_ended_queries: ClassVar[bool] = True
    """Whether the progress of an ended query is not observed any more; a log keeps it."""

    max_seconds: ClassVar[float] = 10.0
    """How long it may take until progress is observed: a listener may queue it."""

    @pytest.fixture
    def listener(self) -> ProgressListener:
        """Return the listener under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'listener'")

    @pytest.fixture
    def observed(self, listener: ProgressListener) -> Observed:
        """Return a function that returns the epoch of a query's last progress that was taken.

        It looks where the listener passes progress to; ``None`` if nothing is there.
        """
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'observed'")

    @pytest.fixture(autouse=True)
    def _closing(self, listener: ProgressListener) -> Iterator[None]:
        """Close the listener after each test, perhaps for a second time."""
        yield
        listener.close()

    def test_every_report_is_taken(self, listener: ProgressListener, observed: Observed) -> None:
        """The progress of an epoch replaces the previous epoch's, also if it comes twice."""
        assert observed(_query()) is None
        for epoch in (0, 1, 1, 10):
            listener.progressed(_progress(epoch))
            self._await(observed, _query(), epoch)

    def test_each_query_has_its_progress(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """The progress of one query does not change another query's."""
        queries = {_query("one"): 5, _query("other"): 80, _query("third"): 900}
        for query, epoch in queries.items():
            listener.progressed(_progress(epoch, query))
        for query, epoch in queries.items():
            self._await(observed, query, epoch)

    def test_a_query_needs_no_name_and_no_rows(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """A query may have no name, no rows, and no broker that knows its lag."""
        unnamed = _query(is_named=False)
        listener.progressed(_progress(4, unnamed))
        self._await(observed, unnamed, 4)
        listener.progressed(_progress(5, unnamed, rows=0))
        listener.progressed(_progress(6, unnamed))
        self._await(observed, unnamed, 6)

    def test_queries_end_independently(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """An ended query is forgotten; another's progress stays, and is taken further."""
        one, other = _query("one"), _query("other")
        for query in (one, other):
            listener.progressed(_progress(3, query))
            self._await(observed, query, 3)
        listener.query_ended("one", one.run_id)
        self._await(observed, one, None if self.forgets_ended_queries else 3)
        assert observed(other) == 3
        listener.progressed(_progress(4, other))
        self._await(observed, other, 4)

    def test_the_end_of_an_earlier_run_is_not_that_of_a_later_one(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """A query may have started again when the end of its last run is reported."""
        earlier, later, other = _query(run=1), _query(run=2), _query("other")
        listener.progressed(_progress(3, earlier))
        listener.progressed(_progress(4, later))
        listener.query_ended("query", earlier.run_id)
        # A listener with a queue has taken the end when it has taken what follows.
        listener.progressed(_progress(0, other))
        self._await(observed, other, 0)
        self._await(observed, later, 4)

    def test_a_query_that_has_ended_may_start_again(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """The progress of its next run is taken."""
        listener.progressed(_progress(3, _query(run=1)))
        listener.query_ended("query", _query(run=1).run_id)
        listener.progressed(_progress(4, _query(run=2)))
        self._await(observed, _query(run=2), 4)

    def test_a_query_may_end_without_progress(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """The end of a run without reports is taken, also twice."""
        listener.progressed(_progress(3))
        for _ in range(2):
            listener.query_ended("never seen", "run")
        self._await(observed, _query(), 3)

    def test_queries_report_from_threads_of_their_own(
        self, listener: ProgressListener, observed: Observed
    ) -> None:
        """Two threads may call at the same time."""
        errors: list[Exception] = []
        queries = (_query("one"), _query("other"))

        def report(query: QueryIdentity) -> None:
            try:
                for epoch in range(100):
                    listener.progressed(_progress(epoch, query))
            except Exception as error:  # noqa: BLE001 - raised in the test's thread
                errors.append(error)

        threads = [threading.Thread(target=report, args=(query,)) for query in queries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        for query in queries:
            self._await(observed, query, 99)

    def test_closing_twice_is_allowed(self, listener: ProgressListener) -> None:
        """A second call of close has no effect."""
        listener.progressed(_progress(0))
        listener.close()
        listener.close()

    def _await(self, observed: Observed, query: QueryIdentity, epoch: int | None) -> None:
        deadline = Deadline.after(self.max_seconds)
        deadline.poll(lambda: observed(query) == epoch, 0.01)
        assert observed(query) == epoch
