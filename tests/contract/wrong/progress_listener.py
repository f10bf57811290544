"""Listeners that break a promise of ``ProgressListener``."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.ports.lag import ProgressListener
from pyspark_kafka.testing import ProgressListenerContract as Suite

from .adapter import PortFaults, wrong_with

if TYPE_CHECKING:
    from pyspark_kafka.domain.continuous.progress import EpochProgress, QueryIdentity


class Keeping(ProgressListener):
    """Keeps the newest progress of each query that runs."""

    def __init__(self) -> None:
        self.reports: dict[str, EpochProgress] = {}

    def progressed(self, progress: EpochProgress) -> None:
        self.reports[progress.query.query_id] = progress

    def query_ended(self, query_id: str, run_id: str) -> None:
        if query_id in self.reports and self.reports[query_id].query.run_id == run_id:
            del self.reports[query_id]

    def epoch(self, query: QueryIdentity) -> int | None:
        """Return the epoch of a query's progress."""
        found = self.reports.get(query.query_id)
        return None if found is None else found.epoch


class Swallows(Keeping):
    """Does nothing."""

    def progressed(self, progress: EpochProgress) -> None:
        pass


class TakesFirstQuery(Keeping):
    """Takes the progress of the first query only."""

    def progressed(self, progress: EpochProgress) -> None:
        if not self.reports or progress.query.query_id in self.reports:
            super().progressed(progress)


class TakesFirstEpoch(Keeping):
    """Takes the progress of a query once."""

    def progressed(self, progress: EpochProgress) -> None:
        self.reports.setdefault(progress.query.query_id, progress)


class NeedsName(Keeping):
    """Takes the progress of queries with a name only."""

    def progressed(self, progress: EpochProgress) -> None:
        if progress.query.name is not None:
            super().progressed(progress)


class NeedsRows(Keeping):
    """Fails if no broker knows the lag."""

    def progressed(self, progress: EpochProgress) -> None:
        assert progress.lag is not None
        super().progressed(progress)


class NeverForgets(Keeping):
    """Keeps the progress of an ended query."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        pass


class ForgetsAll(Keeping):
    """Forgets every query at the end of one."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        self.reports.clear()


class ForgetsLaterRun(Keeping):
    """Forgets a query that has started again at the end of the run before."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        self.reports.pop(query_id, None)


class RemembersTheEnd(Keeping):
    """Takes no progress of a query that has ended, even if it starts again."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: set[str] = set()

    def progressed(self, progress: EpochProgress) -> None:
        if progress.query.query_id not in self._ended:
            super().progressed(progress)

    def query_ended(self, query_id: str, run_id: str) -> None:
        super().query_ended(query_id, run_id)
        self._ended.add(query_id)


class KnowsEveryQuery(Keeping):
    """Fails at the end of a query that it does not know."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        del self.reports[query_id]


class OneThread(Keeping):
    """Fails in every thread but the one that made it."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def progressed(self, progress: EpochProgress) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError("another thread")
        super().progressed(progress)


class ClosesOnce(Keeping):
    """Fails when it is closed twice."""

    def close(self) -> None:
        del self.reports


def _suite(adapter: type[Keeping], seconds: float = 0.1) -> type:
    class Held(Suite):
        max_seconds = seconds

        @pytest.fixture
        def listener(self):
            return adapter()

        @pytest.fixture
        def observed(self, listener):
            return listener.epoch

    return Held


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Keeping, 10),
    (
        *_wrong(Suite.test_each_report_replaces_the_last, Swallows),
        *_wrong(Suite.test_each_query_has_its_reports, TakesFirstQuery),
        *_wrong(Suite.test_each_report_replaces_the_last, TakesFirstEpoch),
        *_wrong(Suite.test_a_query_needs_no_name, NeedsName),
        *_wrong(Suite.test_a_query_needs_no_rows, NeedsRows),
        *_wrong(Suite.test_queries_end_independently, NeverForgets),
        *_wrong(Suite.test_queries_end_independently, ForgetsAll),
        *_wrong(Suite.test_the_end_of_an_earlier_run_is_not_that_of_a_later_one, ForgetsLaterRun),
        *_wrong(Suite.test_a_query_that_has_ended_may_start_again, RemembersTheEnd),
        *_wrong(Suite.test_a_query_may_end_without_a_report, KnowsEveryQuery),
        *_wrong(Suite.test_queries_report_from_threads_of_their_own, OneThread),
        *_wrong(Suite.test_closing_twice_is_allowed, ClosesOnce),
    ),
)
