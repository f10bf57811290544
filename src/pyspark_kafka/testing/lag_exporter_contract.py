"""The contract suite of ``LagExporter``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from ..domain.lag.lag import QueryLag, SourceLag
from ..domain.topic_partition import TopicPartition
from ..ports.lag import LagExporter

Observed = Callable[[QueryLag], "int | None"]


def _lag(
    batch_id: int,
    query_id: str = "query",
    *,
    run: int = 1,
    behind: int = 5,
    is_named: bool = True,
) -> QueryLag:
    """Return a lag of two sources, and of two partitions in one: ``behind`` + 2 in all."""
    orders = [TopicPartition("orders", number) for number in (0, 1)]
    payments = TopicPartition("payments", 0)
    return QueryLag(
        query_id,
        f"run {run} of {query_id}",
        f"name of {query_id}" if is_named else None,
        batch_id,
        1_700_000_000_000 + batch_id,
        {
            "0": SourceLag.in_offsets(dict.fromkeys(orders, 3), {orders[0]: 4, orders[1]: 4}),
            "2": SourceLag.in_offsets({payments: 10}, {payments: 10 + behind}),
        },
    )


class LagExporterContract:
    """The contract of ``LagExporter``; a subclass overrides ``exporter`` and ``observed``."""

    forgets_ended_queries: ClassVar[bool] = True
    """Whether the lag of an ended query is not observed any more; a log keeps it."""

    @pytest.fixture
    def exporter(self) -> LagExporter:
        """Return the exporter under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'exporter'")

    @pytest.fixture
    def observed(self, exporter: LagExporter) -> Observed:
        """Return a function that returns the total lag that was last exported for a query.

        It takes a lag of the query, and looks where the exporter exports to. The total is summed
        over sources and partitions; ``None`` if nothing is exported.
        """
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'observed'")

    @pytest.fixture(autouse=True)
    def _closing(self, exporter: LagExporter) -> Iterator[None]:
        """Close the exporter after each test, perhaps for a second time."""
        yield
        exporter.close()

    def test_the_lag_of_each_batch_is_exported(
        self, exporter: LagExporter, observed: Observed
    ) -> None:
        """The lag of a batch replaces the previous batch's, also if it is smaller or none."""
        assert observed(_lag(0)) is None
        for batch_id, behind in enumerate((5, 400, 1, 0)):
            exporter.export(_lag(batch_id, behind=behind))
            assert observed(_lag(batch_id)) == behind + 2

    def test_a_lag_may_be_exported_twice(self, exporter: LagExporter, observed: Observed) -> None:
        """A second export of the same lag does not add to the first one."""
        for _ in range(2):
            exporter.export(_lag(0))
            assert observed(_lag(0)) == 7

    def test_each_query_has_its_lag(self, exporter: LagExporter, observed: Observed) -> None:
        """The lag of one query does not change another query's."""
        queries = {"one": 5, "other": 80, "third": 900}
        for query_id, behind in queries.items():
            exporter.export(_lag(0, query_id, behind=behind))
        for query_id, behind in queries.items():
            assert observed(_lag(0, query_id)) == behind + 2

    def test_a_query_needs_no_name_and_no_partitions(
        self, exporter: LagExporter, observed: Observed
    ) -> None:
        """The lag of a query without a name, or without partitions, can be exported."""
        exporter.export(_lag(0, is_named=False))
        assert observed(_lag(0, is_named=False)) == 7
        empty = QueryLag("other", "run", None, 0, 0, {"0": SourceLag.of([])})
        exporter.export(empty)
        assert not observed(empty)

    def test_queries_end_independently(self, exporter: LagExporter, observed: Observed) -> None:
        """An ended query is forgotten; another's lag stays, and is exported further."""
        exporter.export(_lag(0, "one"))
        exporter.export(_lag(0, "other"))
        exporter.query_ended("one", "run 1 of one")
        assert observed(_lag(0, "one")) == (None if self.forgets_ended_queries else 7)
        assert observed(_lag(0, "other")) == 7
        exporter.export(_lag(1, "other", behind=20))
        assert observed(_lag(1, "other")) == 22

    def test_the_end_of_an_earlier_run_is_not_that_of_a_later_one(
        self, exporter: LagExporter, observed: Observed
    ) -> None:
        """A query may have started again when the end of its last run is reported."""
        exporter.export(_lag(0, run=1))
        exporter.export(_lag(1, run=2, behind=20))
        exporter.query_ended("query", "run 1 of query")
        assert observed(_lag(1, run=2)) == 22

    def test_a_query_that_has_ended_may_start_again(
        self, exporter: LagExporter, observed: Observed
    ) -> None:
        """The lag of its next run is exported."""
        exporter.export(_lag(0, run=1))
        exporter.query_ended("query", "run 1 of query")
        exporter.export(_lag(1, run=2, behind=20))
        assert observed(_lag(1, run=2)) == 22

    def test_a_query_may_end_without_a_batch(
        self, exporter: LagExporter, observed: Observed
    ) -> None:
        """The end of a run without exported batches is accepted, also twice."""
        exporter.export(_lag(0))
        for _ in range(2):
            exporter.query_ended("never seen", "run")
        assert observed(_lag(0)) == 7

    def test_closing_twice_is_allowed(self, exporter: LagExporter) -> None:
        """A second call of close has no effect."""
        exporter.export(_lag(0))
        exporter.close()
        exporter.close()
