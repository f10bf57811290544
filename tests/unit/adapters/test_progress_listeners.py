from __future__ import annotations

import logging
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pyspark_kafka.adapters.prometheus.progress_listener import PrometheusProgressListener
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.adapters.system.logged import LoggingProgressListener
from pyspark_kafka.domain.continuous.messages import TaskProgress
from pyspark_kafka.domain.continuous.progress import EpochProgress, LatencyHistogram, QueryIdentity
from pyspark_kafka.domain.errors import MissingDependencyError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason
from pyspark_kafka.ports.lag import LagExporter

if TYPE_CHECKING:
    from pyspark_kafka.domain.lag.lag import QueryLag

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
LABELS = 'query="totals",query_id="id"'
PROGRESS = EpochProgress(
    query=QueryIdentity("id", "run", "totals"),
    source="KafkaContinuous[Subscribe[t]]",
    sink="Kafka[totals]",
    epoch=7,
    timestamp_ms=1_700_000_000_500,
    duration_ms=2_000,
    start=PartitionOffsets({FIRST: 0, SECOND: 0}),
    end=PartitionOffsets({FIRST: 60, SECOND: 40}),
    latest=PartitionOffsets({FIRST: 65, SECOND: 40}),
    work=TaskProgress(100, 50, LatencyHistogram.of([2] * 98 + [40] * 2)),
    tasks=2,
    restarts=1,
)
IDLE = replace(PROGRESS, work=TaskProgress(), latest=None)
BAD = BadRecordStats({FailureReason.MALFORMED: 3, FailureReason.BAD_UTF8: 2}, dead_letters=4)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def series(registry: CollectorRegistry) -> dict[str, float]:
    """Return the values that Prometheus scrapes, by series."""
    lines = generate_latest(registry).decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name.removeprefix("pyspark_kafka_"): float(value) for name, _, value in samples}


def test_prometheus_has_the_progress(registry: CollectorRegistry) -> None:
    """Labels identify the query; times are in seconds."""
    PrometheusProgressListener(registry).progressed(PROGRESS)
    assert series(registry) == {
        f"continuous_input_rows_per_second{{{LABELS}}}": 50.0,
        f"continuous_output_rows_per_second{{{LABELS}}}": 25.0,
        f"continuous_lag{{{LABELS}}}": 5.0,
        f"continuous_epoch{{{LABELS}}}": 7.0,
        f"continuous_tasks{{{LABELS}}}": 2.0,
        f"continuous_timestamp_seconds{{{LABELS}}}": 1_700_000_000.5,
        f"continuous_restarts_total{{{LABELS}}}": 1.0,
        f"continuous_dead_letters_total{{{LABELS}}}": 0.0,
        f'continuous_latency_seconds{{quantile="0.5",{LABELS}}}': 0.002,
        f'continuous_latency_seconds{{quantile="0.99",{LABELS}}}': 0.04,
    }


def test_prometheus_has_no_series_for_what_is_unknown(registry: CollectorRegistry) -> None:
    """Without records there is no latency, and without a broker no lag."""
    PrometheusProgressListener(registry).progressed(IDLE)
    names = {name.partition("{")[0] for name in series(registry)}
    assert names.isdisjoint({"continuous_lag", "continuous_latency_seconds"})
    assert len(names) == 7


def test_prometheus_counts_bad_records_by_reason(registry: CollectorRegistry) -> None:
    """The numbers are of the whole run, as counters have to be."""
    work = replace(PROGRESS.work, bad_records=BadRecordStats({FailureReason.TRUNCATED: 1}))
    PrometheusProgressListener(registry).progressed(replace(PROGRESS, work=work, bad_records=BAD))
    found = {name: n for name, n in series(registry).items() if "bad" in name or "dead" in name}
    assert found == {
        'continuous_bad_records_total{query="totals",query_id="id",reason="MALFORMED"}': 3.0,
        'continuous_bad_records_total{query="totals",query_id="id",reason="BAD_UTF8"}': 2.0,
        f"continuous_dead_letters_total{{{LABELS}}}": 4.0,
    }


def test_prometheus_removes_the_series_of_an_ended_query(registry: CollectorRegistry) -> None:
    """The end of a run removes its series, but not the next run's."""
    listener = PrometheusProgressListener(registry)
    listener.progressed(PROGRESS)
    listener.query_ended("id", "run")
    assert series(registry) == {}
    listener.progressed(replace(PROGRESS, query=QueryIdentity("id", "second run")))
    listener.query_ended("id", "run")
    assert series(registry) != {}


def test_a_missing_prometheus_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without prometheus-client, the listener says what to install."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[prometheus\]'"):
        PrometheusProgressListener()


def test_a_log_line_for_each_report(caplog: pytest.LogCaptureFixture) -> None:
    """The line has all numbers; what is unknown is said to be."""
    listener = LoggingProgressListener()
    with caplog.at_level(logging.INFO, "pyspark_kafka.continuous"):
        listener.progressed(PROGRESS)
        listener.progressed(replace(IDLE, query=QueryIdentity("id", "run")))
        listener.query_ended("id", "run")
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("pyspark_kafka.continuous", "INFO")
    ] * 2
    assert [record.getMessage() for record in caplog.records] == [
        (
            "Query totals, epoch 7: 50.0 rows/s in, 25.0 rows/s out, lag 5, latency p50 2 ms, "
            "p99 40 ms, 2 tasks, 1 restarts"
        ),
        (
            "Query id, epoch 7: 0.0 rows/s in, 0.0 rows/s out, lag unknown, latency p50 - ms, "
            "p99 - ms, 2 tasks, 1 restarts"
        ),
    ]


def test_the_log_line_has_the_bad_records_of_its_report(caplog: pytest.LogCaptureFixture) -> None:
    """By reason, with the number of dead letters."""
    work = replace(PROGRESS.work, bad_records=BAD)
    with caplog.at_level(logging.INFO, "pyspark_kafka.continuous"):
        LoggingProgressListener().progressed(replace(PROGRESS, work=work))
    [record] = caplog.records
    assert record.getMessage().endswith(
        ", 1 restarts, bad records: 3 MALFORMED, 2 BAD_UTF8; 4 dead letters"
    )


class Notes(LagExporter):
    """Keeps what it is called with."""

    def __init__(self) -> None:
        self.lags: list[QueryLag] = []
        self.ended: list[tuple[str, str]] = []

    def export(self, lag: QueryLag) -> None:
        self.lags.append(lag)

    def query_ended(self, query_id: str, run_id: str) -> None:
        self.ended.append((query_id, run_id))


def test_lag_exporters_get_the_lag_of_continuous_queries() -> None:
    """A lag listener exports the lag of each report, and the end of the query."""
    notes = Notes()
    with LagListener([notes]) as listener:
        listener.progressed(PROGRESS)
        listener.query_ended("id", "run")
    [lag] = notes.lags
    assert (lag.query_id, lag.run_id, lag.name, lag.batch_id) == ("id", "run", "totals", 7)
    [source] = lag.sources.values()
    assert [(each.partition, each.consumed, each.lag) for each in source.partitions] == [
        (FIRST, 60, 5),
        (SECOND, 40, 0),
    ]
    assert notes.ended == [("id", "run")]


def test_a_lag_listener_ignores_queries_that_it_is_not_for() -> None:
    """Names that are given to it hold for continuous queries as well."""
    notes = Notes()
    with LagListener([notes], queries=["orders"]) as listener:
        listener.progressed(PROGRESS)
    assert notes.lags == []


def test_no_lag_is_exported_while_no_broker_answers() -> None:
    """A report without the latest offsets has no lag."""
    notes = Notes()
    with LagListener([notes]) as listener:
        listener.progressed(IDLE)
    assert notes.lags == []


def test_the_lag_of_an_ended_query_is_followed_for_the_time_that_is_given() -> None:
    """Zero seconds are no seconds."""
    with LagListener(()) as listener:
        ended = SimpleNamespace(runId="run", isActive=False)
        before = time.monotonic()
        assert list(listener.lags(ended, 0)) == []  # type: ignore[arg-type]
        assert time.monotonic() - before < 3
