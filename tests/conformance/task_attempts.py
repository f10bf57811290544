"""Tasks that Spark runs again, and what their first attempts saw."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from .worker_connections import Connections


@contextmanager
def task_attempts(spark: SparkSession, attempts: int) -> Iterator[None]:
    """Let Spark run a task so many times.

    With the master ``local[2]`` it does not try again (``SparkContext.MAX_LOCAL_TASK_FAILURES``),
    and no setting says otherwise.
    """
    java: Any = spark.sparkContext._jsc
    scheduler = java.sc().taskScheduler()
    field = scheduler.getClass().getDeclaredField("maxTaskFailures")
    field.setAccessible(True)
    before = field.getInt(scheduler)
    field.setInt(scheduler, attempts)
    try:
        yield
    finally:
        field.setInt(scheduler, before)


def failing_once(
    directory: Path, every: int, listed: Callable[[], Connections]
) -> Callable[[Iterable[Row]], Iterable[Row]]:
    """Return a function for ``mapPartitions`` that passes rows on, and fails first attempts.

    One of ``every`` partitions fails after ten rows. A file has the connections of that time, and
    another those after ten rows of the next attempt.
    """
    directory.mkdir()

    def pass_on(rows: Iterable[Row]) -> Iterator[Row]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        for number, row in enumerate(rows):
            yield row
            if number == 9 and context.partitionId() % every == 0:
                saved = directory / f"{context.partitionId()}-{attempt}"
                saved.write_text(json.dumps(sorted(listed())))
                if attempt == 0:
                    raise RuntimeError("the first attempt fails")

    return pass_on


def listed_by(directory: Path, attempt: int) -> Connections:
    """Return the connections that an attempt of the first task has seen."""
    return frozenset(map(tuple, json.loads((directory / f"0-{attempt}").read_text())))
