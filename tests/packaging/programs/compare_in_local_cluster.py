"""Read a topic with both clients and with the JVM connector, in executors of their own.

Run by a Python that does not have the package: the script ``shipping`` adds it to the job. Prints,
as JSON, how many rows each comparison found on one side only.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLIENTS = ("confluent", "kafka-python")


def main(bootstrap_servers: str, topic: str, shipping: str, jars: str) -> None:
    """Compare, and print what was found."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local-cluster[1,2,1024]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    runpy.run_path(shipping, {"spark": spark})
    options = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "includeHeaders": "true",
        "startingOffsets": "earliest",
    }
    theirs = spark.read.format("kafka").options(**options).load().cache()
    found = {"rows": theirs.count()}
    for client in CLIENTS:
        ours = {**options, "client": client}
        # It would be read for each direction of the comparison.
        batch = spark.read.format("pyspark_kafka").options(**ours).load().cache()
        found[f"batch {client}"] = _difference(batch, theirs)
        stream = spark.readStream.format("pyspark_kafka").options(**ours).load()
        found[f"stream {client}"] = _difference(_run(stream), theirs)
    print(json.dumps(found))
    spark.stop()


def _run(stream: DataFrame) -> DataFrame:
    directory = tempfile.mkdtemp()
    query = (
        stream.writeStream.format("parquet")
        .option("path", f"{directory}/output")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return stream.sparkSession.read.schema(stream.schema).parquet(f"{directory}/output")


def _difference(ours: DataFrame, theirs: DataFrame) -> int:
    return ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()


if __name__ == "__main__":
    main(*sys.argv[1:])
