"""The numbers of a soak: their topics, the producer, and a reader for each query's output."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pyspark_kafka.brokers import KafkaCluster

from .driver import Driver, QueryPlan
from .losses import Loss
from .numbers import READ_S, TICK_S, MissingError, NumberProducer, NumberReader, SoakError
from .rounds import Opened, Rounds

SOURCE: Final = "numbers"
"""The topic of all numbers; a query's output has its name."""

REPLICATED: Final = {"min.insync.replicas": "2"}

DELETED: Final = "deleted, and reported as lost"
COMPACTED: Final = "removed by compaction"
"""Why a number may be missing: nothing else excuses it."""

_WAIT_READ_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Counts:
    """The output of a query, and the numbers that this round has excused, by reason."""

    records: int
    duplicates: int
    out_of_order: int
    missing: int
    excused: Mapping[str, int]

    @classmethod
    def of(cls, reader: NumberReader, count: int) -> Self:
        return cls(
            reader.records,
            reader.duplicates,
            reader.out_of_order,
            reader.missing(count),
            dict(reader.excuses),
        )


class Ledger(Opened):
    """The numbers in the queries' topic, and those that the queries have written of them.

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
        losses: Callable[[], Iterable[Loss]] = tuple,
    ) -> None:
        """Take a running cluster, and so many numbers a second, which are written at each tick.

        The outputs have ``max_partitions``, so that partitions can be added to the input.
        ``losses`` returns what the queries have reported as lost.
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
        self.losses = losses
        self._of_old_topics: frozenset[Loss] = frozenset()
        self._begun = 0
        """How many numbers there were when the round began."""

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

    def create_source_again(self, partitions: int) -> None:
        """Create the topic of numbers, which was deleted once all of them were read."""
        self._of_old_topics |= frozenset(self.losses())
        self._create(SOURCE, partitions)
        self.producer.partitions = partitions
        self.producer.begin_topic()

    def begin_round(self) -> None:
        """Count from here on what is checked and excused."""
        self._begun = self.producer.count
        for reader in self.readers.values():
            reader.excuses.clear()

    def await_all(self, deadline: float, meanwhile: Callable[[], None]) -> None:
        """Wait for every number in every output.

        A number is excused if its record was deleted and the query has reported its offset as lost,
        or if compaction has removed it.

        :raises SoakError: if another one does not come, or none was looked for in this round.
        """
        for query, reader in self.readers.items():
            try:
                reader.await_all(
                    self.producer.count, deadline, meanwhile, partial(self._excuses, query)
                )
            except MissingError as error:
                raise SoakError(f"{error}: {self._place(error.numbers[:1], query)}") from None
            checked = self.producer.count - self._begun - reader.excuses.total()
            if checked <= 0:
                raise SoakError(f"{query.name}: no number of this round was looked for")

    def check(self, deadline: float, meanwhile: Callable[[], None], hanging_s: float) -> None:
        """Wait for every number in every output, and for the end of each transaction.

        ``hanging_s`` is how long a transaction may stay open after that.
        """
        self.await_all(deadline, meanwhile)
        for query, reader in self.readers.items():
            if query.is_exactly_once:
                reader.await_end(min(deadline, time.monotonic() + hanging_s))
                if reader.duplicates:
                    raise SoakError(f"{query.name}: {reader.duplicates} duplicates")

    def _excuses(
        self, query: QueryPlan, missing: NDArray[np.int64]
    ) -> dict[str, NDArray[np.int64]]:
        excuses = {}
        if self.producer.starts:
            excuses[DELETED] = missing[self._are_lost(query, missing)]
            missing = np.setdiff1d(missing, excuses[DELETED])
        if self.producer.is_compacted:
            excuses[COMPACTED] = self.producer.compacted(missing)
        return {reason: numbers for reason, numbers in excuses.items() if len(numbers)}

    def _are_lost(self, query: QueryPlan, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which records were deleted, and reported as lost by a query."""
        partitions, offsets = self.producer.places(numbers)
        are_lost = np.zeros(len(numbers), np.bool_)
        for loss in frozenset(self.losses()) - self._of_old_topics:
            if loss.query == query.name:
                end = min(loss.end, self.producer.starts.get(loss.partition, 0))
                are_lost |= (
                    (partitions == loss.partition) & (offsets >= loss.start) & (offsets < end)
                )
        return are_lost

    def _place(self, number: NDArray[np.int64], query: QueryPlan) -> str:
        [partition], [offset] = self.producer.places(number)
        losses = [
            f"[{loss.start}, {loss.end})"
            for loss in self.losses()
            if (loss.query, loss.partition) == (query.name, partition)
        ]
        start = self.producer.starts.get(int(partition), 0)
        return (
            f"its record is at offset {offset} of {SOURCE}-{partition}, which begins at {start}, "
            f"and the query has reported {', '.join(losses) or 'nothing'} as lost"
        )

    def facts(self) -> dict[str, Any]:
        """Return how many numbers there are, how many of them are of this round, and the counts."""
        count = self.producer.count
        return {"numbers": count, "of_round": count - self._begun, "counts": self.counts()}

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
        return self._ledger.facts()

    def _last_words(self) -> str:
        return self._driver.last_words()
