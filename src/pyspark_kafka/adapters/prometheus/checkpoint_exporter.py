"""The lag behind checkpoints as Prometheus metrics, and whether it could be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from .lag_exporter import lag_metrics
from .query_collector import QueryCollector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from ...application.lag.checkpoint_lag import CheckpointReport

PREFIX: Final = "pyspark_kafka_checkpoint"

_LABELS: Final = ("query",)

_GAUGES: Final[Sequence[tuple[str, str, Callable[[CheckpointReport], float | None]]]] = (
    (
        "_up",
        "1 if the last measurement succeeded, else 0",
        lambda report: report.failure is None,
    ),
    ("_measurement_seconds", "Duration of the last measurement", lambda report: report.seconds),
    (
        "_batch",
        "The last committed batch",
        lambda report: None if report.lag is None else report.lag.batch_id,
    ),
    (
        "_partitions_gone",
        "Partitions that the query has read and that no longer exist",
        lambda report: None if report.snapshot is None else len(report.snapshot.gone),
    ),
)


@final
class PrometheusCheckpointExporter:
    """Exposes the last report of each checkpoint; without its lag if the measurement failed.

    By ``query``, the name of the checkpoint: ``pyspark_kafka_checkpoint_up``,
    ``_measurement_seconds``, ``_batch`` and ``_partitions_gone``, and by ``condition`` as well the
    counter ``_errors_total``. The lag has the series of ``PrometheusLagExporter``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register with a registry.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        self._reports = QueryCollector(_metrics, registry)
        from prometheus_client import Counter

        self._errors = Counter(
            f"{PREFIX}_errors",
            "Measurements that failed",
            (*_LABELS, "condition"),
            registry=registry,
        )

    def put(self, report: CheckpointReport) -> None:
        """Replace the report of a checkpoint."""
        if report.failure is not None:
            self._errors.labels(report.name, report.failure.condition).inc()
        self._reports.put(report.name, "", report)


def _metrics(reports: Sequence[CheckpointReport]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    for suffix, documentation, measure in _GAUGES:
        gauge = GaugeMetricFamily(PREFIX + suffix, documentation, labels=_LABELS)
        for report in reports:
            value = measure(report)
            if value is not None:
                gauge.add_metric([report.name], value)
        yield gauge
    yield from lag_metrics([report.lag for report in reports if report.lag is not None])
