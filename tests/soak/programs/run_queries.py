"""Run streaming queries from one topic to others, until somebody kills this process.

The argument is a file of JSON; ``tests.soak.driver`` writes it, and says what is in it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.soak.processes import kill_session

import pyspark_kafka

_JAVA = "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""It is started again and again, and has little to do for long."""


def end_with_parent() -> None:
    """Wait for the end of what standard input comes from, and end with all that was started."""
    # Python's own object for it is locked while it is read, and an end would wait for that lock.
    os.read(sys.stdin.fileno(), 1)
    kill_session(os.getsid(0))


def session(directory: Path) -> SparkSession:
    """Start Spark, which keeps its own files in a directory."""
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    return pyspark_kafka.session(
        SparkSession.Builder()
        # A task is tried four times.
        .master("local[2,4]")
        .appName("soak")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={temporary} {_JAVA}")
        .config("spark.local.dir", str(temporary))
    )


def start(spark: SparkSession, of_query: dict[str, Any], *, to_its_end: bool) -> Any:
    """Start one query; it is restarted where its checkpoint is."""
    records = (
        spark.readStream.format("pyspark_kafka").options(**of_query["read"]).load().select("value")
    )
    writer = (
        records.writeStream.format("pyspark_kafka")
        .queryName(of_query["name"])
        .options(**of_query["write"])
    )
    return (writer.trigger(availableNow=True) if to_its_end else writer).start()


def main(path: Path) -> None:
    """Run queries side by side; the failure of one is the end of all."""
    config = json.loads(path.read_text())
    threading.Thread(target=end_with_parent, daemon=True).start()
    spark = session(path.parent)
    queries = [
        start(spark, of_query, to_its_end=config["to_its_end"]) for of_query in config["queries"]
    ]
    while not all(query.lastProgress for query in queries if query.isActive):
        time.sleep(0.1)
    (path.parent / "running").touch()
    if config["to_its_end"]:
        for query in queries:
            query.awaitTermination()
    else:
        spark.streams.awaitAnyTermination()
    spark.stop()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Exception:  # noqa: BLE001  # the other queries must not go on beside a restart
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
