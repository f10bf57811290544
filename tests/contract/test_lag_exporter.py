import logging
import re

import pytest
from prometheus_client import CollectorRegistry

from pyspark_kafka.adapters.prometheus import PrometheusLagExporter
from pyspark_kafka.adapters.system.logged import LoggingLagExporter
from pyspark_kafka.domain.lag.lag import QueryLag
from pyspark_kafka.testing import LagExporterContract

from .observing import last_number, log_lines


class TestPrometheusLagExporter(LagExporterContract):
    @pytest.fixture
    def registry(self):
        return CollectorRegistry()

    @pytest.fixture
    def exporter(self, registry):
        return PrometheusLagExporter(registry)

    @pytest.fixture
    def observed(self, registry):
        """Sum the samples of a query's partitions."""

        def total(lag: QueryLag) -> int | None:
            labels = {"query_id": lag.query_id, "query": lag.name or ""}
            found = [
                sample.value
                for metric in registry.collect()
                for sample in metric.samples
                if sample.name == "pyspark_kafka_lag" and labels.items() <= sample.labels.items()
            ]
            return int(sum(found)) if found else None

        return total


class TestLoggingLagExporter(LagExporterContract):
    forgets_ended_queries = False

    @pytest.fixture
    def exporter(self, caplog):
        caplog.set_level(logging.INFO, logger="pyspark_kafka.lag")
        return LoggingLagExporter()

    @pytest.fixture
    def observed(self, caplog):
        """Read the last line about a query."""
        return lambda lag: last_number(
            log_lines(caplog, "pyspark_kafka.lag"),
            rf"Query {re.escape(lag.name or lag.query_id)} is (\d+) offsets behind",
        )
