import logging
import re

import pytest
from prometheus_client import CollectorRegistry

from pyspark_kafka.adapters.prometheus import PrometheusProgressListener
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.adapters.system.logged import LoggingLagExporter, LoggingProgressListener
from pyspark_kafka.domain.continuous.progress import QueryIdentity
from pyspark_kafka.testing import ProgressListenerContract

from .observing import last_number, log_lines


class TestPrometheusProgressListener(ProgressListenerContract):
    @pytest.fixture
    def registry(self):
        return CollectorRegistry()

    @pytest.fixture
    def listener(self, registry):
        return PrometheusProgressListener(registry)

    @pytest.fixture
    def observed(self, registry):
        """Look at a query's sample of its epoch."""

        def last_epoch(query: QueryIdentity) -> int | None:
            labels = {"query_id": query.query_id, "query": query.name or ""}
            value = registry.get_sample_value("pyspark_kafka_continuous_epoch", labels)
            return None if value is None else int(value)

        return last_epoch


class TestLoggingProgressListener(ProgressListenerContract):
    forgets_ended_queries = False

    @pytest.fixture
    def listener(self, caplog):
        caplog.set_level(logging.INFO, logger="pyspark_kafka.continuous")
        return LoggingProgressListener()

    @pytest.fixture
    def observed(self, caplog):
        """Read the last line about a query."""
        return lambda query: last_number(
            log_lines(caplog, "pyspark_kafka.continuous"), rf"Query {_shown(query)}, epoch (\d+):"
        )


class TestLagListener(ProgressListenerContract):
    forgets_ended_queries = False

    @pytest.fixture
    def listener(self, caplog):
        caplog.set_level(logging.INFO, logger="pyspark_kafka.lag")
        return LagListener([LoggingLagExporter()])

    @pytest.fixture
    def observed(self, caplog):
        """Read the last line about a query's lag."""
        return lambda query: last_number(
            log_lines(caplog, "pyspark_kafka.lag"),
            rf"Query {_shown(query)} is \d+ \w+ behind after batch (\d+) ",
        )


def _shown(query: QueryIdentity) -> str:
    return re.escape(query.name or query.query_id)
