"""The lag of queries as gauges."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import MissingDependencyError
from ...ports.lag_exporter import LagExporter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily

    from ...domain.lag import QueryLag

PREFIX: Final = "pyspark_kafka_lag"

_QUERY: Final = ("query_id", "query")
_PARTITION: Final = (*_QUERY, "source", "topic", "partition")


def _min(lag: QueryLag) -> float:
    return lag.lag.min


def _max(lag: QueryLag) -> float:
    return lag.lag.max


def _avg(lag: QueryLag) -> float:
    return lag.lag.avg


def _time(lag: QueryLag) -> float:
    return lag.timestamp_ms / 1_000


_NUMBERS: Final[Sequence[tuple[str, str, Callable[[QueryLag], float]]]] = (
    ("_min", "Lag of the partition that is least behind", _min),
    ("_max", "Lag of the partition that is most behind", _max),
    ("_avg", "Mean lag of the partitions", _avg),
    ("_timestamp_seconds", "When the batch began after which that was so", _time),
)


@final
class PrometheusLagExporter(LagExporter):
    """Serves the newest lag of every query that runs; a query that ended has no series any more.

    By query, source, topic and partition ``pyspark_kafka_lag``, and ``pyspark_kafka_lag_exact``,
    which is 1 where records are counted and 0 where offsets are. By query
    ``pyspark_kafka_lag_min``, ``_max``, ``_avg``, and ``_timestamp_seconds``, which says when
    the batch began. The label ``query`` is empty for a query without a name.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register with a registry, with the default one if it is left out.

        Serving it over HTTP is the caller's: ``prometheus_client.start_http_server(port)``.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        try:
            from prometheus_client import REGISTRY
        except ModuleNotFoundError as error:
            raise MissingDependencyError("prometheus-client", "prometheus") from error
        self._lock = threading.Lock()
        self._lags: dict[str, QueryLag] = {}
        self._registry: CollectorRegistry | None = REGISTRY if registry is None else registry
        self._registry.register(self)

    def export(self, lag: QueryLag) -> None:
        with self._lock:
            self._lags[lag.query_id] = lag

    def query_ended(self, query_id: str, run_id: str) -> None:
        with self._lock:
            known = self._lags.get(query_id)
            if known is not None and known.run_id == run_id:
                del self._lags[query_id]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give the gauges, as prometheus-client asks for them."""
        with self._lock:
            lags = list(self._lags.values())
        yield from _by_partition(lags)
        yield from _by_query(lags)

    def close(self) -> None:
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.unregister(self)


def _by_partition(lags: list[QueryLag]) -> Iterator[GaugeMetricFamily]:
    behind = _gauge("", "Records that are left to read, or offsets", _PARTITION)
    exact = _gauge("_exact", "Whether records are counted, and no offsets", _PARTITION)
    for lag in lags:
        for source, measured in lag.sources.items():
            for each in measured.partitions:
                place = (source, each.partition.topic, str(each.partition.partition))
                labels = [lag.query_id, lag.name or "", *place]
                behind.add_metric(labels, each.lag)
                exact.add_metric(labels, each.is_exact)
    yield behind
    yield exact


def _by_query(lags: list[QueryLag]) -> Iterator[GaugeMetricFamily]:
    for suffix, documentation, number in _NUMBERS:
        gauge = _gauge(suffix, documentation, _QUERY)
        for lag in lags:
            gauge.add_metric([lag.query_id, lag.name or ""], number(lag))
        yield gauge


def _gauge(suffix: str, documentation: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(PREFIX + suffix, documentation, labels=labels)
