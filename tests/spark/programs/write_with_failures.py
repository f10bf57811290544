"""Write rows in tasks that fail at their first attempt, and print which rows can be seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import pyspark_kafka
from pyspark_kafka import QueryKind, container_for, parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROWS = 8_000
SCHEMA = "value string"


def failing(options: Mapping[str, str], topic: str) -> Callable[[str], str]:
    """Return a function that yields values, and fails the first attempt after some of them."""
    seen = 0

    def hand_on(value: str) -> str:
        nonlocal seen
        seen += 1
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and seen > ROWS // 8 * 3:
            await_records(options, topic)
            raise RuntimeError("the first attempt")
        return value

    return hand_on


def await_records(options: Mapping[str, str], topic: str) -> None:
    container = container_for(
        parse_source_options({**options, "subscribe": topic}, QueryKind.BATCH)
    )
    partitions = [TopicPartition(topic, number) for number in (0, 1)]
    ends = container.offset_fetcher()
    await_until(lambda: any(ends.latest(partitions).values()))
    container.shutdown_resources()


def main(given: dict[str, Any]) -> None:
    """Write batches and streams, in two tasks each."""
    spark = pyspark_kafka.session(
        SparkSession.Builder()
        # Two tasks at once, and three attempts of each.
        .master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    )
    spark.sparkContext.setLogLevel("OFF")
    directory = Path(given["directory"])
    # Larger than what writers put together before they send.
    numbers = spark.range(ROWS, numPartitions=2).selectExpr(
        "concat(id, repeat(' ', 1000)) as value"
    )
    numbers.write.parquet(str(directory / "input"))
    for name, write in given["writes"].items():
        options = {**given["options"], "client": write["client"], "topic": write["topic"]}
        # Without Arrow, for which Spark would want pandas.
        fail = udf(failing(given["options"], write["topic"]), "string", useArrow=False)
        failed = fail("value").alias("value")
        if not write["streams"]:
            write_batch = numbers.select(failed).write.format("pyspark_kafka").options(**options)
            write_batch.mode("append").save()
            continue
        query = (
            spark.readStream.schema(SCHEMA)
            .parquet(str(directory / "input"))
            .select(failed)
            .writeStream.format("pyspark_kafka")
            .options(**options, deliveryGuarantee=write["guarantee"])
            .option("checkpointLocation", str(directory / name))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = {
        name: stored(spark, given["options"], write["topic"])
        for name, write in given["writes"].items()
    }
    print(json.dumps(found))
    spark.stop()


def stored(spark: SparkSession, connection: Mapping[str, str], topic: str) -> list[int]:
    options = {**connection, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    table = spark.read.format("pyspark_kafka").options(**options).load()
    rows = table.selectExpr("int(trim(cast(value as string))) as number").collect()
    return sorted(row.number for row in rows)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
