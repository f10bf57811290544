"""Run queries with secrets, of which most fail, and write down all that Python shows of errors."""

import contextlib
import json
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_kafka import continuous
from tests.integration.programs.use_secrets import FORMAT, plant, read, start_session, view, write


def main() -> None:
    given: dict[str, Any] = json.load(sys.stdin)
    searched = Path(given["searched"])
    spark = start_session(searched)
    plant(spark, searched, given["planted"])
    plans, errors = ((searched / name).open("w", buffering=1) for name in ("plans", "tracebacks"))
    for output in (plans, errors):
        output.write(f"{given['planted']}\n")
    failed = 0
    for number, (kind, options) in enumerate(given["uses"]):
        try:
            with contextlib.redirect_stdout(plans):
                use(kind, spark, options, given["topic"], f"{searched}/checkpoint/{number}")
        except Exception as error:  # noqa: BLE001  # its text is searched
            errors.write(f"{number} {kind}: {error!r}\n{error}\n")
            traceback.print_exception(error, file=errors)
            failed += 1
        for query in spark.streams.active:
            query.stop()
    print(f"{failed} failed", flush=True)
    signal.pause()


def use(
    kind: str, spark: SparkSession, options: Mapping[str, str], topic: str, checkpoint: str
) -> None:
    """Run a query of a kind, or of a stream with a guarantee, to its end."""
    match kind:
        case "read":
            frame = read(spark, options, topic)
            frame.explain("extended")
            frame.collect()
        case "view":
            spark.catalog.dropTempView("kafka_view")
            view(spark, {"subscribe": topic, **options})
            spark.table("kafka_view").explain("formatted")
        case "write":
            write(spark.range(3).selectExpr("CAST(id AS STRING) AS value"), options, topic)
        case "continuous":
            run_continuous(spark, options, topic, checkpoint)
        case guarantee:
            run_stream(spark, {**options, "deliveryGuarantee": guarantee}, topic, checkpoint)


def run_stream(
    spark: SparkSession, options: Mapping[str, str], topic: str, checkpoint: str
) -> None:
    source = spark.readStream.format(FORMAT).options(**{"subscribe": topic, **options})
    sink = source.option("startingOffsets", "earliest").load().select("value").writeStream
    query = (
        sink.format(FORMAT)
        .options(**{"topic": f"{topic}-copy", **options})
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.explain(extended=True)
    query.awaitTermination(60)
    print(query.recentProgress, query.status)


def run_continuous(
    spark: SparkSession, options: Mapping[str, str], topic: str, checkpoint: str
) -> None:
    query = continuous.start(
        spark,
        lambda records: records.select(["value"]),
        source={"subscribe": topic, "startingOffsets": "earliest", **options},
        sink={"topic": f"{topic}-copy", **options},
        checkpointLocation=checkpoint,
        epoch="200 milliseconds",
        tasks=1,
    )
    try:
        query.processAllAvailable()
        print(query.lastProgress)
    finally:
        query.stop()


if __name__ == "__main__":
    main()
