"""The contract suites of ``LagExporter`` and ``ProgressListener``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from ..domain.continuous.progress import (
    EpochProgress,
    LatencyHistogram,
    QueryIdentity,
    TaskProgress,
)
from ..domain.lag.lag import QueryLag, SourceLag
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..ports.clock import Deadline
from ..ports.lag import LagExporter, ProgressListener, QueryReports
from .fixtures import required_fixture
from .world import PATIENCE_S

Report = Callable[[QueryIdentity, int], None]
Seen = Callable[[QueryIdentity], "int | None"]


def _query(query_id: str = "query", *, run: int = 1, is_named: bool = True) -> QueryIdentity:
    name = f"name of {query_id}" if is_named else None
    return QueryIdentity(query_id, f"run {run} of {query_id}", name)


class _QueryReportsContract:
    """The contract of all reports of queries: a report is a query and a number here."""

    forgets_ended_queries: ClassVar[bool] = True
    """Whether the reports of an ended query are no longer observed; a log keeps them."""

    max_seconds: ClassVar[float] = PATIENCE_S / 3
    """How long it may take until a report is observed: it may be queued."""

    numbers: ClassVar[tuple[int, ...]]
    """The numbers of reports of one query, one after another."""

    @pytest.fixture(autouse=True)
    def _closing(self, reports: QueryReports) -> Iterator[None]:
        """Close the reports after each test, perhaps for a second time."""
        yield
        reports.close()

    def test_each_report_replaces_the_last(self, report: Report, seen: Seen) -> None:
        """The report of a batch replaces the previous batch's, also if it is the same."""
        assert seen(_query()) is None
        for number in self.numbers:
            report(_query(), number)
            self._await(seen, _query(), number)

    def test_each_query_has_its_reports(self, report: Report, seen: Seen) -> None:
        """The report of one query does not change another query's."""
        queries = {_query("one"): 5, _query("other"): 80, _query("third"): 900}
        for query, number in queries.items():
            report(query, number)
        for query, number in queries.items():
            self._await(seen, query, number)

    def test_a_query_needs_no_name(self, report: Report, seen: Seen) -> None:
        """The reports of a query without a name are taken."""
        report(_query(is_named=False), 4)
        self._await(seen, _query(is_named=False), 4)

    def test_queries_end_independently(
        self, reports: QueryReports, report: Report, seen: Seen
    ) -> None:
        """An ended query is forgotten; another's report stays, and is replaced further."""
        one, other = _query("one"), _query("other")
        for query in (one, other):
            report(query, 7)
            self._await(seen, query, 7)
        reports.query_ended("one", one.run_id)
        self._await(seen, one, None if self.forgets_ended_queries else 7)
        assert seen(other) == 7
        report(other, 22)
        self._await(seen, other, 22)

    def test_the_end_of_an_earlier_run_is_not_that_of_a_later_one(
        self, reports: QueryReports, report: Report, seen: Seen
    ) -> None:
        """A query may have started again when the end of its last run is reported."""
        earlier, later, other = _query(run=1), _query(run=2), _query("other")
        report(earlier, 7)
        report(later, 22)
        reports.query_ended("query", earlier.run_id)
        # A queue has taken the end when it has taken the report that follows.
        report(other, 3)
        self._await(seen, other, 3)
        self._await(seen, later, 22)

    def test_a_query_that_has_ended_may_start_again(
        self, reports: QueryReports, report: Report, seen: Seen
    ) -> None:
        """The reports of its next run are taken."""
        report(_query(run=1), 7)
        reports.query_ended("query", _query(run=1).run_id)
        report(_query(run=2), 22)
        self._await(seen, _query(run=2), 22)

    def test_a_query_may_end_without_a_report(
        self, reports: QueryReports, report: Report, seen: Seen
    ) -> None:
        """The end of a run without reports is taken, also twice."""
        report(_query(), 7)
        for _ in range(2):
            reports.query_ended("never seen", "run")
        self._await(seen, _query(), 7)

    def test_closing_twice_is_allowed(self, reports: QueryReports, report: Report) -> None:
        """A second call of close has no effect."""
        report(_query(), 7)
        reports.close()
        reports.close()

    def _await(self, seen: Seen, query: QueryIdentity, number: int | None) -> None:
        deadline = Deadline.after(self.max_seconds)
        deadline.poll(lambda: seen(query) == number, 0.01)
        assert seen(query) == number


def _lag(query: QueryIdentity, total: int) -> QueryLag:
    """Return a lag of two sources, and of two partitions in one: 2, and the rest."""
    orders = [TopicPartition("orders", number) for number in (0, 1)]
    payments = TopicPartition("payments", 0)
    return QueryLag(
        query.query_id,
        query.run_id,
        query.name,
        total,
        1_700_000_000_000 + total,
        {
            "0": SourceLag.in_offsets(dict.fromkeys(orders, 3), {orders[0]: 4, orders[1]: 4}),
            "2": SourceLag.in_offsets({payments: 10}, {payments: 8 + total}),
        },
    )


class LagExporterContract(_QueryReportsContract):
    """The contract of ``LagExporter``; a subclass overrides ``exporter`` and ``observed``."""

    numbers = (7, 402, 402, 3, 2)

    exporter = required_fixture("Return the exporter under test.")
    observed = required_fixture(
        "Return a function that returns the total lag that was last exported for a query. "
        "It takes a lag of the query, and looks where the exporter exports to. The total is summed "
        "over sources and partitions; ``None`` if nothing is exported."
    )

    @pytest.fixture
    def reports(self, exporter: LagExporter) -> QueryReports:
        """Return the exporter."""
        return exporter

    @pytest.fixture
    def report(self, exporter: LagExporter) -> Report:
        """Return a function that exports a lag."""
        return lambda query, total: exporter.export(_lag(query, total))

    @pytest.fixture
    def seen(self, observed: Callable[[QueryLag], int | None]) -> Seen:
        """Return a function that returns the total lag of a query."""
        return lambda query: observed(_lag(query, 2))

    def test_a_query_needs_no_partitions(
        self, exporter: LagExporter, observed: Callable[[QueryLag], int | None]
    ) -> None:
        """The lag of a query without partitions can be exported."""
        empty = QueryLag("other", "run", None, 0, 0, {"0": SourceLag.of([])})
        exporter.export(empty)
        assert not observed(empty)


def _progress(query: QueryIdentity, epoch: int, *, rows: int = 3) -> EpochProgress:
    partition = TopicPartition("t", 0)
    return EpochProgress(
        query=query,
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


class ProgressListenerContract(_QueryReportsContract):
    """The contract of ``ProgressListener``; a subclass overrides ``listener`` and ``observed``."""

    numbers = (0, 1, 1, 10)

    listener = required_fixture("Return the listener under test.")
    observed = required_fixture(
        "Return a function that returns the epoch of a query's last progress that was taken. "
        "It looks where the listener passes progress to; ``None`` if nothing is there."
    )

    @pytest.fixture
    def reports(self, listener: ProgressListener) -> QueryReports:
        """Return the listener."""
        return listener

    @pytest.fixture
    def report(self, listener: ProgressListener) -> Report:
        """Return a function that reports the progress of an epoch."""
        return lambda query, epoch: listener.progressed(_progress(query, epoch))

    @pytest.fixture
    def seen(self, observed: Seen) -> Seen:
        """Return a function that returns the last epoch of a query."""
        return observed

    def test_a_query_needs_no_rows(self, listener: ProgressListener, observed: Seen) -> None:
        """A query may have no rows, and no broker that knows its lag."""
        query = _query(is_named=False)
        listener.progressed(_progress(query, 5, rows=0))
        listener.progressed(_progress(query, 6))
        self._await(observed, query, 6)

    def test_queries_report_from_threads_of_their_own(
        self, listener: ProgressListener, observed: Seen
    ) -> None:
        """Two threads may call at the same time."""
        errors: list[Exception] = []
        queries = (_query("one"), _query("other"))

        def report(query: QueryIdentity) -> None:
            try:
                for epoch in range(100):
                    listener.progressed(_progress(query, epoch))
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
