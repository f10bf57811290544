"""Bytewax: a dataflow that counts records, or passes them on to another topic."""

from __future__ import annotations

from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from benchmarks.alternatives.task import Task, main

BATCH = 10_000


class Counter(DynamicSink, StatelessSinkPartition):  # type: ignore[misc]  # have no types here
    """Counts the messages of one worker."""

    def __init__(self) -> None:
        self.count = 0

    def build(self, _step_id: str, _worker_index: int, _worker_count: int) -> Counter:
        """Return this sink: there is one worker per process."""
        return self

    def write_batch(self, items: list[Any]) -> None:
        """Count a batch."""
        self.count += len(items)


def read(task: Task) -> int:
    """Read a topic into objects that are counted."""
    return _run(task, None)


def copy(task: Task) -> int:
    """Produce each key and value to the other topic."""
    producer = {"acks": "all", "queue.buffering.max.messages": "1000000"}
    return _run(task, KafkaSink([task.bootstrap_servers], task.target, producer))


def _run(task: Task, sink: KafkaSink | None) -> int:
    flow = Dataflow("alternatives")
    source = KafkaSource([task.bootstrap_servers], [task.source], tail=False, batch_size=BATCH)
    messages = op.input("input", flow, source)
    counter = Counter()
    op.output("count", messages, counter)
    if sink is not None:
        op.output("output", op.map("to_sink", messages, lambda message: message.to_sink()), sink)
    addresses = [f"127.0.0.1:{port}" for port in task.ports]
    cluster_main(flow, addresses, task.process)
    return counter.count


if __name__ == "__main__":
    main(read, copy)
