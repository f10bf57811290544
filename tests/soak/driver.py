"""A driver of streaming queries."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from ..spark_home import unzipped_spark_home
from . import kill_points
from .driver_process import DriverProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = Path(__file__).parent / "programs" / "run_queries.py"

TRANSACTION_TIMEOUT_MS: Final = 600_000
"""More than a check waits: no transaction that somebody forgot is to end by itself."""

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
class Driver(DriverProcess):
    """Runs queries from and to Kafka, on Spark."""

    def __init__(
        self, directory: Path, queries: Sequence[QueryPlan], source: str, cluster: dict[str, str]
    ) -> None:
        """Take a directory for checkpoints and logs; no process is started yet."""
        self._directory = directory
        self._queries = [query.to_json(directory, source, cluster) for query in queries]
        self._running = directory / "running"
        kill_points.install(directory / "site")
        environment = {
            "PYTHONPATH": str(directory / "site"),
            "PYSPARK_PYTHON": sys.executable,
            # Spark gives a worker 10 s to connect, which so many processes may take to start.
            "SPARK_HOME": str(unzipped_spark_home(directory / "spark")),
            kill_points.DIRECTORY: str(directory),
        }
        super().__init__(PROGRAM, directory / "queries.json", directory / "driver.log", environment)

    def start(self, *, to_its_end: bool = False) -> None:
        """Start the queries; they run on, or to the end of what is there."""
        self.kill()
        self._running.unlink(missing_ok=True)
        config = {"to_its_end": to_its_end, "queries": self._queries}
        (self._directory / "queries.json").write_text(json.dumps(config))
        self.launch()

    def is_running(self) -> bool:
        """Whether each query has had a batch since the start, and nobody is known to have died."""
        return self._running.exists() and not self.has_ended()
