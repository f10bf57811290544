"""A driver of streaming queries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import kill_points
from .driver_process import DriverProcess

PROGRAM: Final = Path(__file__).parent / "programs" / "run_queries.py"

TRANSACTION_TIMEOUT_MS: Final = 600_000
"""More than a check waits: no transaction that was forgotten may end by itself."""

MAX_OFFSETS: Final = 50_000
"""Of a micro-batch: so that what has gathered while a driver was down comes in several."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query from the topic of numbers to a topic of its own."""

    client: str
    guarantee: str
    login: str = ""
    """The mechanism by which it logs in, if the broker asks for one."""

    in_own_rack: bool = False
    """Whether it reads from the replicas in the rack that ``KAFKA_CLIENT_RACK`` names (KIP-392)."""

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.guarantee, self.client, self.login)))

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee == "exactly-once"

    @property
    def group(self) -> str:
        """The consumer group for which it may commit its offsets."""
        return f"group-{self.name}"

    def checkpoint(self, directory: Path) -> Path:
        return directory / f"checkpoint-{self.name}"

    def source(self, cluster: Mapping[str, str], topic: str) -> dict[str, str]:
        """Return the options of a read from the beginning of a topic."""
        return {
            **cluster,
            **({"clientRackFrom": "environment"} if self.in_own_rack else {}),
            "client": self.client,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

    def sink(self, cluster: Mapping[str, str], topic: str) -> dict[str, str]:
        """Return the options of a write, without those of a checkpoint."""
        sink = {
            **cluster,
            "client": self.client,
            "topic": topic,
            "deliveryGuarantee": self.guarantee,
        }
        if self.is_exactly_once:
            sink["kafka.transaction.timeout.ms"] = str(TRANSACTION_TIMEOUT_MS)
        return sink

    def to_json(
        self, directory: Path, source: str, cluster: dict[str, str], *, uses_group: bool
    ) -> dict[str, object]:
        limits = {
            "maxOffsetsPerTrigger": str(MAX_OFFSETS),
            "allowLimitsWithoutTrigger": "true",  # Spark before 4.2
        }
        group = {"commitOffsetsToGroup": self.group} if uses_group else {}
        checkpoint = {"checkpointLocation": str(self.checkpoint(directory))}
        return {
            "name": self.name,
            "read": self.source(cluster, source) | limits | group,
            "write": self.sink(cluster, self.name) | checkpoint,
        }


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
        self._trigger = trigger
        self._queries = [
            query.to_json(directory, source, options_of(query), uses_group=uses_groups)
            for query in queries
        ]
        self._running = directory / "running"
        super().__init__(
            PROGRAM, directory, {**kill_points.install(directory), **(variables or {})}
        )

    def start(self, *, to_its_end: bool = False) -> None:
        """Start the queries; they run on, or to the end of what is there."""
        self.kill()
        self._running.unlink(missing_ok=True)
        trigger = {"availableNow": True} if to_its_end else {"processingTime": self._trigger}
        self.launch({"trigger": trigger, "queries": self._queries})

    def is_running(self) -> bool:
        """Whether each query has had a batch since the start, and the driver has not ended."""
        return self._running.exists() and not self.has_ended()
