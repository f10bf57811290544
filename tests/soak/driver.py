"""A driver of streaming queries."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from . import kill_points
from .driver_process import DriverProcess

PROGRAM: Final = Path(__file__).parent / "programs" / "run_queries.py"

TRANSACTION_TIMEOUT_MS: Final = 600_000
"""More than a check waits: no transaction that was forgotten may end by itself."""

MAX_OFFSETS: Final = 50_000
"""Of a micro-batch: so that what has gathered while a driver was down comes in several."""


@final
@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query from the topic of numbers to a topic of its own."""

    client: str
    guarantee: str
    login: str = ""
    """The mechanism by which it logs in, if the broker asks for one."""

    @property
    def name(self) -> str:
        """What it is called, and its topic."""
        return "-".join(filter(None, (self.guarantee, self.client, self.login)))

    @property
    def is_exactly_once(self) -> bool:
        """Whether each record is to be there once."""
        return self.guarantee == "exactly-once"

    @property
    def group(self) -> str:
        """The consumer group for which it may commit its offsets."""
        return f"group-{self.name}"

    def checkpoint(self, directory: Path) -> Path:
        """Return its checkpoint's directory, which is in another one."""
        return directory / f"checkpoint-{self.name}"

    def to_json(
        self, directory: Path, source: str, cluster: dict[str, str], *, uses_group: bool
    ) -> dict[str, object]:
        """Return the program's settings."""
        shared = {**cluster, "client": self.client}
        read = {
            **shared,
            "subscribe": source,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(MAX_OFFSETS),
            "allowLimitsWithoutTrigger": "true",  # Spark before 4.2
        }
        if uses_group:
            read["commitOffsetsToGroup"] = self.group
        write = {
            **shared,
            "topic": self.name,
            "deliveryGuarantee": self.guarantee,
            "checkpointLocation": str(self.checkpoint(directory)),
        }
        if self.is_exactly_once:
            write["kafka.transaction.timeout.ms"] = str(TRANSACTION_TIMEOUT_MS)
        return {"name": self.name, "read": read, "write": write}


@final
class Driver(DriverProcess):
    """Runs queries from and to Kafka, on Spark."""

    def __init__(
        self,
        directory: Path,
        queries: Sequence[QueryPlan],
        source: str,
        options_of: Callable[[QueryPlan], dict[str, str]],
        variables: Mapping[str, str] | None = None,
        *,
        trigger: str | None = None,
        uses_groups: bool = False,
    ) -> None:
        """Take a directory for checkpoints and logs; no process is started yet.

        ``trigger`` is how often there is a batch, in Spark's words; ``None`` is as often as can be.
        With ``uses_groups``, queries commit their offsets for groups.
        """
        self._directory = directory
        self._trigger = trigger
        self._queries = [
            query.to_json(directory, source, options_of(query), uses_group=uses_groups)
            for query in queries
        ]
        self._running = directory / "running"
        kill_points.install(directory / "site")
        environment = {
            "PYTHONPATH": str(directory / "site"),
            "PYSPARK_PYTHON": sys.executable,
            kill_points.DIRECTORY: str(directory),
            **(variables or {}),
        }
        super().__init__(PROGRAM, directory / "queries.json", directory / "driver.log", environment)

    def start(self, *, to_its_end: bool = False) -> None:
        """Start the queries; they run on, or to the end of what is there."""
        self.kill()
        self._running.unlink(missing_ok=True)
        trigger = {"availableNow": True} if to_its_end else {"processingTime": self._trigger}
        config = {"trigger": trigger, "queries": self._queries}
        (self._directory / "queries.json").write_text(json.dumps(config))
        self.launch()

    def is_running(self) -> bool:
        """Whether each query has had a batch since the start, and the driver has not ended."""
        return self._running.exists() and not self.has_ended()
