"""Quix Streams: an application that counts records, or passes them on to another topic."""

from __future__ import annotations

import tempfile
from uuid import uuid4

from quixstreams import Application

from benchmarks.alternatives.task import Task, main


def read(task: Task) -> int:
    """Call a function with each value."""
    return _run(task, is_copy=False)


def copy(task: Task) -> int:
    """Produce each key and value to the other topic."""
    return _run(task, is_copy=True)


def _run(task: Task, *, is_copy: bool) -> int:
    seen = 0

    def see(_value: bytes) -> None:
        nonlocal seen
        seen += 1

    with tempfile.TemporaryDirectory() as directory:
        application = Application(
            broker_address=task.bootstrap_servers,
            consumer_group=f"quix-{uuid4()}",
            auto_offset_reset="earliest",
            auto_create_topics=False,
            producer_extra_config={"acks": "all"},
            state_dir=directory,
            loglevel="WARNING",
        )
        source = application.topic(
            task.source, key_deserializer="bytes", value_deserializer="bytes"
        )
        frame = application.dataframe(source).update(see)
        if is_copy:
            frame.to_topic(
                application.topic(task.target, key_serializer="bytes", value_serializer="bytes")
            )
        application.run(count=task.records, collect=False)
    return seen


if __name__ == "__main__":
    main(read, copy)
