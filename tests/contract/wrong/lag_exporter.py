"""Exporters that break a promise of ``LagExporter``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from pyspark_kafka.domain.lag.lag import QueryLag, SourceLag
from pyspark_kafka.ports.lag import LagExporter
from pyspark_kafka.testing import LagExporterContract as Suite

from .adapter import PortFaults, wrong_with


class Keeping(LagExporter):
    """Keeps the newest lag of each query that runs."""

    def __init__(self) -> None:
        self.lags: dict[str, QueryLag] = {}

    def export(self, lag: QueryLag) -> None:
        self.lags[lag.query_id] = lag

    def query_ended(self, query_id: str, run_id: str) -> None:
        if query_id in self.lags and self.lags[query_id].run_id == run_id:
            del self.lags[query_id]

    def total(self, lag: QueryLag) -> int | None:
        """Return the exported lag of a query."""
        found = self.lags.get(lag.query_id)
        return None if found is None else found.lag.total


class ExportsNothing(Keeping):
    """Does nothing."""

    def export(self, lag: QueryLag) -> None:
        pass


class ExportsFirstQuery(Keeping):
    """Exports the lag of the first query only."""

    def export(self, lag: QueryLag) -> None:
        if not self.lags or lag.query_id in self.lags:
            super().export(lag)


class ExportsLastQuery(Keeping):
    """Forgets a query for the next one."""

    def export(self, lag: QueryLag) -> None:
        self.lags.clear()
        super().export(lag)


class ExportsFirstBatch(Keeping):
    """Exports the lag of a query once."""

    def export(self, lag: QueryLag) -> None:
        self.lags.setdefault(lag.query_id, lag)


class ExportsLargestLag(Keeping):
    """Keeps the largest lag of a query."""

    def export(self, lag: QueryLag) -> None:
        if lag.lag.total > (self.total(lag) or 0):
            super().export(lag)


class ExportsSomeLag(Keeping):
    """Exports no lag if there is none."""

    def export(self, lag: QueryLag) -> None:
        if lag.lag.by_partition and not all(lag.lag.by_partition.values()):
            return
        super().export(lag)


class AddsUp(Keeping):
    """Adds the lag of a batch to the previous ones."""

    def __init__(self) -> None:
        super().__init__()
        self._totals: dict[str, int] = {}

    def export(self, lag: QueryLag) -> None:
        super().export(lag)
        self._totals[lag.query_id] = self._totals.get(lag.query_id, 0) + lag.lag.total

    def total(self, lag: QueryLag) -> int | None:
        return self._totals.get(lag.query_id)


class ExportsFirstSource(Keeping):
    """Exports the first source of a query only."""

    def export(self, lag: QueryLag) -> None:
        super().export(replace(lag, sources=dict(list(lag.sources.items())[:1])))


class ExportsFirstPartitions(Keeping):
    """Exports the first partition of each source only."""

    def export(self, lag: QueryLag) -> None:
        firsts = {name: SourceLag.of(each.partitions[:1]) for name, each in lag.sources.items()}
        super().export(replace(lag, sources=firsts))


class NeedsName(Keeping):
    """Exports queries with a name only."""

    def export(self, lag: QueryLag) -> None:
        if lag.name is not None:
            super().export(lag)


class NeedsPartitions(Keeping):
    """Fails for a query without partitions."""

    def export(self, lag: QueryLag) -> None:
        max(lag.lag.by_partition.values())
        super().export(lag)


class NeverForgets(Keeping):
    """Keeps the lag of an ended query."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        pass


class ForgetsAll(Keeping):
    """Forgets every query at the end of one."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        self.lags.clear()


class ForgetsLaterRun(Keeping):
    """Forgets a query that has started again at the end of the run before."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        self.lags.pop(query_id, None)


class RemembersTheEnd(Keeping):
    """Exports a query that has ended no more, even if it starts again."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: set[str] = set()

    def export(self, lag: QueryLag) -> None:
        if lag.query_id not in self._ended:
            super().export(lag)

    def query_ended(self, query_id: str, run_id: str) -> None:
        super().query_ended(query_id, run_id)
        self._ended.add(query_id)


class KnowsEveryQuery(Keeping):
    """Fails at the end of a query that it does not know."""

    def query_ended(self, query_id: str, run_id: str) -> None:
        del self.lags[query_id]


class ClosesOnce(Keeping):
    """Fails when it is closed twice."""

    def close(self) -> None:
        del self.lags


def _suite(adapter: type[Keeping], seconds: float = 0.1) -> type:
    class Held(Suite):
        max_seconds = seconds

        @pytest.fixture
        def exporter(self):
            return adapter()

        @pytest.fixture
        def observed(self, exporter):
            return exporter.total

    return Held


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Keeping, 10),
    (
        *_wrong(Suite.test_each_report_replaces_the_last, ExportsNothing),
        *_wrong(Suite.test_each_query_has_its_reports, ExportsFirstQuery),
        *_wrong(Suite.test_each_query_has_its_reports, ExportsLastQuery),
        *_wrong(Suite.test_each_report_replaces_the_last, ExportsFirstBatch),
        *_wrong(Suite.test_each_report_replaces_the_last, ExportsLargestLag),
        *_wrong(Suite.test_each_report_replaces_the_last, ExportsSomeLag),
        *_wrong(Suite.test_each_report_replaces_the_last, AddsUp),
        *_wrong(Suite.test_each_query_has_its_reports, ExportsFirstSource),
        *_wrong(Suite.test_each_query_has_its_reports, ExportsFirstPartitions),
        *_wrong(Suite.test_a_query_needs_no_name, NeedsName),
        *_wrong(Suite.test_a_query_needs_no_partitions, NeedsPartitions),
        *_wrong(Suite.test_queries_end_independently, NeverForgets),
        *_wrong(Suite.test_queries_end_independently, ForgetsAll),
        *_wrong(Suite.test_the_end_of_an_earlier_run_is_not_that_of_a_later_one, ForgetsLaterRun),
        *_wrong(Suite.test_a_query_that_has_ended_may_start_again, RemembersTheEnd),
        *_wrong(Suite.test_a_query_may_end_without_a_report, KnowsEveryQuery),
        *_wrong(Suite.test_closing_twice_is_allowed, ClosesOnce),
    ),
)
