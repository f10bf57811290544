"""Ask for sessions of Spark Connect as a user would, and print what came of it as JSON."""

from __future__ import annotations

import json
import logging
import sys

from pyspark.sql import SparkSession

import pyspark_kafka
from pyspark_kafka.adapters.spark.log_filter import STRING_REDACTION


def main(url: str) -> None:
    """Use a server that runs, and then one that this process starts."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("pyspark_kafka").addHandler(handler)

    spark = pyspark_kafka.session(SparkSession.Builder().remote(url))
    remote = {
        "warnings": said[:],
        "redacts": is_redacting(spark),
        "same": pyspark_kafka.session() is spark,
    }
    spark.stop()
    said.clear()

    spark = pyspark_kafka.session(local())
    server = {
        "warnings": said[:],
        "redacts": is_redacting(spark),
        "buffer": spark.conf.get("spark.buffer.size"),
        "daemon": spark.conf.get("spark.python.daemon.module"),
        "same": pyspark_kafka.session() is spark,
    }
    spark.stop()
    print(json.dumps({"remote": remote, "local": server}))


def is_redacting(spark: SparkSession) -> bool:
    """Return whether the session has a pattern, which Spark does not show."""
    return "redacted" in str(spark.sql(f"SET {STRING_REDACTION}").collect()[0].value)


def local() -> SparkSession.Builder:
    return (
        SparkSession.Builder()
        .master("local[1]")
        .config("spark.api.mode", "connect")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
    )


if __name__ == "__main__":
    main(sys.argv[1])
