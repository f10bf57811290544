"""The time of a trigger if records arrive one by one."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer

from pyspark_kafka.ports.clock import Deadline

from .bench import CLIENTS
from .results import MILLISECONDS, Comparison, Section
from .rounds import alternate
from .spark import CORES, JVM, spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from .bench import Bench

TOPIC: Final = "trickle"
INTERVAL_SECONDS: Final = 0.01
VALUE: Final = b"a small event"

WARM_UP_TRIGGERS: Final = 10
"""The first triggers of a query, which start workers and clients and read old records."""

TIMEOUT_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.1

QUERIES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    JVM: ("kafka", {}),
    **{client: ("pyspark_kafka", {"client": client}) for client in CLIENTS},
}

ABOUT: Final = (
    f"A topic with one partition gets a record every {INTERVAL_SECONDS * 1000:.0f} ms. A stream "
    f"with `processingTime=0` reads it into `noop`, on `local[{CORES}]`. The figure is the median "
    f"of `triggerExecution` in the query's progress, over the triggers of a run that had records, "
    f"without the first {WARM_UP_TRIGGERS}."
)


def measure_trickle(bench: Bench) -> Section:
    """Compare streams of each reader while records arrive one by one."""
    bench.kafka.create_topic(TOPIC)
    options = {**bench.kafka.options, "subscribe": TOPIC, "startingOffsets": "earliest"}
    with spark_session() as spark, _trickling(bench.kafka.bootstrap_servers):
        runs = {
            name: partial(_trigger_ms, spark, source, {**options, **chosen}, bench.plan.triggers)
            for name, (source, chosen) in QUERIES.items()
        }
        samples = alternate(runs, bench.plan)
    comparison = Comparison(f"a record every {INTERVAL_SECONDS * 1000:.0f} ms", samples)
    return Section("trickle", "Spark, a trickle", ABOUT, MILLISECONDS, (comparison,), peers=(JVM,))


@contextmanager
def _trickling(bootstrap_servers: str) -> Iterator[None]:
    ended = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "log_level": 0})

    def trickle() -> None:
        while not ended.wait(INTERVAL_SECONDS):
            producer.produce(TOPIC, VALUE)
            producer.poll(0)

    thread = threading.Thread(target=trickle, name="trickle")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.flush()


def _trigger_ms(
    spark: SparkSession, source: str, options: Mapping[str, str], triggers: int
) -> float:
    frame = spark.readStream.format(source).options(**options).load()
    with running(frame) as query:
        executions = await_executions(query, WARM_UP_TRIGGERS + triggers)
    return statistics.median(executions[WARM_UP_TRIGGERS:])


@contextmanager
def running(frame: DataFrame) -> Iterator[StreamingQuery]:
    """Read a stream into ``noop``, trigger after trigger, until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as checkpoint:
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        try:
            yield query
        finally:
            query.stop()


def await_executions(query: StreamingQuery, count: int) -> Sequence[float]:
    """Return the times of a query's triggers that had records, as soon as there are so many.

    :raises TimeoutError: if that takes more than two minutes.
    """
    deadline = Deadline.after(TIMEOUT_SECONDS)
    while not deadline.has_passed:
        executions = executions_ms(query.recentProgress)
        if len(executions) >= count:
            return executions
        if not query.isActive:
            raise RuntimeError(f"the query ended unexpectedly: {query.exception()}")
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"fewer than {count} micro-batches within {TIMEOUT_SECONDS:g} s")


def executions_ms(progress: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the time of each trigger that had records."""
    return [one["durationMs"]["triggerExecution"] for one in progress if one["numInputRows"]]
