"""The function of the queries: it forwards records, and leaves traces of its process.

It is slow while a file beside its directory has a pace.
"""

import math
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.ports.continuous import RecordFunction

from .processes import Process

MAX_VALUE: Final = 100
"""The bytes of a value that are forwarded: the input may be much larger than the output."""

PACES: Final = (6_000, 8_000, 10_000)
"""Records a second of a slow function: it takes seconds for what one poll returns."""

_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class TrackedFunction:
    """A factory; while a task runs, a file in a directory has the process and the query."""

    directory: str
    query: str

    @contextmanager
    def __call__(self) -> Iterator[RecordFunction]:
        tracked = Path(self.directory) / f"{os.getpid()} {self.query} {uuid.uuid4().hex}"
        tracked.touch()
        pace = Pace(Path(self.directory).with_name("pace"))

        def process(records: pa.RecordBatch) -> pa.RecordBatch:
            pace.keep(records.num_rows, self.query)
            return forward(records)

        try:
            yield process
        finally:
            tracked.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Pace:
    """How many records a second a function processes, in a file that others write."""

    path: Path

    @property
    def slow(self) -> set[str]:
        """The queries whose functions were slow since the pace was set."""
        return {path.name.partition(" ")[2] for path in self.path.parent.glob("slow *")}

    def set(self, records_per_s: int) -> None:
        unnamed = self.path.with_suffix(".tmp")
        unnamed.write_text(str(records_per_s))
        unnamed.replace(self.path)

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
        for path in self.path.parent.glob("slow *"):
            path.unlink()

    def keep(self, records: int, query: str) -> None:
        """Take as long as some records of a query do, or until the file is gone."""
        if not self.path.exists():
            return
        self.path.with_name(f"slow {query}").touch()
        began = time.monotonic()
        while time.monotonic() - began < records / self._records_per_s():
            time.sleep(_POLL_S)

    def _records_per_s(self) -> float:
        try:
            return float(self.path.read_text())
        except FileNotFoundError:
            return math.inf


def forward(records: pa.RecordBatch) -> pa.RecordBatch:
    values = pc.binary_slice(records["value"], 0, MAX_VALUE)
    return pa.RecordBatch.from_arrays([values, records["partition"]], ["value", "partition"])


def tracked_tasks(directory: Path, living: list[Process]) -> dict[int, str]:
    pids = {process.pid for process in living}
    tasks = {}
    for tracked in directory.iterdir():
        pid, query, _ = tracked.name.split(" ")
        if int(pid) in pids:
            tasks[int(pid)] = query
    return tasks
