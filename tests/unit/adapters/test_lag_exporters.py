from __future__ import annotations

import logging
import sys
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pyspark_kafka.adapters.prometheus.lag_exporter import PrometheusLagExporter
from pyspark_kafka.adapters.system.logged import LoggingLagExporter
from pyspark_kafka.domain.errors import MissingDependencyError
from pyspark_kafka.domain.lag.lag import PartitionLag, QueryLag, SourceLag
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason

BAD = BadRecordStats({FailureReason.MALFORMED: 3, FailureReason.BAD_UTF8: 2}, dead_letters=4)


def lag(
    behind: int = 5, *, query: str = "id", run: str = "run", name: str | None = None
) -> QueryLag:
    """Return the lag of a query that reads two partitions, one of them completely."""
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    source = SourceLag.in_offsets({first: 0, second: 3}, {first: behind, second: 3})
    return QueryLag(query, run, name, 7, 1_700_000_000_500, {"1": source})


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def series(registry: CollectorRegistry) -> dict[str, float]:
    """Return the values that Prometheus scrapes, by series."""
    lines = generate_latest(registry).decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def test_prometheus_has_a_gauge_for_each_partition(registry: CollectorRegistry) -> None:
    """Labels identify query, source, topic and partition."""
    PrometheusLagExporter(registry).export(lag(name="orders"))
    labels = 'query="orders",query_id="id",source="1",topic="t"'
    query = 'query="orders",query_id="id"'
    assert series(registry) == {
        f'pyspark_kafka_lag{{partition="0",{labels}}}': 5.0,
        f'pyspark_kafka_lag{{partition="1",{labels}}}': 0.0,
        f'pyspark_kafka_lag_exact{{partition="0",{labels}}}': 0.0,
        f'pyspark_kafka_lag_exact{{partition="1",{labels}}}': 1.0,
        f'pyspark_kafka_lag_expired{{partition="0",{labels}}}': 0.0,
        f'pyspark_kafka_lag_expired{{partition="1",{labels}}}': 0.0,
        f'pyspark_kafka_lag_truncated{{partition="0",{labels}}}': 0.0,
        f'pyspark_kafka_lag_truncated{{partition="1",{labels}}}': 0.0,
        f"pyspark_kafka_lag_min{{{query}}}": 0.0,
        f"pyspark_kafka_lag_max{{{query}}}": 5.0,
        f"pyspark_kafka_lag_avg{{{query}}}": 2.5,
        f"pyspark_kafka_lag_timestamp_seconds{{{query}}}": 1_700_000_000.5,
        f'pyspark_kafka_lag_run_info{{{query},run_id="run"}}': 1.0,
    }


def test_prometheus_has_what_was_lost(registry: CollectorRegistry) -> None:
    """By partition: offsets that retention deleted, and logs that end too early."""
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    source = SourceLag.of(
        [PartitionLag.in_offsets(first, 3, 9, 5), PartitionLag.in_offsets(second, 8, 4)]
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


def test_prometheus_has_no_time_that_is_not_known(registry: CollectorRegistry) -> None:
    """A batch without a time is not one of 1970."""
    PrometheusLagExporter(registry).export(replace(lag(), timestamp_ms=0))
    assert not [name for name in series(registry) if "timestamp" in name]


def test_prometheus_counts_bad_records_where_they_are_known(registry: CollectorRegistry) -> None:
    """By query and reason, with the dead letters."""
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


def test_the_log_line_has_the_bad_records(caplog: pytest.LogCaptureFixture) -> None:
    """If there are any."""
    with caplog.at_level(logging.INFO, "pyspark_kafka.lag"):
        LoggingLagExporter().export(replace(lag(), bad_records=BadRecordStats()))
        LoggingLagExporter().export(replace(lag(), bad_records=BAD))
    first, second = (record.getMessage() for record in caplog.records)
    assert second == f"{first}, bad records: 3 MALFORMED, 2 BAD_UTF8; 4 dead letters"
    assert first.endswith("by partition)")


def test_prometheus_has_the_newest_lag(registry: CollectorRegistry) -> None:
    """A later batch replaces the lag of its query, and of no other."""
    exporter = PrometheusLagExporter(registry)
    for each in (lag(9, query="a"), lag(8, query="b"), lag(1, query="a")):
        exporter.export(each)
    most = {name: value for name, value in series(registry).items() if "_max" in name}
    assert most == {
        'pyspark_kafka_lag_max{query="",query_id="a"}': 1.0,
        'pyspark_kafka_lag_max{query="",query_id="b"}': 8.0,
    }


def test_prometheus_removes_the_series_of_an_ended_query(registry: CollectorRegistry) -> None:
    """The end of a run removes its series, but not the next run's."""
    exporter = PrometheusLagExporter(registry)
    exporter.export(lag(run="first"))
    exporter.query_ended("id", "first")
    assert series(registry) == {}
    exporter.export(lag(run="second"))
    exporter.query_ended("id", "first")
    assert series(registry) != {}


def test_prometheus_can_be_closed(registry: CollectorRegistry) -> None:
    """Afterwards another exporter can be registered."""
    exporter = PrometheusLagExporter(registry)
    exporter.export(lag())
    exporter.close()
    exporter.close()
    assert series(registry) == {}
    PrometheusLagExporter(registry)


def test_a_missing_prometheus_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without prometheus-client, the exporter says what to install."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[prometheus\]'"):
        PrometheusLagExporter()


def test_a_log_line_for_each_batch(caplog: pytest.LogCaptureFixture) -> None:
    """The line has the numbers and their unit, records or offsets."""
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


def test_a_log_line_for_each_partition(caplog: pytest.LogCaptureFixture) -> None:
    """At level DEBUG each partition has a line."""
    with caplog.at_level(logging.DEBUG, "pyspark_kafka"):
        LoggingLagExporter().export(lag())
    assert [record.getMessage() for record in caplog.records][1:] == [
        "t-0: 5 behind",
        "t-1: 0 behind",
    ]
