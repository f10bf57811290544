"""Servers that a run starts once and shares, and what most tests need of them."""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING

import pytest

import pyspark_kafka
from pyspark_kafka.brokers import KafkaCluster, connector_jars

from .spark.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from .servers.hdfs import HdfsCluster
    from .servers.s3 import S3Server

BROKER_CONFIG = {
    # Compaction is looked at every 15 s by default, which a test would have to wait for.
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    # Tests write records with old timestamps; a topic that is to lose them says so itself.
    "log.retention.ms": "-1",
}


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """Run a real Apache Kafka broker for as long as the tests run."""
    with KafkaCluster(config=BROKER_CONFIG) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsCluster]:
    """Run a real HDFS for as long as the tests run."""
    from .servers.hdfs import HdfsCluster

    with HdfsCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """Run moto's server of S3 for as long as the tests run."""
    from .servers.s3 import run_s3

    with run_s3() as server:
        yield server


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[], str]:
    """Give a name that no other test uses."""
    numbers = itertools.count(1)
    return lambda: f"t{next(numbers)}"


@pytest.fixture(params=["confluent", "kafka-python"])
def client(request: pytest.FixtureRequest) -> str:
    """Give each client in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def topics(kafka: KafkaCluster, fresh_name: Callable[[], str]) -> Topics:
    """Give a way to make topics with records."""
    return Topics(kafka, fresh_name)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Run Spark in this process, with this source and with the JVM connector."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = pyspark_kafka.session(
        SparkSession.builder.master("local[2]")
        .appName("pyspark-kafka tests")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
