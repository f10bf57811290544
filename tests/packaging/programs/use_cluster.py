"""Read and write topics on a cluster, and lose an executor on the way.

The format is neither imported nor registered: Spark finds it in the environment of the driver and
of the executors. Writes the rows that were read, by how they were, to a file of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

CLIENTS = ("confluent", "kafka-python")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    # Tasks wait for both executors.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    # The executor is lost between two batches of a task.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
}


def main(bootstrap_servers: str, topic: str, copies: dict[str, str], directory: Path) -> None:
    """Read and write with both clients, and write what was found to ``found.json``."""
    builder = SparkSession.builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    kafka = {"kafka.bootstrap.servers": bootstrap_servers}
    source = {**kafka, "subscribe": topic, "startingOffsets": "earliest", "includeHeaders": "true"}
    found: dict[str, object] = {
        "packages": spark.sparkContext.range(2, numSlices=2).map(place_of_package).collect()
    }
    for client in CLIENTS:
        given = {**source, "client": client}
        found[f"batch {client}"] = rows(read(spark, given))
        found[f"stream {client}"] = rows(stream(spark, given, directory / client))
        write(read(spark, given), {**kafka, "client": client, "topic": copies[client]})
    sink = {**kafka, "topic": copies["stream"], "deliveryGuarantee": "exactly-once"}
    copy_losing_an_executor(spark, {**source, "maxOffsetsPerTrigger": "100"}, sink, directory)
    for name, copy in copies.items():
        given = {**source, "subscribe": copy, "kafka.isolation.level": "read_committed"}
        found[f"written {name}"] = rows(read(spark, given))
    (directory / "found.json").write_text(json.dumps(found, default=bytes.hex))
    spark.stop()


def place_of_package(_: int) -> str:
    """Return where an executor finds the package."""
    import pyspark_kafka

    return pyspark_kafka.__file__


def read(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Return a topic."""
    return spark.read.format("pyspark_kafka").options(**options).load()


def stream(spark: SparkSession, options: dict[str, str], directory: Path) -> DataFrame:
    """Return what a streaming query read of a topic."""
    frame = spark.readStream.format("pyspark_kafka").options(**options).load()
    query = frame.writeStream.format("parquet").trigger(availableNow=True)
    paths = {"path": f"{directory}/output", "checkpointLocation": f"{directory}/checkpoint"}
    query.options(**paths).start().awaitTermination()
    return spark.read.schema(frame.schema).parquet(paths["path"])


def rows(frame: DataFrame) -> list[object]:
    """Return the records of a topic in their order, without their topic."""
    columns = ("key", "value", "partition", "unix_millis(timestamp)", "headers")
    return [list(row) for row in frame.sort("partition", "offset").selectExpr(*columns).collect()]


def write(frame: DataFrame, options: dict[str, str]) -> None:
    """Write records to a topic."""
    frame.drop("topic", "offset").write.format("pyspark_kafka").mode("append").options(
        **options
    ).save()


def copy_losing_an_executor(
    spark: SparkSession, source: dict[str, str], sink: dict[str, str], directory: Path
) -> None:
    """Copy a topic by a stream of several batches, and kill an executor in the first."""
    frame = spark.readStream.format("pyspark_kafka").options(**source).load()
    frame = frame.drop("topic", "offset")
    copied = frame.mapInArrow(losing_an_executor(directory / "killed"), frame.schema)
    query = copied.writeStream.format("pyspark_kafka").options(**sink)
    query = query.option("checkpointLocation", f"{directory}/copy").trigger(availableNow=True)
    query.start().awaitTermination()


def losing_an_executor(
    killed: Path,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that returns its batches, and kills its executor after the first of all."""

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            kill_executor_once(killed)

    return copy


def kill_executor_once(killed: Path) -> None:
    """Kill the JVM that started the daemon that forked this process, and write down its id."""
    try:
        killed.touch(exist_ok=False)
    except FileExistsError:
        return
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    executor = int(stat.rpartition(")")[2].split()[1])
    killed.write_text(str(executor))
    os.kill(executor, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), Path(sys.argv[4]))
