"""The progress of continuous queries as Prometheus metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ports.lag import ProgressListener
from .query_collector import QUERY_LABELS, QueryCollector, bad_record_counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from ...domain.continuous.progress import EpochProgress

PREFIX: Final = "pyspark_kafka_continuous"

_GAUGES: Final[Sequence[tuple[str, str, Callable[[EpochProgress], float | None]]]] = (
    ("_input_rows_per_second", "Records read", lambda each: each.input_rows_per_second),
    ("_output_rows_per_second", "Rows acknowledged", lambda each: each.output_rows_per_second),
    ("_lag", "Offsets left to read", lambda each: None if each.lag is None else each.lag.total),
    ("_epoch", "The last committed epoch", lambda each: each.epoch),
    ("_tasks", "Tasks that read", lambda each: each.tasks),
    (
        "_timestamp_seconds",
        "When the progress was measured",
        lambda each: each.timestamp_ms / 1_000,
    ),
)

_QUANTILES: Final = (0.5, 0.99)


@final
class PrometheusProgressListener(ProgressListener):
    """Exposes the newest progress of every running query; its series are removed when it ends.

    By query: ``pyspark_kafka_continuous_input_rows_per_second``, ``_output_rows_per_second``,
    ``_lag`` in offsets, ``_epoch``, ``_tasks``, ``_timestamp_seconds``, and the counter
    ``_restarts_total`` and ``_dead_letters_total`` of the run, and by ``reason``
    ``_bad_records_total``. By query and ``quantile``: ``_latency_seconds``. There is no lag
    while no broker answers, and no latency while no record arrives. The label ``query`` is empty
    for a query without a name.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register with a registry, by default prometheus-client's own.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        self._collector = QueryCollector(_metrics, registry)

    def progressed(self, progress: EpochProgress) -> None:
        self._collector.put(progress.query.query_id, progress.query.run_id, progress)

    def query_ended(self, query_id: str, run_id: str) -> None:
        self._collector.query_ended(query_id, run_id)

    def close(self) -> None:
        self._collector.close()


def _metrics(reports: Sequence[EpochProgress]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for suffix, documentation, measure in _GAUGES:
        gauge = GaugeMetricFamily(PREFIX + suffix, documentation, labels=QUERY_LABELS)
        for progress in reports:
            value = measure(progress)
            if value is not None:
                gauge.add_metric(_labels(progress), value)
        yield gauge
    restarts = CounterMetricFamily(
        f"{PREFIX}_restarts", "Restarts of tasks in this run", labels=QUERY_LABELS
    )
    latency = GaugeMetricFamily(
        f"{PREFIX}_latency_seconds",
        "From a record's timestamp to the acknowledgement of its output",
        labels=(*QUERY_LABELS, "quantile"),
    )
    for progress in reports:
        restarts.add_metric(_labels(progress), progress.restarts)
        for quantile in _QUANTILES:
            milliseconds = progress.work.latency.percentile(100 * quantile)
            if milliseconds is not None:
                latency.add_metric([*_labels(progress), str(quantile)], milliseconds / 1_000)
    yield restarts
    yield latency
    counts = [(_labels(progress), progress.bad_records) for progress in reports]
    yield from bad_record_counters(PREFIX, counts)


def _labels(progress: EpochProgress) -> list[str]:
    return [progress.query.query_id, progress.query.name or ""]
