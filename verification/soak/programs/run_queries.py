"""Run streaming queries from one topic to others, until this process is killed.

The argument is a file of JSON; ``verification.soak.driver`` writes it, and says what is in it.
"""

import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from verification.soak.session import session, settings_in


def start(spark: SparkSession, of_query: dict[str, Any], trigger: dict[str, Any]) -> Any:
    records = (
        spark.readStream.format("pyspark_kafka").options(**of_query["read"]).load().select("value")
    )
    writer = (
        records.writeStream.format("pyspark_kafka")
        .queryName(of_query["name"])
        .options(**of_query["write"])
    )
    return (writer.trigger(**trigger) if any(trigger.values()) else writer).start()


def main(path: Path) -> None:
    config = settings_in(path)
    # A task is tried four times.
    spark = session(path.parent, "local[2,4]")
    queries = [start(spark, of_query, config["trigger"]) for of_query in config["queries"]]
    while not all(query.lastProgress for query in queries if query.isActive):
        time.sleep(0.1)
    (path.parent / "running").touch()
    if "availableNow" in config["trigger"]:
        for query in queries:
            query.awaitTermination()
    else:
        spark.streams.awaitAnyTermination()
    spark.stop()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Exception:  # noqa: BLE001  # the other queries must not run beside a restart
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
