"""A cluster, a driver of continuous queries, and those who write and look for numbers."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders
from tests.slowness import bound_s

from .continuous_driver import TASKS, THREADS, ContinuousDriver, DriverSetup
from .driver import QueryPlan
from .ledger import REPLICATED, SOURCE, Ledger
from .numbers import SoakError
from .rounds import Opened

BROKERS: Final = 3
PARTITIONS: Final = 4
MAX_PARTITIONS: Final = 24
"""Of the output topics, so that partitions can be added to the input."""

RATE: Final = 500
TICK_S: Final = 0.02
"""Continuous queries are to have records on their way at any time."""

_EVENT_S: Final = bound_s(240)
_CHECK_S: Final = bound_s(180)


class Stage(Opened):
    """The target of faults. Used by one thread."""

    def __init__(
        self,
        cluster: KafkaCluster,
        queries: Sequence[QueryPlan],
        directory: Path,
        note: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.cluster = cluster
        self.queries = queries
        self.note = note
        self.directory = directory
        self.setup = DriverSetup()
        self.tasks_in: tuple[str, ...] = (self.setup.tasks_in,)
        """Where the tasks of the next driver may run."""
        self._drivers: list[ContinuousDriver] = []

    def _open(self, closing: ExitStack) -> None:
        # After a failure, the drivers' files and the checkpoints are kept.
        closing.push(
            lambda kind, *_: None if kind else shutil.rmtree(self.directory, ignore_errors=True)
        )
        ledger = Ledger(
            self.cluster,
            self.queries,
            PARTITIONS,
            RATE,
            tick_s=TICK_S,
            max_partitions=MAX_PARTITIONS,
            config=REPLICATED,
            losses=lambda: chain.from_iterable(driver.losses() for driver in self._drivers),
        )
        self.ledger = closing.enter_context(ledger)
        self.producer, self.readers = ledger.producer, ledger.readers
        closing.callback(self.kill_driver)

    # The driver

    @property
    def driver(self) -> ContinuousDriver:
        return self._drivers[-1]

    def has_driver(self) -> bool:
        return bool(self._drivers) and not self.driver.has_ended()

    def new_driver(self) -> ContinuousDriver:
        """Return a driver with files of its own, which the next start takes."""
        return ContinuousDriver(self.directory / f"driver-{len(self._drivers)}")

    def start_driver(
        self, setup: DriverSetup | None = None, driver: ContinuousDriver | None = None
    ) -> ContinuousDriver:
        """Start the queries from their checkpoints; a driver before continues if it is alive."""
        driver = driver or self.new_driver()
        self._drivers.append(driver)
        self.setup = setup or DriverSetup()
        driver.start(
            self.queries,
            self.setup,
            SOURCE,
            lambda _: self.cluster.options,
            self.directory / "checkpoints",
        )
        return driver

    def kill_driver(self) -> None:
        if self._drivers:
            self.driver.kill()

    def await_tasks(self) -> None:
        """Wait until there are as many tasks as the queries have: no other one writes on."""
        if self.setup.tasks_in != THREADS:
            self.await_event(
                lambda: len(self.driver.tasks()) == TASKS * len(self.queries),
                "end of other tasks",
                self.keep,
            )

    # The cluster

    def leader_of(self, topic: str, partition: int, other_than: int | None = None) -> int:
        """Return the leader of a partition, by a broker other than one that may not answer."""
        port = next(node.port for node in self.cluster._live_nodes() if node.id != other_than)
        return (known_leaders(port, topic) or {})[partition]

    def log_bytes(self) -> int:
        """Return the bytes of the numbers on one broker, which has a replica of each partition."""
        logs = self.cluster._live_nodes()[0].data.glob(f"{SOURCE}-*/*.log")
        return sum(log.stat().st_size for log in logs)

    # Numbers

    @contextmanager
    def load(self) -> Iterator[None]:
        """Write numbers for as long as the block lasts; then all of them are in Kafka."""
        with self.producer.writing():
            yield

    def flow(self) -> None:
        """Write numbers until new ones have arrived in each partition."""
        with self.load():
            self.await_flow()

    def await_all(self) -> None:
        """Wait for every number that was written."""
        self.ledger.await_all(time.monotonic() + _CHECK_S, self.keep)

    def run_for(self, seconds: float) -> None:
        self.ledger.wait_for(lambda: False, seconds, self.keep)

    def await_flow(self) -> None:
        """Wait until numbers that are written from now on arrive, in each partition."""
        begun, partitions = self.producer.count, range(self.producer.partitions)

        def flows() -> bool:
            return all(
                reader.newest(partition) >= begun
                for reader in self.readers.values()
                for partition in partitions
            )

        self.await_event(flows, "new numbers", self.keep)

    def await_event(
        self, happened: Callable[[], bool], what: str, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self.ledger.await_event(happened, what, _EVENT_S, meanwhile)

    def keep(self) -> None:
        """Raise if the driver has ended, though no fault has ended it."""
        if self.driver.has_ended():
            raise SoakError(f"the driver has ended by itself: {self.driver.errors()}")
