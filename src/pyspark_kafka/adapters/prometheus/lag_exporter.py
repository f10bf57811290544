"""The lag of queries as Prometheus gauges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ports.lag_exporter import LagExporter
from .query_collector import QUERY_LABELS, QueryCollector, bad_record_counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

    from ...domain.lag import QueryLag

PREFIX: Final = "pyspark_kafka_lag"

_PARTITION_LABELS: Final = (*QUERY_LABELS, "source", "topic", "partition")

_STATISTICS: Final[Sequence[tuple[str, str, Callable[[QueryLag], float]]]] = (
    ("_min", "Minimum lag of the partitions", lambda lag: lag.lag.min),
    ("_max", "Maximum lag of the partitions", lambda lag: lag.lag.max),
    ("_avg", "Average lag of the partitions", lambda lag: lag.lag.avg),
    (
        "_timestamp_seconds",
        "Start of the batch after which the lag was measured",
        lambda lag: lag.timestamp_ms / 1_000,
    ),
)


@final
class PrometheusLagExporter(LagExporter):
    """Exposes the newest lag of every running query; its series are removed when the query ends.

    By query, source, topic and partition: ``pyspark_kafka_lag``, and ``pyspark_kafka_lag_exact``,
    which is 1 if records are counted and 0 if the lag is in offsets. By query:
    ``pyspark_kafka_lag_min``, ``_max``, ``_avg``, and ``_timestamp_seconds``, the start of the
    batch, and where dead letters are counted ``pyspark_kafka_dead_letters_total``. By query and
    ``reason``, with them: ``pyspark_kafka_bad_records_total``. The label ``query`` is empty for a
    query without a name.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register with a registry, by default prometheus-client's own.

        To serve it over HTTP, call ``prometheus_client.start_http_server(port)``.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        self._collector = QueryCollector(_metrics, registry)

    def export(self, lag: QueryLag) -> None:
        self._collector.put(lag.query_id, lag.run_id, lag)

    def query_ended(self, query_id: str, run_id: str) -> None:
        self._collector.query_ended(query_id, run_id)

    def close(self) -> None:
        self._collector.close()


def _metrics(lags: Sequence[QueryLag]) -> Iterator[Metric]:
    yield from _by_partition(lags)
    yield from _by_query(lags)
    yield from _bad_records(lags)


def _by_partition(lags: Sequence[QueryLag]) -> Iterator[GaugeMetricFamily]:
    lag_gauge = _gauge("", "Records left to read, or offsets", _PARTITION_LABELS)
    exact_gauge = _gauge("_exact", "1 if records are counted, else 0", _PARTITION_LABELS)
    for lag in lags:
        for source, measured in lag.sources.items():
            for each in measured.partitions:
                place = (source, each.partition.topic, str(each.partition.partition))
                labels = [lag.query_id, lag.name or "", *place]
                lag_gauge.add_metric(labels, each.lag)
                exact_gauge.add_metric(labels, each.is_exact)
    yield lag_gauge
    yield exact_gauge


def _by_query(lags: Sequence[QueryLag]) -> Iterator[GaugeMetricFamily]:
    for suffix, documentation, statistic in _STATISTICS:
        gauge = _gauge(suffix, documentation, QUERY_LABELS)
        for lag in lags:
            gauge.add_metric([lag.query_id, lag.name or ""], statistic(lag))
        yield gauge


def _bad_records(lags: Sequence[QueryLag]) -> Iterator[CounterMetricFamily]:
    counts = [
        ([lag.query_id, lag.name or ""], lag.bad_records)
        for lag in lags
        if lag.bad_records is not None
    ]
    yield from bad_record_counters("pyspark_kafka", counts)


def _gauge(suffix: str, documentation: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(PREFIX + suffix, documentation, labels=labels)
