"""The contract of every ``ProgressListener``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from pyspark_kafka.adapters.prometheus.progress_listener import PrometheusProgressListener
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.adapters.system.logged import LoggingLagExporter, LoggingProgressListener
from pyspark_kafka.testing import ProgressListenerContract

if TYPE_CHECKING:
    from pyspark_kafka.ports.progress_listener import ProgressListener


class TestPrometheusProgressListener(ProgressListenerContract):
    @pytest.fixture
    def listener(self) -> ProgressListener:
        """Return a listener with its own registry."""
        return PrometheusProgressListener(CollectorRegistry())


class TestLoggingProgressListener(ProgressListenerContract):
    @pytest.fixture
    def listener(self) -> ProgressListener:
        """Return a listener that logs."""
        return LoggingProgressListener()


class TestLagListener(ProgressListenerContract):
    @pytest.fixture
    def listener(self) -> ProgressListener:
        """Return a listener that exports lag to the log."""
        return LagListener([LoggingLagExporter()])
