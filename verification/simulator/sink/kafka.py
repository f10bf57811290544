"""A cluster in memory that remembers what happened to each transaction, and by whom."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import (
    Transaction,
    TransactionDescription,
    TransactionEnd,
    TransactionState,
)

from ..engine.scheduler import Scheduler

TOPIC: Final = "out"
OPERATOR: Final = "an operator"
DAY_MS: Final = 86_400_000

_BEFORE_MARKERS: Final = {
    TransactionState.EMPTY: TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_ABORT: TransactionState.PREPARE_ABORT,
}

Lateness = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Fate:
    """How a transaction ended, when, and by whom."""

    end: TransactionEnd
    at_ms: int
    by: str


class Kafka:
    """What takes effect in Kafka, at once."""

    def __init__(
        self, scheduler: Scheduler, timeout_ms: int, marker_ms: int, lateness_ms: Lateness
    ) -> None:
        self.cluster = MemoryCluster(lambda: scheduler.now_ms)
        self.cluster.create_topic(TOPIC)
        self.fates: dict[Transaction, Fate] = {}
        self.records: dict[Transaction, list[bytes]] = {}
        self.checked: dict[Transaction, int] = {}
        """When a driver saw that a transaction was open."""
        self.begun_by: dict[Transaction, str] = {}
        self.names: set[str] = set()
        self.newest: dict[str, Transaction] = {}
        self.forgotten: set[str] = set()
        self.ever_forgotten: set[str] = set()
        self._used_ms: dict[str, int] = {}
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._marker_ms = marker_ms
        self._lateness_ms = lateness_ms
        self._port = MemoryTransactions(self.cluster, timeout_ms)

    def begin(self, name: str, by: str) -> Transaction:
        """Begin a transaction, and note which one is fenced by it."""
        self._note_end(name, TransactionEnd.FENCED, by)
        begun = self._port.begin(name)
        # Kafka gives a forgotten id a new producer id, and the cluster in memory gives it the same.
        while name in self.forgotten and begun.epoch < self.newest[name].epoch + 2:
            begun = self._port.begin(name)
        self.forgotten.discard(name)
        self.names.add(name)
        self.begun_by[begun] = by
        self._use(begun)
        return begun

    def describe(self, names: Collection[str], by: str) -> dict[str, TransactionDescription]:
        """Describe transactional ids, and note which transactions a driver knows to be open."""
        described = {
            name: self._before_markers(name, each)
            for name, each in self._port.describe(names).items()
        }
        if by.startswith("commit"):
            for name, each in described.items():
                if each.state is TransactionState.ONGOING:
                    newest = Transaction(name, each.producer_id, each.epoch)
                    self.checked[newest] = self._scheduler.now_ms
        return described

    def find(self, prefix: str, state: TransactionState) -> dict[str, TransactionDescription]:
        names = [name for name in self.names if name.startswith(prefix)]
        described = {
            name: self._before_markers(name, each)
            for name, each in self._port.describe(names).items()
        }
        return {name: each for name, each in described.items() if each.state is state}

    def commit(self, transaction: Transaction, by: str) -> None:
        self._port.commit(transaction)
        self.fates.setdefault(
            transaction, Fate(TransactionEnd.COMMITTED, self._scheduler.now_ms, by)
        )
        self._use(transaction)

    def abort(self, transaction: Transaction, by: str) -> None:
        if self.newest.get(transaction.transactional_id) == transaction:
            self._note_end(transaction.transactional_id, TransactionEnd.ABORTED, by)
        self._port.abort(transaction)

    def write(self, transaction: Transaction, values: Sequence[bytes]) -> None:
        """Append records; the first ones begin the time-out."""
        for value in values:
            number = self.cluster.number_of(transaction)
            self.cluster.produce(TOPIC, value, timestamp=0, transaction=number)
        if transaction not in self.records:
            self._scheduler.at(self._timeout_ms + self._lateness_ms(), self.expire)
        self.records.setdefault(transaction, []).extend(values)

    def expire(self) -> None:
        for name in self.cluster.abort_expired():
            before = self.newest[name]
            self.fates[before] = Fate(TransactionEnd.TIMED_OUT, self._scheduler.now_ms, "Kafka")
            self._use(Transaction(name, before.producer_id, before.epoch + 1))

    def forget(self) -> None:
        """Forget the ids that were not used for 7 days."""
        self.expire()
        for name, used_ms in self._used_ms.items():
            if used_ms < self._scheduler.now_ms - 7 * DAY_MS:
                self.cluster.forget_transactional_id(name)
                self.forgotten.add(name)
                self.ever_forgotten.add(name)

    def visible(self) -> Counter[bytes]:
        """Return how often each record is visible under ``read_committed``.

        An open transaction does not hide later ones here: at the end there is none.
        """
        found: Counter[bytes] = Counter()
        for transaction, fate in self.fates.items():
            if fate.end is TransactionEnd.COMMITTED:
                found.update(self.records.get(transaction, ()))
        return found

    def fetched(self) -> Counter[bytes]:
        partition = TopicPartition(TOPIC, 0)
        records = self.cluster.fetch(
            partition, 0, 1 << 40, committed_only=True, max_records=1 << 20
        )
        return Counter(record.value for record in records if record.value is not None)

    def _before_markers(self, name: str, found: TransactionDescription) -> TransactionDescription:
        """Return the state that a transaction has from its end until its markers are written."""
        fate = self.fates.get(self.newest[name])
        is_new = fate is not None and self._scheduler.now_ms - fate.at_ms < self._marker_ms
        return replace(found, state=_BEFORE_MARKERS[found.state]) if is_new else found

    def _note_end(self, name: str, end: TransactionEnd, by: str) -> None:
        newest = self.newest.get(name)
        if newest is not None and newest not in self.fates:
            described = self.cluster.describe_transaction(name)
            if described is not None and described.state is TransactionState.ONGOING:
                self.fates[newest] = Fate(end, self._scheduler.now_ms, by)

    def _use(self, newest: Transaction) -> None:
        self.newest[newest.transactional_id] = newest
        self._used_ms[newest.transactional_id] = self._scheduler.now_ms
