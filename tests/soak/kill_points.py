"""Places in a commit at which a driver is killed: with its JVM and all of its workers.

It comes by the entry point of ``pyspark_kafka.sink_containers``, into each process in which a sink
is made. What is armed is a file, as Spark commits in a worker, and may use another for each batch.
"""

import enum
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

from dependency_injector import providers

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.kafka_python.transactions import KafkaPythonTransactions
from pyspark_kafka.bootstrap.container import SinkContainer
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.writing.transaction import Transaction, TransactionDescription
from pyspark_kafka.ports.checkpoints import MetadataLog
from pyspark_kafka.ports.writing import Transactions

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


@final
class Ends:
    """How many transactions of the batch have been ended."""

    count = 0


@final
class TrappedTransactions(Transactions):
    """Another's transactions, with points around them."""

    def __init__(self, transactions: Transactions, trap: Trap, ends: Ends) -> None:
        self._transactions = transactions
        self._trap = trap
        self._ends = ends

    def begin(self, transactional_id: str) -> Transaction:
        return self._transactions.begin(transactional_id)

    def commit(self, transaction: Transaction) -> None:
        if self._ends.count:
            self._trap.reach(Point.BETWEEN_ENDS)
        self._transactions.commit(transaction)
        self._ends.count += 1

    def abort(self, transaction: Transaction) -> None:
        self._transactions.abort(transaction)

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        return self._transactions.describe(transactional_ids)

    def open_ids(self, prefix: str) -> Sequence[str]:
        return self._transactions.open_ids(prefix)

    def close(self) -> None:
        self._transactions.close()


@final
class TrappedLog(MetadataLog):
    """Another's log, with points around what a sink writes down."""

    def __init__(self, log: MetadataLog, trap: Trap, ends: Ends) -> None:
        self._log = log
        self._trap = trap
        self._ends = ends

    def __str__(self) -> str:
        return str(self._log)

    def add(self, batch_id: int, metadata: bytes) -> bool:
        is_prepared = SinkLogEntry.from_bytes(metadata).state is BatchState.PREPARED
        self._trap.reach(Point.TASKS_ENDED if is_prepared else Point.ALL_ENDED)
        is_added = self._log.add(batch_id, metadata)
        self._trap.reach(Point.PREPARED if is_prepared else Point.COMMITTED)
        self._ends.count = 0
        return is_added

    def get(self, batch_id: int) -> bytes | None:
        return self._log.get(batch_id)

    def latest(self) -> tuple[int, bytes] | None:
        return self._log.latest()

    def batch_ids(self) -> Sequence[int]:
        return self._log.batch_ids()

    def purge(self, threshold: int) -> None:
        self._log.purge(threshold)


def configure(container: SinkContainer) -> None:
    """Put the points into a container; the entry point names this."""
    options = container.options()
    if options.metadata_path is None or not options.is_exactly_once:
        return
    trap, ends = Trap(Path(os.environ[DIRECTORY])), Ends()
    log = FsspecMetadataLog(options.metadata_path.child("transactions"))
    container.transactions.override(providers.Resource(_transactions, options, trap, ends))
    container.metadata_log.override(providers.Object(TrappedLog(log, trap, ends)))


def _transactions(options: SinkOptions, trap: Trap, ends: Ends) -> Iterator[Transactions]:
    transactions = KafkaPythonTransactions(options)
    yield TrappedTransactions(transactions, trap, ends)
    transactions.close()


def install(site: Path) -> None:
    """Make a directory for Python's path whose distribution brings the points."""
    install_distribution(
        site,
        "soak",
        f"[pyspark_kafka.sink_containers]\nkill_points = {__name__}:{configure.__name__}\n",
    )


def install_distribution(site: Path, name: str, entry_points: str) -> None:
    """Make a distribution in a directory for Python's path that has entry points only."""
    metadata = site / f"{name}-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(entry_points)
