"""Read a topic with a package that the script ``shipping`` adds to the job.

Prints how many rows a batch and a stream had.
"""

import os
import runpy
import sys
import tempfile

from pyspark.sql import SparkSession


def main(master: str, bootstrap_servers: str, topic: str, shipping: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.cores.max", "1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    runpy.run_path(shipping, {"spark": spark})
    options = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    batch = spark.read.format("pyspark_kafka").options(**options).load()
    stream = spark.readStream.format("pyspark_kafka").options(**options).load()
    query = (
        stream.writeStream.format("memory")
        .queryName("shipped")
        .option("checkpointLocation", tempfile.mkdtemp())
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(batch.count(), spark.table("shipped").count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
