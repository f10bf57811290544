"""The lag of queries as Prometheus gauges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ports.lag import LagExporter
from .query_collector import QUERY_LABELS, QueryCollector, bad_record_counters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

    from ...domain.lag.lag import PartitionLag, QueryLag

PREFIX: Final = "pyspark_kafka_lag"

_PARTITION_LABELS: Final = (*QUERY_LABELS, "source", "topic", "partition")

_PARTITION_GAUGES: Final[Sequence[tuple[str, str, Callable[[PartitionLag], float]]]] = (
    ("", "Records left to read, or offsets", lambda lag: lag.lag),
    ("_exact", "1 if records are counted, else 0", lambda lag: lag.is_exact),
    ("_expired", "Offsets that were deleted before they were read", lambda lag: lag.expired),
    ("_truncated", "1 if the log ends before the next offset", lambda lag: lag.is_truncated),
)

_STATISTICS: Final[Sequence[tuple[str, str, Callable[[QueryLag], float | None]]]] = (
    ("_min", "Minimum lag of the partitions", lambda lag: lag.lag.min),
    ("_max", "Maximum lag of the partitions", lambda lag: lag.lag.max),
    ("_avg", "Average lag of the partitions", lambda lag: lag.lag.avg),
    (
        "_timestamp_seconds",
        "Start of the batch after which the lag was measured",
        lambda lag: lag.timestamp_ms / 1_000 if lag.timestamp_ms else None,
    ),
)


@final
class PrometheusLagExporter(LagExporter):
    """Exposes the newest lag of every running query; its series are removed when the query ends.

    By query, source, topic and partition: ``pyspark_kafka_lag``; ``_exact``, which is 1 if records
    are counted and 0 if the lag is in offsets; ``_expired``, the offsets that retention deleted
    before they were read, if the listener asks Kafka; and ``_truncated``, which is 1 if the log
    ends before the next offset to read. By query: ``pyspark_kafka_lag_min``, ``_max``, ``_avg``,
    ``_timestamp_seconds``, the start of the batch, and ``_run_info`` with the label ``run_id``;
    where dead letters are counted ``pyspark_kafka_dead_letters_total``, and with the label
    ``reason`` ``pyspark_kafka_bad_records_total``. The label ``query`` is empty for a query
    without a name.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register with a registry, by default prometheus-client's own.

        To serve it over HTTP, call ``prometheus_client.start_http_server(port)``.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        self._collector = QueryCollector(lag_metrics, registry)

    def export(self, lag: QueryLag) -> None:
        self._collector.put(lag.query_id, lag.run_id, lag)

    def query_ended(self, query_id: str, run_id: str) -> None:
        self._collector.query_ended(query_id, run_id)

    def close(self) -> None:
        self._collector.close()


def lag_metrics(lags: Sequence[QueryLag]) -> Iterator[Metric]:
    """Yield the metrics of queries."""
    yield from _by_partition(lags)
    yield from _by_query(lags)
    yield from _bad_records(lags)


def _by_partition(lags: Sequence[QueryLag]) -> Iterator[GaugeMetricFamily]:
    for suffix, documentation, measure in _PARTITION_GAUGES:
        gauge = _gauge(suffix, documentation, _PARTITION_LABELS)
        for lag in lags:
            for source, measured in lag.sources.items():
                for each in measured.partitions:
                    place = (source, each.partition.topic, str(each.partition.partition))
                    gauge.add_metric([lag.query_id, lag.name or "", *place], measure(each))
        yield gauge


def _by_query(lags: Sequence[QueryLag]) -> Iterator[GaugeMetricFamily]:
    for suffix, documentation, statistic in _STATISTICS:
        gauge = _gauge(suffix, documentation, QUERY_LABELS)
        for lag in lags:
            value = statistic(lag)
            if value is not None:
                gauge.add_metric([lag.query_id, lag.name or ""], value)
        yield gauge
    run = _gauge("_run_info", "The run that the lag is of", (*QUERY_LABELS, "run_id"))
    for lag in lags:
        if lag.run_id:
            run.add_metric([lag.query_id, lag.name or "", lag.run_id], 1)
    yield run


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
