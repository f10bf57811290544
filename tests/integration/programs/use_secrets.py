"""Give every secret to queries of all kinds, and plant one where none should be.

The arguments come as JSON on standard input, since any user can read the command line.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import subprocess
import sys
import tempfile
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

import pyspark_kafka

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "pyspark_kafka"


def main() -> None:
    """Run the queries, and then one of them again and again until the process is killed."""
    given: dict[str, Any] = json.load(sys.stdin)
    searched = Path(given["searched"])
    spark = start_session(searched)
    plant(spark, searched, given["planted"])
    rows = spark.range(given["records"]).selectExpr("CAST(id AS STRING) AS value")
    for options, topic in zip(given["sinks"], (given["topic"], given["copy"]), strict=True):
        write(rows, options, topic)
    # Confluent's framing with the id 1, then a long of Avro.
    framed = "unhex(concat('0000000001', lpad(hex(2 * id), 2, '0'))) AS value"
    write(spark.range(given["records"]).selectExpr(framed), given["sinks"][0], given["typed topic"])
    typed = [read(spark, options, given["typed topic"]) for options in given["typed"]]
    for frame in typed:
        # Two tasks wrote them.
        assert sorted(row.value.id for row in frame.collect()) == list(range(given["records"]))
    frames = [read(spark, options, given["topic"]) for options in given["logins"]]
    everything = reduce(DataFrame.union, frames)
    assert len(everything.collect()) == len(frames) * given["records"]
    view(spark, given["logins"][0] | {"subscribe": given["topic"]})
    query = stream(spark, given, searched / "checkpoint")
    plans = io.StringIO()
    with contextlib.redirect_stdout(plans):
        frames[0].explain("extended")
        typed[0].explain("extended")
        spark.table("kafka_view").explain("formatted")
    texts = (plans.getvalue(), str(query.lastProgress), given["planted"])
    (searched / "plans").write_text("\n".join(texts))
    print("ready", flush=True)
    while True:
        everything.collect()


def start_session(searched: Path) -> SparkSession:
    for name in ("events", "local"):
        (searched / name).mkdir()
    builder = (
        SparkSession.Builder()
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", (searched / "events").as_uri())
        .config("spark.eventLog.compress", "false")
        .config("spark.local.dir", str(searched / "local"))
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={tempfile.gettempdir()}")
    )
    spark = pyspark_kafka.session(builder)
    spark.sparkContext.setLogLevel("DEBUG")
    return spark


def plant(spark: SparkSession, searched: Path, planted: str) -> None:
    """Leak a text everywhere, so that the search shows that it looks there."""
    logging.getLogger("kafka.net.connection").debug("driver: %s", planted)
    spark.sparkContext.setJobDescription(planted)
    spark.range(1).rdd.foreach(lambda _: logging.getLogger("kafka").debug("worker: %s", planted))
    spark.sparkContext.setJobDescription("")
    spark._jvm.java.lang.System.err.println(planted)  # type: ignore[union-attr]
    for folder in ("checkpoint", "local"):
        (searched / folder).mkdir(exist_ok=True)
        (searched / folder / "planted").write_text(planted)
    Path(tempfile.mkstemp()[1]).write_text(planted)
    # It ends with its parent.
    subprocess.Popen([sys.executable, "-c", "input()", planted], stdin=subprocess.PIPE)


def read(spark: SparkSession, options: Mapping[str, str], topic: str) -> DataFrame:
    return spark.read.format(FORMAT).options(**options).option("subscribe", topic).load()


def write(rows: DataFrame, options: Mapping[str, str], topic: str) -> None:
    sink = rows.write.format(FORMAT).mode("append").options(**options)
    sink.option("topic", topic).save()


def view(spark: SparkSession, options: Mapping[str, str]) -> None:
    """Read by SQL, with the secrets in the statement."""
    quoted = {
        name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in options.items()
    }
    given = ", ".join(f"`{name}` '{value}'" for name, value in quoted.items())
    spark.sql(f"CREATE TEMPORARY VIEW kafka_view USING {FORMAT} OPTIONS ({given})")
    spark.sql("SELECT count(*) FROM kafka_view").collect()


def stream(spark: SparkSession, given: Mapping[str, Any], checkpoint: Path) -> StreamingQuery:
    """Return a query with exactly-once delivery that has committed a batch."""
    options = given["stream"]
    source = spark.readStream.format(FORMAT).options(**options, subscribe=given["topic"])
    sink = source.option("startingOffsets", "earliest").load().select("value").writeStream
    query = (
        sink.format(FORMAT)
        .options(**options, topic=given["copy"], deliveryGuarantee="exactly-once")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


if __name__ == "__main__":
    main()
