"""Run continuous queries from one topic to others, until this process is killed.

The argument is a file of JSON, which ``verification.soak.continuous_driver`` writes. Its directory
gets ``errors.json`` when a query has ended by itself, and asks for a stop by a file ``stop``.
"""

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_kafka import continuous
from pyspark_kafka.bootstrap import continuous as composition
from verification.soak.continuous_driver import THREADS
from verification.soak.epoch_points import EpochPoints
from verification.soak.losses import LOG_FORMAT
from verification.soak.session import session, settings_in
from verification.soak.tracked_function import TrackedFunction

_POLL_S = 0.05
_OTHERS_S = 60.0


def start(
    spark: SparkSession | None, directory: Path, channel: str | None, of_query: dict[str, Any]
) -> continuous.ContinuousQuery:
    return continuous.start(
        spark,
        factory=TrackedFunction(str(directory / "tasks"), of_query["name"]),
        source=of_query["source"],
        sink=of_query["sink"],
        checkpointLocation=of_query["checkpoint"],
        epoch="200 milliseconds",
        name=of_query["name"],
        tasks=of_query["tasks"],
        channel=channel,  # type: ignore[arg-type]  # the caller chooses among its values
        limits=continuous.ExecutionLimits(
            task_timeout_s=of_query["task_timeout_s"],
            restarts=continuous.RestartLimits(max_restarts=1_000),
        ),
    )


def await_end(queries: Sequence[continuous.ContinuousQuery], directory: Path) -> int:
    """Wait until all queries have ended, and return the exit status.

    When one has failed, the others get some time to fail as well.
    """
    while all(query.isActive for query in queries):
        if (directory / "stop").exists():
            for query in queries:
                query.stop()
            return 0
        time.sleep(_POLL_S)
    deadline = time.monotonic() + _OTHERS_S
    while any(query.isActive for query in queries) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    errors = {query.name: str(query.exception()) for query in queries if not query.isActive}
    for query in queries:
        if (error := query.exception()) is not None:
            traceback.print_exception(error)
    unnamed = directory / "errors.tmp"
    unnamed.write_text(json.dumps(errors))
    unnamed.replace(directory / "errors.json")
    return 1


def main(path: Path) -> int:
    logging.basicConfig(format=LOG_FORMAT)
    config, directory = settings_in(path), path.parent
    # What a driver writes into its logs are the steps of an epoch.
    vars(composition)["metadata_log_at"] = EpochPoints(directory / "points").log_at
    tasks_in = config["tasks_in"]
    spark = None if tasks_in == THREADS else session(directory, tasks_in, config["settings"])
    queries = [
        start(spark, directory, config["channel"], of_query) for of_query in config["queries"]
    ]
    return await_end(queries, directory)


if __name__ == "__main__":
    status = 1
    try:
        status = main(Path(sys.argv[1]))
    except Exception:  # noqa: BLE001  # what was started must not run beside a restart
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
