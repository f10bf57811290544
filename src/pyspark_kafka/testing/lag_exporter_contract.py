"""The contract suite of ``LagExporter``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..domain.lag import QueryLag, SourceLag
from ..domain.topic_partition import TopicPartition
from ..ports.lag_exporter import LagExporter


def _lag(batch_id: int, name: str | None = "orders", query_id: str = "query") -> QueryLag:
    partition = TopicPartition("t", 0)
    source = SourceLag.in_offsets({partition: 3}, {partition: 5})
    return QueryLag(
        query_id, f"run of {query_id}", name, batch_id, 1_700_000_000_000, {"0": source}
    )


class LagExporterContract:
    """The contract of ``LagExporter``; a subclass overrides the fixture ``exporter``."""

    @pytest.fixture
    def exporter(self) -> LagExporter:
        """Return the exporter under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'exporter'")

    @pytest.fixture(autouse=True)
    def _closing(self, exporter: LagExporter) -> Iterator[None]:
        """Close the exporter after each test, perhaps for a second time."""
        yield
        exporter.close()

    def test_the_lag_of_each_batch_is_exported(self, exporter: LagExporter) -> None:
        """Each batch's lag can be exported, also twice."""
        for batch_id in (0, 1, 1):
            exporter.export(_lag(batch_id))

    def test_a_query_needs_no_name_and_no_partitions(self, exporter: LagExporter) -> None:
        """The lag of a query without a name, or without partitions, can be exported."""
        exporter.export(_lag(0, name=None))
        exporter.export(QueryLag("other", "run", None, 0, 0, {"0": SourceLag.of([])}))

    def test_queries_end_independently(self, exporter: LagExporter) -> None:
        """After the end of one query, another's lag can be exported."""
        exporter.export(_lag(0, query_id="one"))
        exporter.export(_lag(0, query_id="other"))
        exporter.query_ended("one", "run of one")
        exporter.export(_lag(1, query_id="other"))

    def test_a_query_may_end_without_a_batch(self, exporter: LagExporter) -> None:
        """The end of a run without exported batches is accepted, also twice."""
        for _ in range(2):
            exporter.query_ended("never seen", "run")

    def test_closing_twice_is_allowed(self, exporter: LagExporter) -> None:
        """A second call of close has no effect."""
        exporter.export(_lag(0))
        exporter.close()
        exporter.close()
