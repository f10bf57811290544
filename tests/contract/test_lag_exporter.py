"""The contract of every ``LagExporter``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from pyspark_kafka.adapters.prometheus.lag_exporter import PrometheusLagExporter
from pyspark_kafka.adapters.system.logged import LoggingLagExporter
from pyspark_kafka.testing import LagExporterContract

if TYPE_CHECKING:
    from pyspark_kafka.ports.lag_exporter import LagExporter


class TestPrometheusLagExporter(LagExporterContract):
    @pytest.fixture
    def exporter(self) -> LagExporter:
        """Return an exporter with its own registry."""
        return PrometheusLagExporter(CollectorRegistry())


class TestLoggingLagExporter(LagExporterContract):
    @pytest.fixture
    def exporter(self) -> LagExporter:
        """Return an exporter to the log."""
        return LoggingLagExporter()
