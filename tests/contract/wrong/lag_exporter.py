from dataclasses import replace
from typing import Final

import pytest

from pyspark_kafka.domain.lag.lag import QueryLag, SourceLag
from pyspark_kafka.ports.lag import LagExporter
from pyspark_kafka.testing import LagExporterContract as Suite

from .adapter import Faults


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
        found = self.lags.get(lag.query_id)
        return None if found is None else found.lag.total


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


wrong: Final = Faults(Keeping, _suite, _suite(Keeping, 10))


@wrong(Suite.test_each_report_replaces_the_last, "export")
def does_nothing(self, lag):
    pass


@wrong(Suite.test_each_query_has_its_reports, "export")
def exports_the_lag_of_the_first_query_only(self, lag):
    if not self.lags or lag.query_id in self.lags:
        Keeping.export(self, lag)


@wrong(Suite.test_each_query_has_its_reports, "export")
def forgets_a_query_for_the_next_one(self, lag):
    self.lags.clear()
    Keeping.export(self, lag)


@wrong(Suite.test_each_report_replaces_the_last, "export")
def exports_the_lag_of_a_query_once(self, lag):
    self.lags.setdefault(lag.query_id, lag)


@wrong(Suite.test_each_report_replaces_the_last, "export")
def keeps_the_largest_lag_of_a_query(self, lag):
    if lag.lag.total > (self.total(lag) or 0):
        Keeping.export(self, lag)


@wrong(Suite.test_each_report_replaces_the_last, "export")
def exports_no_lag_if_there_is_none(self, lag):
    if lag.lag.by_partition and not all(lag.lag.by_partition.values()):
        return
    Keeping.export(self, lag)


@wrong(Suite.test_each_report_replaces_the_last)
class AddsUp(Keeping):
    """Adds the lag of a batch to the previous ones."""

    def __init__(self):
        super().__init__()
        self._totals: dict[str, int] = {}

    def export(self, lag):
        super().export(lag)
        self._totals[lag.query_id] = self._totals.get(lag.query_id, 0) + lag.lag.total

    def total(self, lag):
        return self._totals.get(lag.query_id)


@wrong(Suite.test_each_query_has_its_reports, "export")
def exports_the_first_source_of_a_query_only(self, lag):
    Keeping.export(self, replace(lag, sources=dict(list(lag.sources.items())[:1])))


@wrong(Suite.test_each_query_has_its_reports, "export")
def exports_the_first_partition_of_each_source_only(self, lag):
    firsts = {name: SourceLag.of(each.partitions[:1]) for name, each in lag.sources.items()}
    Keeping.export(self, replace(lag, sources=firsts))


@wrong(Suite.test_a_query_needs_no_name, "export")
def exports_queries_with_a_name_only(self, lag):
    if lag.name is not None:
        Keeping.export(self, lag)


@wrong(Suite.test_a_query_needs_no_partitions, "export")
def fails_for_a_query_without_partitions(self, lag):
    max(lag.lag.by_partition.values())
    Keeping.export(self, lag)


@wrong(Suite.test_queries_end_independently, "query_ended")
def keeps_the_lag_of_an_ended_query(self, query_id, run_id):
    pass


@wrong(Suite.test_queries_end_independently, "query_ended")
def forgets_every_query_at_the_end_of_one(self, query_id, run_id):
    self.lags.clear()


@wrong(Suite.test_the_end_of_an_earlier_run_is_not_that_of_a_later_one, "query_ended")
def forgets_a_query_that_has_started_again_at_the_end_of_the_run_before(self, query_id, run_id):
    self.lags.pop(query_id, None)


@wrong(Suite.test_a_query_that_has_ended_may_start_again)
class RemembersTheEnd(Keeping):
    """Exports a query that has ended no more, even if it starts again."""

    def __init__(self):
        super().__init__()
        self._ended: set[str] = set()

    def export(self, lag):
        if lag.query_id not in self._ended:
            super().export(lag)

    def query_ended(self, query_id, run_id):
        super().query_ended(query_id, run_id)
        self._ended.add(query_id)


@wrong(Suite.test_a_query_may_end_without_a_report, "query_ended")
def fails_at_the_end_of_a_query_that_it_does_not_know(self, query_id, run_id):
    del self.lags[query_id]


wrong.fails_when_closed_twice(Suite.test_closing_twice_is_allowed)
