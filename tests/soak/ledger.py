"""The numbers of a soak: their topics, the producer, and a reader for each query's output."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pyspark_kafka.brokers import KafkaCluster

from .driver import Driver, QueryPlan
from .numbers import READ_S, TICK_S, NumberProducer, NumberReader, SoakError
from .rounds import Opened, Rounds

SOURCE: Final = "numbers"
"""The topic of all numbers; a query's output has its name."""

REPLICATED: Final = {"min.insync.replicas": "2"}

_WAIT_READ_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Counts:
    """What a query has written. ``vanished`` numbers were deleted before they were read."""

    records: int
    duplicates: int
    out_of_order: int
    missing: int
    vanished: int

    @classmethod
    def of(cls, reader: NumberReader, count: int) -> Self:
        return cls(
            reader.records,
            reader.duplicates,
            reader.out_of_order,
            reader.missing(count),
            reader.excused(),
        )


class Ledger(Opened):
    """What is written to the queries' topic, and what they have written of it.

    It is independent of this library, and talks to the brokers' plain listeners.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        queries: Sequence[QueryPlan],
        partitions: int,
        rate: int,
        *,
        tick_s: float = TICK_S,
        max_partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Take a running cluster, and so many numbers a second, which are written at each tick.

        The outputs have ``max_partitions``, so that partitions can be added to the input.
        """
        super().__init__()
        self._cluster = cluster
        self._queries = queries
        self._partitions = partitions
        self._rate = rate
        self._tick_s = tick_s
        self._outputs = max_partitions or partitions
        self._replication_factor = replication_factor
        self._config = config or {}

    def _open(self, closing: ExitStack) -> None:
        servers = self._cluster.bootstrap_servers
        self._create(SOURCE, self._partitions)
        self.producer = NumberProducer(servers, SOURCE, self._partitions, self._rate, self._tick_s)
        self.readers: dict[QueryPlan, NumberReader] = {}
        for query in self._queries:
            self._create(query.name, self._outputs)
            reader = NumberReader(
                servers, query.name, self._outputs, committed=query.is_exactly_once
            )
            self.readers[query] = reader
            closing.callback(reader.close)

    def read(self, seconds: float = READ_S) -> None:
        """Read what the queries have written, for so many seconds of each."""
        for reader in self.readers.values():
            reader.read(seconds)

    def wait_for(
        self,
        happened: Callable[[], bool],
        seconds: float,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> bool:
        """Read until something has happened, or for some seconds; return whether it has."""
        deadline = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > deadline:
                return False
            meanwhile()
            self.read(_WAIT_READ_S)
        return True

    def await_event(
        self,
        happened: Callable[[], bool],
        what: str,
        seconds: float,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Read until something has happened; raise if it does not in time."""
        if not self.wait_for(happened, seconds, meanwhile):
            raise SoakError(f"no {what} within {seconds:.0f} s")

    def excuse(self, numbers: NDArray[np.int64]) -> None:
        """Do not miss some numbers: the cluster has lost them."""
        for reader in self.readers.values():
            reader.excuse(numbers)

    def create_source_again(self) -> None:
        """Create the topic of numbers, which was deleted; all numbers before may be missing."""
        self.excuse(self.producer.numbers_before(self.producer.ends()))
        self._create(SOURCE, self.producer.partitions)
        self.producer.begin_topic()

    def check(self, deadline: float, meanwhile: Callable[[], None], hanging_s: float) -> None:
        """Wait for every number in every output.

        ``hanging_s`` is how long a transaction may stay open after that.
        """
        self.excuse(self.producer.vanished())
        for query, reader in self.readers.items():
            reader.await_all(self.producer.count, deadline, meanwhile)
            if query.is_exactly_once:
                reader.await_end(min(deadline, time.monotonic() + hanging_s))
                if reader.duplicates:
                    raise SoakError(f"{query.name}: {reader.duplicates} duplicates")

    def counts(self) -> dict[str, Counts]:
        count = self.producer.count
        return {query.name: Counts.of(reader, count) for query, reader in self.readers.items()}

    def _create(self, topic: str, partitions: int) -> None:
        self._cluster.create_topic(topic, partitions, self._replication_factor, self._config)


class LedgerRounds(Rounds):
    """Rounds of queries in a driver; a ledger has what they have written."""

    _ledger: Ledger
    _driver: Driver

    def _come_to(self) -> dict[str, Any]:
        return {"numbers": self._ledger.producer.count, "counts": self._ledger.counts()}

    def _last_words(self) -> str:
        return self._driver.last_words()
