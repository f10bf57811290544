"""The function of the queries: it returns the records, and tells which process runs it."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from pyspark_kafka.ports.continuous import RecordFunction

from .processes import Process

COLUMNS: Final = ("value", "partition")


@dataclass(frozen=True, slots=True)
class TrackedFunction:
    """A factory; while a task runs, a file in a directory has the process and the query."""

    directory: str
    query: str

    @contextmanager
    def __call__(self) -> Iterator[RecordFunction]:
        tracked = Path(self.directory) / f"{os.getpid()} {self.query} {uuid.uuid4().hex}"
        tracked.touch()
        try:
            yield forward
        finally:
            tracked.unlink(missing_ok=True)


def forward(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.select(list(COLUMNS))


def tracked_tasks(directory: Path, living: list[Process]) -> dict[int, str]:
    pids = {process.pid for process in living}
    tasks = {}
    for tracked in directory.iterdir():
        pid, query, _ = tracked.name.split(" ")
        if int(pid) in pids:
            tasks[int(pid)] = query
    return tasks
