"""A real Spark Connect server on a loopback port, with a local master."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark_kafka.adapters.spark.log_filter import SENSITIVE
from pyspark_kafka.adapters.spark.session import REDACTION
from pyspark_kafka.bootstrap.option_policy import SPARK_SETTING, VARIABLE
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.security.policy import AllowList

from .java_server import listens, running

DISALLOWED: Final = "client.rack"
"""The option of the Kafka client that the server's environment forbids."""

SPARK_DISALLOWED: Final = "fetch.min.bytes"
"""The one that Spark's setting forbids, which it passes to no Python worker."""

SPARK_ALLOWED: Final = "sasl.kerberos.kinit.cmd"
"""The one that a setting of Spark's application allows, which it does not pass on either."""

_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def run_connect_server() -> Iterator[str]:
    """Run a server, and yield its URL; it starts as by Spark's ``start-connect-server.sh``."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="spark-connect-") as name:
        directory = Path(name)
        command = _command(port, directory)
        with running("Spark Connect", {"server": command}, directory, lambda: listens(port)):
            yield f"sc://127.0.0.1:{port}"


def _command(port: int, directory: Path) -> list[str]:
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        SPARK_SETTING: SPARK_DISALLOWED,
        AllowList.OPTIONS.spark_setting: SPARK_ALLOWED,
        REDACTION: SENSITIVE,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": directory.as_uri(),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    options = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    variables = (f"PYSPARK_PYTHON={sys.executable}", f"{VARIABLE}={DISALLOWED}")
    submit = f"{os.environ['SPARK_HOME']}/bin/spark-submit"
    server = ("--class", _CLASS, "--master", "local[2]", *options, "spark-internal")
    return ["/usr/bin/env", *variables, submit, *server]
