"""A driver of streaming queries, as a process that can be killed whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyspark_kafka

from ..spark_home import unzipped_spark_home
from . import kill_points
from .processes import Process, kill_session, workers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = Path(__file__).parent / "programs" / "run_queries.py"
_PATHS: Final = (Path(__file__).parents[2], Path(str(pyspark_kafka.__file__)).parents[1])

TRANSACTION_TIMEOUT_MS: Final = 600_000
"""More than a check waits: no transaction that somebody forgot is to end by itself."""

_LAST_WORDS: Final = 6_000

MAX_OFFSETS: Final = 50_000
"""Of a micro-batch: so that what has gathered while a driver was down comes in several."""


@final
@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query from the topic of numbers to a topic of its own."""

    client: str
    guarantee: str

    @property
    def name(self) -> str:
        """What it is called, and its topic."""
        return f"{self.guarantee}-{self.client}"

    @property
    def is_exactly_once(self) -> bool:
        """Whether each record is to be there once."""
        return self.guarantee == "exactly-once"

    def to_json(self, directory: Path, source: str, cluster: dict[str, str]) -> dict[str, object]:
        """Return the program's settings."""
        shared = {**cluster, "client": self.client}
        read = {
            **shared,
            "subscribe": source,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(MAX_OFFSETS),
        }
        write = {
            **shared,
            "topic": self.name,
            "deliveryGuarantee": self.guarantee,
            "checkpointLocation": str(directory / f"checkpoint-{self.name}"),
        }
        if self.is_exactly_once:
            write["kafka.transaction.timeout.ms"] = str(TRANSACTION_TIMEOUT_MS)
        return {"name": self.name, "read": read, "write": write}


@final
class Driver:
    """Runs queries in a process; after its end, it can be started again."""

    def __init__(
        self, directory: Path, queries: Sequence[QueryPlan], source: str, cluster: dict[str, str]
    ) -> None:
        """Take a directory for checkpoints and logs; no process is started yet."""
        self._directory = directory
        self._queries = [query.to_json(directory, source, cluster) for query in queries]
        self._process: subprocess.Popen[bytes] | None = None
        self._running = directory / "running"
        self._log = directory / "driver.log"
        self._logged = 0
        kill_points.install(directory / "site")
        self._spark_home = unzipped_spark_home(directory / "spark")

    def start(self, *, to_its_end: bool = False) -> None:
        """Start the queries; they run on, or to the end of what is there."""
        self.kill()
        self._running.unlink(missing_ok=True)
        config = self._directory / "queries.json"
        config.write_text(json.dumps({"to_its_end": to_its_end, "queries": self._queries}))
        with self._log.open("ab") as log:
            self._logged = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, PROGRAM, config],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )

    def is_running(self) -> bool:
        """Whether each query has had a batch since the start, and nobody is known to have died."""
        return self._running.exists() and not self.has_ended()

    def last_words(self) -> str:
        """Return the end of its log, since its last start."""
        return self._log.read_bytes()[self._logged :].decode(errors="replace")[-_LAST_WORDS:]

    def workers(self) -> list[Process]:
        """Return its Python workers."""
        return workers_of(self._process.pid) if self._process else []

    def kill(self) -> None:
        """End all of its processes."""
        # Somebody else may start the next one meanwhile.
        process = self._process
        if process is not None:
            kill_session(process.pid)
            process.wait(30)
            if process.stdin is not None:
                process.stdin.close()

    def wait(self, seconds: float) -> int | None:
        """Return its exit status, or ``None`` after some seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def has_ended(self) -> bool:
        """Whether it was killed, or has failed."""
        return self._process is None or self._process.poll() is not None

    def _environment(self) -> dict[str, str]:
        path = [str(self._directory / "site"), *map(str, _PATHS)]
        if inherited := os.environ.get("PYTHONPATH"):
            path.append(inherited)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "PYSPARK_PYTHON": sys.executable,
            # Spark gives a worker 10 s to connect, which so many processes may take to start.
            "SPARK_HOME": str(self._spark_home),
            kill_points.DIRECTORY: str(self._directory),
        }
