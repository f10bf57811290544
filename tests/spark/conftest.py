"""A Spark session that has both this source and the JVM connector."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.brokers import connector_jars

from .topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka.brokers import KafkaCluster


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Run Spark in this process for as long as the tests run."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pyspark-kafka tests")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def topics(kafka: KafkaCluster, fresh_name: Callable[[], str]) -> Topics:
    """Give a way to make topics with records."""
    return Topics(kafka, fresh_name)


@pytest.fixture(params=["confluent", "kafka-python"])
def client(request: pytest.FixtureRequest) -> str:
    """Give each client in turn."""
    name: str = request.param
    return name
