"""Places in a commit at which a driver is killed: with its JVM and all of its workers.

It comes by the entry point of ``pyspark_kafka.sink_containers``, into each process in which a sink
is made. What is armed is a file, as Spark commits in a worker, and may use another for each batch.
"""

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dependency_injector import providers

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.kafka_python.transactions import KafkaPythonTransactions
from pyspark_kafka.bootstrap.container import SinkContainer
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry
from pyspark_kafka.domain.options.sink import SinkOptions

from .surrounded import Surrounded
from .trap import Trap

DIRECTORY: Final = "SOAK_DIRECTORY"
"""The variable of the environment that names the directory of what is armed."""


class Point(enum.Enum):
    """A place between the end of a batch's tasks and Spark's own log of commits."""

    TASKS_ENDED = "before 'prepared' is written down"
    PREPARED = "after 'prepared' is written down"
    BETWEEN_ENDS = "between the ends of two transactions"
    ALL_ENDED = "after the ends of all transactions"
    COMMITTED = "after 'committed' is written down"


class Points:
    """The points of one sink, around the ends of its transactions and the entries of its log."""

    def __init__(self, trap: Trap) -> None:
        self._trap = trap
        self._ends = 0

    @contextmanager
    def around_transactions(self, call: str, *_: object) -> Iterator[None]:
        is_end = call == "commit"
        if is_end and self._ends:
            self._trap.reach(Point.BETWEEN_ENDS)
        yield
        self._ends += is_end

    @contextmanager
    def around_log(self, call: str, *arguments: Any) -> Iterator[None]:
        if call != "add":
            yield
            return
        is_prepared = SinkLogEntry.from_bytes(arguments[1]).state is BatchState.PREPARED
        self._trap.reach(Point.TASKS_ENDED if is_prepared else Point.ALL_ENDED)
        yield
        self._trap.reach(Point.PREPARED if is_prepared else Point.COMMITTED)
        self._ends = 0


def configure(container: SinkContainer) -> None:
    options = container.options()
    if options.metadata_path is None or not options.is_exactly_once:
        return
    points = Points(Trap(Path(os.environ[DIRECTORY])))
    log = FsspecMetadataLog(options.metadata_path.child("transactions"))
    container.transactions.override(providers.Resource(_transactions, options, points))
    container.metadata_log.override(providers.Object(Surrounded(log, points.around_log)))


def _transactions(options: SinkOptions, points: Points) -> Iterator[Surrounded]:
    transactions = KafkaPythonTransactions(options)
    yield Surrounded(transactions, points.around_transactions)
    transactions.close()


def install(directory: Path) -> dict[str, str]:
    """Return the variables of a driver with the points, which are armed in a directory."""
    entry_point = f"kill_points = {__name__}:{configure.__name__}"
    return install_distribution(directory, f"[pyspark_kafka.sink_containers]\n{entry_point}\n")


def install_distribution(directory: Path, entry_points: str) -> dict[str, str]:
    """Make a distribution that has entry points only; return the variables that bring it."""
    site = directory / "site"
    metadata = site / "soak-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: soak\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    return {"PYTHONPATH": str(site), DIRECTORY: str(directory)}
