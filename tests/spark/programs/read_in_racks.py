"""Read a topic on a cluster, and keep each record with the rack of the executor that read it.

Each line of the input is JSON with a query's kind, the options of its source and an empty
directory, which gets files of Parquet. A line of output says that the query has ended.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from pyspark_kafka import continuous

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    # Tasks wait for an executor on each worker.
    "spark.cores.max": "3",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
SCHEMA: Final = "partition int, offset long, value binary, rack string"
PATIENCE_S: Final = 300
TASKS: Final = 3


def in_rack(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with the rack of this process, which is the one of their executor."""
    rack = pa.array([os.environ["KAFKA_CLIENT_RACK"]] * len(records))
    kept = records.select(["partition", "offset", "value"])
    return pa.RecordBatch.from_arrays([*kept.columns, rack], [*kept.schema.names, "rack"])


def each_in_rack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(in_rack, batches)


def run_batch(spark: SparkSession, source: dict[str, str], directory: Path) -> None:
    rows = spark.read.format("pyspark_kafka").options(**source).load()
    rows.mapInArrow(each_in_rack, SCHEMA).write.mode("append").parquet(str(directory))


def run_micro_batch(spark: SparkSession, source: dict[str, str], directory: Path) -> None:
    rows = spark.readStream.format("pyspark_kafka").options(**source).load()
    query = (
        rows.mapInArrow(each_in_rack, SCHEMA)
        .writeStream.format("parquet")
        .option("path", str(directory))
        .option("checkpointLocation", f"{directory}-checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_S)


def run_continuous(spark: SparkSession, source: dict[str, str], directory: Path) -> None:
    def keep(records: pa.RecordBatch) -> None:
        path = directory / f"{uuid.uuid4().hex}.parquet"
        parquet.write_table(pa.Table.from_batches([in_rack(records)]), path)

    query = continuous.start(
        spark,
        keep,
        source=source,
        checkpointLocation=f"{directory}-checkpoint",
        tasks=TASKS,
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()


KINDS: Final = {
    "batch": run_batch,
    "micro-batch": run_micro_batch,
    "continuous": run_continuous,
}


def main(master: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        asked = json.loads(line)
        KINDS[asked["kind"]](spark, asked["source"], Path(asked["directory"]))
        print("ended", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
