"""Lag and progress of queries as Prometheus metrics."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from ..domain.errors import requires_extra
from ..ports.lag import LagExporter, ProgressListener, QueryReports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

    from ..application.lag.monitor import CheckpointReport
    from ..domain.continuous.progress import EpochProgress
    from ..domain.lag.lag import PartitionLag, QueryLag
    from ..domain.values.errors import BadRecordStats

T = TypeVar("T")

Labeled = tuple[list[str], T]
"""The values of labels, and the object that has them."""

Gauges = Sequence[tuple[str, str, Callable[[T], "float | None"]]]
"""The suffix of each gauge's name, its meaning, and the function that returns its value, if any."""

QUERY_LABELS: Final = ("query_id", "query")

_LAG: Final = "pyspark_kafka_lag"
_CONTINUOUS: Final = "pyspark_kafka_continuous"
_CHECKPOINT: Final = "pyspark_kafka_checkpoint"
_CHECKPOINT_LABELS: Final = ("query",)
_PARTITION_LABELS: Final = (*QUERY_LABELS, "source", "topic", "partition")
_QUANTILES: Final = (0.5, 0.99)

_PARTITION_GAUGES: Final[Gauges[PartitionLag]] = (
    ("", "Records left to read, or offsets", lambda lag: lag.lag),
    ("_exact", "1 if records are counted, else 0", lambda lag: lag.is_exact),
    ("_expired", "Offsets that were deleted before they were read", lambda lag: lag.expired),
    ("_truncated", "1 if the log ends before the next offset", lambda lag: lag.is_truncated),
)
_LAG_GAUGES: Final[Gauges[QueryLag]] = (
    ("_min", "Minimum lag of the partitions", lambda lag: lag.lag.min),
    ("_max", "Maximum lag of the partitions", lambda lag: lag.lag.max),
    ("_avg", "Average lag of the partitions", lambda lag: lag.lag.avg),
    (
        "_timestamp_seconds",
        "Start of the batch after which the lag was measured",
        lambda lag: lag.timestamp_ms / 1_000 if lag.timestamp_ms else None,
    ),
)
_RUN_GAUGES: Final[Gauges[QueryLag]] = (("_run_info", "The run that the lag is of", lambda _: 1),)
_CONTINUOUS_GAUGES: Final[Gauges[EpochProgress]] = (
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
_CHECKPOINT_GAUGES: Final[Gauges[CheckpointReport]] = (
    ("_up", "1 if the last measurement succeeded, else 0", lambda report: report.failure is None),
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


class PrometheusReports(QueryReports, Generic[T]):
    """Exposes the newest report of each query until its run ends; any thread may call it."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register with a registry, by default prometheus-client's own.

        To serve it over HTTP, call ``prometheus_client.start_http_server(port)``.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        with requires_extra("prometheus", "prometheus_client", "prometheus-client"):
            from prometheus_client import REGISTRY
        self._lock = threading.Lock()
        self._reports: dict[str, tuple[str, T]] = {}
        self._registry: CollectorRegistry | None = REGISTRY if registry is None else registry
        self._registry.register(self)

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
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.unregister(self)

    def _put(self, query_id: str, run_id: str, report: T) -> None:
        with self._lock:
            self._reports[query_id] = (run_id, report)

    @abstractmethod
    def _metrics(self, reports: Sequence[T]) -> Iterator[Metric]:
        """Yield the metrics of reports."""


@final
class PrometheusLagExporter(PrometheusReports["QueryLag"], LagExporter):
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

    def export(self, lag: QueryLag) -> None:
        self._put(lag.query_id, lag.run_id, lag)

    def _metrics(self, reports: Sequence[QueryLag]) -> Iterator[Metric]:
        return _lag_metrics(reports)


@final
class PrometheusProgressListener(PrometheusReports["EpochProgress"], ProgressListener):
    """Exposes the newest progress of every running query; its series are removed when it ends.

    By query: ``pyspark_kafka_continuous_input_rows_per_second``, ``_output_rows_per_second``,
    ``_lag`` in offsets, ``_epoch``, ``_tasks``, ``_timestamp_seconds``, and the counter
    ``_restarts_total`` and ``_dead_letters_total`` of the run, and by ``reason``
    ``_bad_records_total``. By query and ``quantile``: ``_latency_seconds``. There is no lag while
    no broker answers, and no latency while no record arrives. The label ``query`` is empty for a
    query without a name.
    """

    def progressed(self, progress: EpochProgress) -> None:
        self._put(progress.query.query_id, progress.query.run_id, progress)

    def _metrics(self, reports: Sequence[EpochProgress]) -> Iterator[Metric]:
        labeled = [([each.query.query_id, each.query.name or ""], each) for each in reports]
        yield from _gauges(_CONTINUOUS, QUERY_LABELS, _CONTINUOUS_GAUGES, labeled)
        yield from _restarts_and_latency(labeled)
        counts = [(labels, each.bad_records) for labels, each in labeled]
        yield from _bad_records(_CONTINUOUS, counts)


@final
class PrometheusCheckpointExporter(PrometheusReports["CheckpointReport"]):
    """Exposes the last report of each checkpoint; without its lag if the measurement failed.

    By ``query``, the name of the checkpoint: ``pyspark_kafka_checkpoint_up``,
    ``_measurement_seconds``, ``_batch`` and ``_partitions_gone``, and by ``condition`` as well the
    counter ``_errors_total``. The lag has the series of ``PrometheusLagExporter``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register with a registry.

        :raises MissingDependencyError: if prometheus-client is not installed.
        """
        super().__init__(registry)
        from prometheus_client import Counter

        self._errors = Counter(
            f"{_CHECKPOINT}_errors",
            "Measurements that failed",
            (*_CHECKPOINT_LABELS, "condition"),
            registry=registry,
        )

    def put(self, report: CheckpointReport) -> None:
        """Replace the report of a checkpoint."""
        if report.failure is not None:
            self._errors.labels(report.name, report.failure.condition).inc()
        self._put(report.name, "", report)

    def _metrics(self, reports: Sequence[CheckpointReport]) -> Iterator[Metric]:
        labeled = [([each.name], each) for each in reports]
        yield from _gauges(_CHECKPOINT, _CHECKPOINT_LABELS, _CHECKPOINT_GAUGES, labeled)
        yield from _lag_metrics([each.lag for each in reports if each.lag is not None])


def _lag_metrics(lags: Sequence[QueryLag]) -> Iterator[Metric]:
    labeled = [([lag.query_id, lag.name or ""], lag) for lag in lags]
    partitions = [
        ([*labels, source, each.partition.topic, str(each.partition.partition)], each)
        for labels, lag in labeled
        for source, measured in lag.sources.items()
        for each in measured.partitions
    ]
    runs = [([*labels, lag.run_id], lag) for labels, lag in labeled if lag.run_id]
    yield from _gauges(_LAG, _PARTITION_LABELS, _PARTITION_GAUGES, partitions)
    yield from _gauges(_LAG, QUERY_LABELS, _LAG_GAUGES, labeled)
    yield from _gauges(_LAG, (*QUERY_LABELS, "run_id"), _RUN_GAUGES, runs)
    counts = [(labels, lag.bad_records) for labels, lag in labeled if lag.bad_records is not None]
    yield from _bad_records("pyspark_kafka", counts)


def _gauges(
    prefix: str, labels: Sequence[str], table: Gauges[T], reports: Sequence[Labeled[T]]
) -> Iterator[GaugeMetricFamily]:
    from prometheus_client.core import GaugeMetricFamily

    for suffix, documentation, measure in table:
        gauge = GaugeMetricFamily(prefix + suffix, documentation, labels=labels)
        for values, report in reports:
            measured = measure(report)
            if measured is not None:
                gauge.add_metric(values, measured)
        yield gauge


def _restarts_and_latency(reports: Iterable[Labeled[EpochProgress]]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    restarts = CounterMetricFamily(
        f"{_CONTINUOUS}_restarts", "Restarts of tasks in this run", labels=QUERY_LABELS
    )
    latency = GaugeMetricFamily(
        f"{_CONTINUOUS}_latency_seconds",
        "From a record's timestamp to the acknowledgement of its output",
        labels=(*QUERY_LABELS, "quantile"),
    )
    for labels, progress in reports:
        restarts.add_metric(labels, progress.restarts)
        for quantile in _QUANTILES:
            milliseconds = progress.work.latency.percentile(100 * quantile)
            if milliseconds is not None:
                latency.add_metric([*labels, str(quantile)], milliseconds / 1_000)
    yield restarts
    yield latency


def _bad_records(
    prefix: str, counts: Iterable[Labeled[BadRecordStats]]
) -> Iterator[CounterMetricFamily]:
    """Yield the counters of bad records by reason and of dead letters."""
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


def new_registry() -> CollectorRegistry:
    """Return an empty registry.

    :raises MissingDependencyError: if prometheus-client is not installed.
    """
    with requires_extra("prometheus", "prometheus_client", "prometheus-client"):
        from prometheus_client import CollectorRegistry
    return CollectorRegistry()


@contextmanager
def serving(registry: CollectorRegistry, host: str, port: int) -> Iterator[str]:
    """Serve the metrics of a registry, and yield the URL; port 0 is any that is free.

    :raises OSError: if the address cannot be used.
    """
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise OSError(f"Cannot listen on {host}, port {port}: {error}") from error
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
