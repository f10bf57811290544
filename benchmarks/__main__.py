"""Batch reads in Spark: both clients beside the JVM connector, on the same topic.

Prints the median of alternated runs and the ratio to the JVM connector as it comes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from pyspark_kafka.brokers import KafkaCluster, connector_jars

if TYPE_CHECKING:
    from collections.abc import Mapping

TOPIC: Final = "benchmark"
PARTITIONS: Final = 2

READERS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "JVM connector": ("kafka", {}),
    "kafka-python": ("pyspark_kafka", {"client": "kafka-python"}),
    "confluent": ("pyspark_kafka", {"client": "confluent"}),
}


def main() -> None:
    """Fill a topic, read it with every reader in turn, and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--records", type=int, default=500_000, help="records in the topic")
    parser.add_argument("--bytes", type=int, default=100, help="bytes of a value")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each reader")
    arguments = parser.parse_args()
    with KafkaCluster() as kafka:
        kafka.create_topic(TOPIC, PARTITIONS)
        fill(kafka.bootstrap_servers, arguments.records, arguments.bytes)
        spark = spark_session()
        seconds = measure(spark, kafka.options, arguments.runs)
        spark.stop()
    print_table(seconds, arguments.records)


def fill(bootstrap_servers: str, records: int, size: int) -> None:
    """Write records of random bytes, spread over the partitions."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "linger.ms": 50,
            "queue.buffering.max.messages": records,
            "log_level": 0,
        }
    )
    value = os.urandom(size)
    for number in range(records):
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def spark_session() -> SparkSession:
    """Start Spark with the JVM connector beside this source."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def measure(
    spark: SparkSession, options: Mapping[str, str], runs: int
) -> Mapping[str, list[float]]:
    """Give the seconds of each run; the first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in READERS}
    for run in range(runs + 1):
        for name, (source, chosen) in READERS.items():
            began = time.perf_counter()
            reader = spark.read.format(source).options(subscribe=TOPIC, **options, **chosen)
            reader.load().write.format("noop").mode("overwrite").save()
            if run > 0:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def print_table(seconds: Mapping[str, list[float]], records: int) -> None:
    """Print medians, and the ratio of each to the JVM connector's."""
    medians = {name: statistics.median(runs) for name, runs in seconds.items()}
    print(f"{'reader':<16}{'median s':>10}{'records/s':>12}{'ratio':>8}")
    for name, median in medians.items():
        ratio = medians["JVM connector"] / median
        print(f"{name:<16}{median:>10.2f}{records / median:>12,.0f}{ratio:>7.2f}x")


if __name__ == "__main__":
    main()
