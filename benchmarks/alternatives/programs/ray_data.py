"""Ray Data's reader of Kafka, and a sink of a producer in each write task."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

# Ray sends no reports, and listens on the loopback interface only.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}

import ray
from ray.data import Datasink

from benchmarks.alternatives.task import CORES, Task, main

if TYPE_CHECKING:
    from collections.abc import Iterable


class ValueSink(Datasink):  # type: ignore[misc]  # has no types here
    """Produces keys and values as they are; `write_kafka` would make a value of the whole row."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic

    def write(self, blocks: Iterable[Any], ctx: Any) -> int:  # noqa: ARG002 - Ray's signature
        """Produce the rows of Arrow blocks, and return how many."""
        from confluent_kafka import Producer

        errors: list[Any] = []
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "acks": "all",
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
                "on_delivery": lambda error, _message: errors.append(error),
            }
        )
        count = 0
        for block in blocks:
            columns = (block[name].to_pylist() for name in ("key", "value"))
            for key, value in zip(*columns, strict=True):
                while True:
                    try:
                        producer.produce(self._topic, value, key)
                    except BufferError:
                        producer.poll(0.05)
                    else:
                        break
            count += block.num_rows
            producer.poll(0)
        if producer.flush(120) or errors:
            raise RuntimeError(f"records were not acknowledged: {errors[:3]}")
        return count


def read(task: Task) -> int:
    """Read a topic into Arrow blocks in the object store."""
    records: int = _dataset(task).materialize().count()
    return records


def copy(task: Task) -> int:
    """Produce the rows of each block to the other topic."""
    _dataset(task).write_datasink(ValueSink(task.bootstrap_servers, task.target))
    return task.records


def _dataset(task: Task) -> Any:
    _start()
    return ray.data.read_kafka(task.source, bootstrap_servers=task.bootstrap_servers)


@cache
def _start() -> None:
    ray.init(num_cpus=CORES, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False


if __name__ == "__main__":
    main(read, copy)
