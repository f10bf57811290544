"""The newest report of each running query, for Prometheus to scrape."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ...domain.errors import requires_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, Metric

    from ...domain.values.errors import BadRecordStats

T = TypeVar("T")

QUERY_LABELS: Final = ("query_id", "query")


@final
class QueryCollector(Generic[T]):
    """Keeps a report for each query until its run ends; any thread may call it."""

    def __init__(
        self, metrics: Callable[[Sequence[T]], Iterator[Metric]], registry: CollectorRegistry | None
    ) -> None:
        """Register with a registry, by default prometheus-client's own.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        with requires_extra("prometheus", "prometheus_client", "prometheus-client"):
            from prometheus_client import REGISTRY
        self._metrics = metrics
        self._lock = threading.Lock()
        self._reports: dict[str, tuple[str, T]] = {}
        self._registry: CollectorRegistry | None = REGISTRY if registry is None else registry
        self._registry.register(self)

    def put(self, query_id: str, run_id: str, report: T) -> None:
        """Replace the report of a query."""
        with self._lock:
            self._reports[query_id] = (run_id, report)

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Remove the report of a query, unless it is of a later run."""
        with self._lock:
            known_run, _ = self._reports.get(query_id, (None, None))
            if known_run == run_id:
                del self._reports[query_id]

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; prometheus-client calls this for each scrape."""
        with self._lock:
            reports = [report for _, report in self._reports.values()]
        yield from self._metrics(reports)

    def close(self) -> None:
        """Unregister; a second call does nothing."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.unregister(self)


def bad_record_counters(
    prefix: str, counts: Iterable[tuple[list[str], BadRecordStats]]
) -> Iterator[CounterMetricFamily]:
    """Yield the counters of bad records by reason and of dead letters, by the labels of queries."""
    from prometheus_client.core import CounterMetricFamily

    bad = CounterMetricFamily(
        f"{prefix}_bad_records",
        "Records that could not be decoded",
        labels=(*QUERY_LABELS, "reason"),
    )
    letters = CounterMetricFamily(f"{prefix}_dead_letters", "Dead letters", labels=QUERY_LABELS)
    for labels, found in counts:
        letters.add_metric(labels, found.dead_letters)
        for reason, count in found.by_name().items():
            bad.add_metric([*labels, reason], count)
    yield bad
    yield letters
