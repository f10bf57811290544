"""What every ``LagExporter`` owes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..domain.lag import QueryLag, SourceLag
from ..domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ports.lag_exporter import LagExporter


def _lag(batch_id: int, name: str | None = "orders", query_id: str = "query") -> QueryLag:
    partition = TopicPartition("t", 0)
    source = SourceLag.in_offsets({partition: 3}, {partition: 5})
    return QueryLag(
        query_id, f"run of {query_id}", name, batch_id, 1_700_000_000_000, {"0": source}
    )


class LagExporterContract:
    """Holds a ``LagExporter`` to its contract; a subclass gives it in the fixture ``exporter``."""

    @pytest.fixture
    def exporter(self) -> LagExporter:
        """Give the exporter that is held to the contract."""
        raise NotImplementedError(f"{type(self).__name__} is to override the fixture 'exporter'")

    @pytest.fixture(autouse=True)
    def _closing(self, exporter: LagExporter) -> Iterator[None]:
        """Close the exporter behind each test, a second time perhaps."""
        yield
        exporter.close()

    def test_the_lag_of_batch_after_batch_is_taken(self, exporter: LagExporter) -> None:
        """Each batch's lag is taken, the same batch's once more as well."""
        for batch_id in (0, 1, 1):
            exporter.export(_lag(batch_id))

    def test_a_query_needs_no_name_and_no_partitions(self, exporter: LagExporter) -> None:
        """A query without a name, and one whose topics are gone, are taken like any other."""
        exporter.export(_lag(0, name=None))
        exporter.export(QueryLag("other", "run", None, 0, 0, {"0": SourceLag.of([])}))

    def test_queries_end_apart(self, exporter: LagExporter) -> None:
        """The end of one query leaves another's lag to be taken."""
        exporter.export(_lag(0, query_id="one"))
        exporter.export(_lag(0, query_id="other"))
        exporter.query_ended("one", "run of one")
        exporter.export(_lag(1, query_id="other"))

    def test_a_query_may_end_without_a_batch(self, exporter: LagExporter) -> None:
        """The end of a run of which nothing was exported is taken, and taken again."""
        for _ in range(2):
            exporter.query_ended("never seen", "run")

    def test_closing_twice_does_no_harm(self, exporter: LagExporter) -> None:
        """The second call of close does nothing."""
        exporter.export(_lag(0))
        exporter.close()
        exporter.close()
