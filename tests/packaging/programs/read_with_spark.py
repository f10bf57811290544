"""Read a topic with an installed package that is not registered. Prints the number of rows."""

import os
import sys

from pyspark.sql import SparkSession


def main(bootstrap_servers: str, topic: str, client: str = "kafka-python") -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    table = (
        spark.read.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("client", client)
        .load()
    )
    print(table.count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
