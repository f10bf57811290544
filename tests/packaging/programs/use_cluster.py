"""Read and write topics on a cluster, and lose an executor on the way.

The format is neither imported nor registered: Spark finds it in the environment of the driver and
of the executors. Writes the rows that were read, by how they were, to a file of JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
        found[client] = rows(read(spark, {**source, "client": client}))
    write(read(spark, source), {**kafka, "client": "confluent", "topic": copies["batch"]})
    confluent = {**source, "client": "confluent"}
    copy(stream(spark, confluent), {**kafka, "topic": copies["stream"]}, directory / "stream")
    kept = stream(spark, {**source, "maxOffsetsPerTrigger": "100"})
    lost = kept.mapInArrow(losing_an_executor(directory / "killed"), kept.schema)
    exactly_once = {**kafka, "topic": copies["lost"], "deliveryGuarantee": "exactly-once"}
    copy(lost, exactly_once, directory / "lost")
    written = {**source, "subscribe": ",".join(copies.values())}
    copied = read(spark, {**written, "kafka.isolation.level": "read_committed"}).cache()
    for name, topic_of_copy in copies.items():
        found[name] = rows(copied.where(f"topic = '{topic_of_copy}'"))
    (directory / "found.json").write_text(json.dumps(found, default=bytes.hex))
    spark.stop()


def place_of_package(_: int) -> str:
    import pyspark_kafka

    return pyspark_kafka.__file__


def read(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    return spark.read.format("pyspark_kafka").options(**options).load()


def stream(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    return spark.readStream.format("pyspark_kafka").options(**options).load()


def copy(frame: DataFrame, options: dict[str, str], checkpoint: Path) -> None:
    query = frame.drop("topic", "offset").writeStream.format("pyspark_kafka").options(**options)
    query = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query.start().awaitTermination()


def rows(frame: DataFrame) -> list[object]:
    columns = ("key", "value", "partition", "unix_millis(timestamp)", "headers")
    return [list(row) for row in frame.sort("partition", "offset").selectExpr(*columns).collect()]


def write(frame: DataFrame, options: dict[str, str]) -> None:
    frame.drop("topic", "offset").write.format("pyspark_kafka").mode("append").options(
        **options
    ).save()


def losing_an_executor(
    killed: Path,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that returns its batches, and kills its executor after the first of all."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            kill_executor_once(killed)

    return pass_on


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
