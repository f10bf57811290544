import logging
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pyspark_kafka.adapters.prometheus import (
    PrometheusCheckpointExporter,
    PrometheusLagExporter,
    PrometheusProgressListener,
    new_registry,
    serving,
)
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.adapters.system.logged import LoggingLagExporter, LoggingProgressListener
from pyspark_kafka.application.checkpoints.logs import CheckpointState
from pyspark_kafka.application.lag.monitor import CheckpointReport, LagSnapshot, MeasurementFailure
from pyspark_kafka.domain.checkpoints.checkpoint_log import CheckpointedBatch
from pyspark_kafka.domain.continuous.progress import (
    EpochProgress,
    LatencyHistogram,
    QueryIdentity,
    TaskProgress,
)
from pyspark_kafka.domain.errors import BrokerUnreachableError, MissingDependencyError
from pyspark_kafka.domain.lag.lag import PartitionLag, QueryLag, SourceLag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason
from pyspark_kafka.ports.lag import LagExporter

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
SCRAPES = Path(__file__).parent / "scrapes"
BAD = BadRecordStats({FailureReason.MALFORMED: 3, FailureReason.BAD_UTF8: 2}, dead_letters=4)


def lag(
    behind: int = 5, *, query: str = "id", run: str = "run", name: str | None = None
) -> QueryLag:
    source = SourceLag.in_offsets({FIRST: 0, SECOND: 3}, {FIRST: behind, SECOND: 3})
    return QueryLag(query, run, name, 7, 1_700_000_000_500, {"1": source})


@pytest.fixture
def registry():
    return CollectorRegistry()


def series(registry: CollectorRegistry) -> dict[str, float]:
    """Return the values that Prometheus scrapes, by series, without times of creation."""
    return samples(generate_latest(registry).decode())


def samples(scraped: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in scraped.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines if "_created" not in name}


def test_prometheus_has_a_gauge_for_each_partition(registry):
    PrometheusLagExporter(registry).export(lag(name="orders"))
    assert series(registry) == samples((SCRAPES / "lag.prom").read_text())


def test_prometheus_has_what_was_lost(registry):
    """By partition: offsets that retention deleted, and logs that end too early."""
    source = SourceLag.of(
        [PartitionLag.in_offsets(FIRST, 3, 9, 5), PartitionLag.in_offsets(SECOND, 8, 4)]
    )
    PrometheusLagExporter(registry).export(QueryLag("id", "run", None, 7, 0, {"0": source}))
    found = {
        (name.partition("{")[0], name.partition('partition="')[2][0]): value
        for name, value in series(registry).items()
        if 'partition="' in name
    }
    assert found["pyspark_kafka_lag_expired", "0"] == 2
    assert found["pyspark_kafka_lag_truncated", "0"] == 0
    assert found["pyspark_kafka_lag_expired", "1"] == 0
    assert found["pyspark_kafka_lag_truncated", "1"] == 1


def test_prometheus_has_no_time_that_is_not_known(registry):
    PrometheusLagExporter(registry).export(replace(lag(), timestamp_ms=0))
    names = series(registry)
    assert names
    assert not [name for name in names if "timestamp" in name]


def test_prometheus_counts_bad_records_where_they_are_known(registry):
    exporter = PrometheusLagExporter(registry)
    exporter.export(lag(query="a"))
    exporter.export(replace(lag(query="b"), bad_records=BAD))
    found = {name: n for name, n in series(registry).items() if "bad" in name or "dead" in name}
    labels = 'query="",query_id="b"'
    assert found == {
        f'pyspark_kafka_bad_records_total{{{labels},reason="MALFORMED"}}': 3.0,
        f'pyspark_kafka_bad_records_total{{{labels},reason="BAD_UTF8"}}': 2.0,
        f"pyspark_kafka_dead_letters_total{{{labels}}}": 4.0,
    }


def test_the_log_line_has_the_bad_records(caplog):
    with caplog.at_level(logging.INFO, "pyspark_kafka.lag"):
        LoggingLagExporter().export(replace(lag(), bad_records=BadRecordStats()))
        LoggingLagExporter().export(replace(lag(), bad_records=BAD))
    first, second = (record.getMessage() for record in caplog.records)
    assert second == f"{first}, bad records: 3 MALFORMED, 2 BAD_UTF8; 4 dead letters"
    assert first.endswith("by partition)")


def test_prometheus_removes_the_series_of_an_ended_query(registry):
    exporter = PrometheusLagExporter(registry)
    exporter.export(lag(run="first"))
    exporter.query_ended("id", "first")
    assert series(registry) == {}


def test_prometheus_can_be_closed(registry):
    exporter = PrometheusLagExporter(registry)
    exporter.export(lag())
    exporter.close()
    exporter.close()
    assert series(registry) == {}
    PrometheusLagExporter(registry)


@pytest.mark.parametrize("make", [PrometheusLagExporter, PrometheusProgressListener, new_registry])
def test_a_missing_prometheus_client_names_the_extra(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[prometheus\]'"):
        make()


def test_a_log_line_for_each_batch(caplog):
    exporter = LoggingLagExporter(logging.WARNING)
    with caplog.at_level(logging.INFO, "pyspark_kafka"):
        exporter.export(lag(name="orders"))
        exporter.export(lag(0))
        exporter.query_ended("id", "run")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "Query orders is 5 offsets behind after batch 7 (min 0, max 5, avg 2.5 by partition)",
        ),
        (
            "WARNING",
            "Query id is 0 records behind after batch 7 (min 0, max 0, avg 0.0 by partition)",
        ),
    ]


def test_a_log_line_for_each_partition(caplog):
    with caplog.at_level(logging.DEBUG, "pyspark_kafka"):
        LoggingLagExporter().export(lag())
    assert [record.getMessage() for record in caplog.records][1:] == [
        "t-0: 5 behind",
        "t-1: 0 behind",
    ]


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


def figures(registry: CollectorRegistry) -> dict[str, float]:
    return {name.removeprefix("pyspark_kafka_"): n for name, n in series(registry).items()}


def test_prometheus_has_the_progress(registry):
    PrometheusProgressListener(registry).progressed(PROGRESS)
    assert series(registry) == samples((SCRAPES / "progress.prom").read_text())


def test_prometheus_has_no_series_for_what_is_unknown(registry):
    PrometheusProgressListener(registry).progressed(IDLE)
    names = {name.partition("{")[0] for name in figures(registry)}
    assert names.isdisjoint({"continuous_lag", "continuous_latency_seconds"})
    assert len(names) == 7


def test_prometheus_counts_bad_records_by_reason(registry):
    work = replace(PROGRESS.work, bad_records=BadRecordStats({FailureReason.TRUNCATED: 1}))
    PrometheusProgressListener(registry).progressed(replace(PROGRESS, work=work, bad_records=BAD))
    found = {name: n for name, n in figures(registry).items() if "bad" in name or "dead" in name}
    assert found == {
        'continuous_bad_records_total{query="totals",query_id="id",reason="MALFORMED"}': 3.0,
        'continuous_bad_records_total{query="totals",query_id="id",reason="BAD_UTF8"}': 2.0,
        f"continuous_dead_letters_total{{{LABELS}}}": 4.0,
    }


def test_the_progress_of_an_ended_query_is_removed(registry):
    listener = PrometheusProgressListener(registry)
    listener.progressed(PROGRESS)
    listener.query_ended("id", "run")
    assert figures(registry) == {}


def test_a_log_line_for_each_report(caplog):
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


def test_the_log_line_has_the_bad_records_of_its_report(caplog):
    work = replace(PROGRESS.work, bad_records=BAD)
    with caplog.at_level(logging.INFO, "pyspark_kafka.continuous"):
        LoggingProgressListener().progressed(replace(PROGRESS, work=work))
    [record] = caplog.records
    assert record.getMessage().endswith(
        ", 1 restarts, bad records: 3 MALFORMED, 2 BAD_UTF8; 4 dead letters"
    )


def test_lag_exporters_get_the_lag_of_continuous_queries():
    notes = Mock(LagExporter)
    with LagListener([notes]) as listener:
        listener.progressed(PROGRESS)
        listener.query_ended("id", "run")
    [((lag,), _)] = notes.export.call_args_list
    assert (lag.query_id, lag.run_id, lag.name, lag.batch_id) == ("id", "run", "totals", 7)
    [source] = lag.sources.values()
    assert [(each.partition, each.consumed, each.lag) for each in source.partitions] == [
        (FIRST, 60, 5),
        (SECOND, 40, 0),
    ]
    notes.query_ended.assert_called_once_with("id", "run")


def test_a_lag_listener_ignores_queries_that_it_is_not_for():
    notes = Mock(LagExporter)
    with LagListener([notes], queries=["orders"]) as listener:
        listener.progressed(PROGRESS)
    notes.export.assert_not_called()


def test_no_lag_is_exported_while_no_broker_answers():
    notes = Mock(LagExporter)
    with LagListener([notes]) as listener:
        listener.progressed(IDLE)
    notes.export.assert_not_called()


def test_the_lag_of_an_ended_query_is_followed_for_the_time_that_is_given():
    with LagListener(()) as listener:
        ended = SimpleNamespace(runId="run", isActive=False)
        before = time.monotonic()
        assert list(listener.lags(ended, 0)) == []  # type: ignore[arg-type]
        assert time.monotonic() - before < 3


READ = PartitionOffsets({TopicPartition("t", 0): 4, TopicPartition("gone", 0): 1})
LAG = SourceLag.in_offsets({TopicPartition("t", 0): 4}, {TopicPartition("t", 0): 9})
MEASURED = CheckpointReport(
    "orders",
    "id",
    0.25,
    LagSnapshot(CheckpointState(CheckpointedBatch(7, 1_500, {"0": READ})), {"0": LAG}),
)
FAILED = CheckpointReport(
    "orders", "id", 2, failure=MeasurementFailure.of(BrokerUnreachableError("broker:9092", 2))
)


def test_a_checkpoint_has_its_lag_and_its_last_batch(registry):
    PrometheusCheckpointExporter(registry).put(MEASURED)
    found = series(registry)
    name = '{query="orders"}'
    assert {key: value for key, value in found.items() if "checkpoint" in key} == {
        f"pyspark_kafka_checkpoint_up{name}": 1,
        f"pyspark_kafka_checkpoint_measurement_seconds{name}": 0.25,
        f"pyspark_kafka_checkpoint_batch{name}": 7,
        f"pyspark_kafka_checkpoint_partitions_gone{name}": 1,
    }
    query = '{query="orders",query_id="id"}'
    assert found[f"pyspark_kafka_lag_max{query}"] == 5
    assert found[f"pyspark_kafka_lag_timestamp_seconds{query}"] == 1.5


def test_a_failure_is_counted_and_takes_the_lag_away(registry):
    """An old lag would look like a current one."""
    exporter = PrometheusCheckpointExporter(registry)
    for report in (MEASURED, FAILED, FAILED):
        exporter.put(report)
    name = 'query="orders"'
    assert series(registry) == {
        f"pyspark_kafka_checkpoint_up{{{name}}}": 0,
        f"pyspark_kafka_checkpoint_measurement_seconds{{{name}}}": 2,
        f'pyspark_kafka_checkpoint_errors_total{{condition="KAFKA_BROKER_UNREACHABLE",{name}}}': 2,
    }
    exporter.put(MEASURED)
    assert series(registry)[f"pyspark_kafka_checkpoint_up{{{name}}}"] == 1


def test_a_registry_is_served_until_the_end_of_the_block():
    registry = new_registry()
    PrometheusCheckpointExporter(registry).put(MEASURED)
    with serving(registry, "127.0.0.1", 0) as url:
        with urlopen(url) as answer:  # noqa: S310 - the URL is ours
            assert b"pyspark_kafka_lag_max{" in answer.read()
        port = int(url.removesuffix("/metrics").rpartition(":")[2])
        with (
            pytest.raises(OSError, match=f"Cannot listen on 127.0.0.1, port {port}: "),
            serving(registry, "127.0.0.1", port),
        ):
            pass
    with serving(registry, "127.0.0.1", port):
        """The port is free again."""
