from __future__ import annotations

import sys
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pyspark_kafka.adapters.prometheus.checkpoint_exporter import PrometheusCheckpointExporter
from pyspark_kafka.adapters.prometheus.http_server import new_registry, serving
from pyspark_kafka.application.checkpoints.logs import CheckpointState
from pyspark_kafka.application.lag.checkpoint_lag import CheckpointReport, MeasurementFailure
from pyspark_kafka.application.lag.monitor import LagSnapshot
from pyspark_kafka.domain.checkpoints.checkpoint_log import CheckpointedBatch
from pyspark_kafka.domain.errors import BrokerUnreachableError, MissingDependencyError
from pyspark_kafka.domain.lag.lag import SourceLag
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

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


def scraped(registry: CollectorRegistry) -> dict[str, float]:
    """Return the values of what a scrape has, by series, without times of creation."""
    lines = generate_latest(registry).decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples if "_created" not in name}


def test_a_checkpoint_has_its_lag_and_its_last_batch() -> None:
    registry = CollectorRegistry()
    PrometheusCheckpointExporter(registry).put(MEASURED)
    found = scraped(registry)
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


def test_a_failure_is_counted_and_takes_the_lag_away() -> None:
    """An old lag would look like a current one."""
    registry = CollectorRegistry()
    exporter = PrometheusCheckpointExporter(registry)
    for report in (MEASURED, FAILED, FAILED):
        exporter.put(report)
    name = 'query="orders"'
    assert scraped(registry) == {
        f"pyspark_kafka_checkpoint_up{{{name}}}": 0,
        f"pyspark_kafka_checkpoint_measurement_seconds{{{name}}}": 2,
        f'pyspark_kafka_checkpoint_errors_total{{condition="KAFKA_BROKER_UNREACHABLE",{name}}}': 2,
    }
    exporter.put(MEASURED)
    assert scraped(registry)[f"pyspark_kafka_checkpoint_up{{{name}}}"] == 1


def test_a_registry_is_served_until_the_end_of_the_block() -> None:
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


def test_a_missing_prometheus_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without prometheus-client, the command says what to install."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[prometheus\]'"):
        new_registry()
