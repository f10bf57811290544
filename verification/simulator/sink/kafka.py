"""A simulated Kafka: its transactions and the offsets of groups.

It remembers what happened to each transaction, and by whom.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import ProducerFencedError, TransactionLostError
from pyspark_kafka.domain.writing.group_seal import GroupOffset
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

_EXPIRATION_MS: Final = 7 * DAY_MS
_BEFORE_MARKERS: Final = {
    TransactionState.COMPLETE_COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_ABORT: TransactionState.PREPARE_ABORT,
}
_OPEN: Final = (TransactionState.EMPTY, TransactionState.ONGOING)

Lateness = Callable[[], int]
Place = tuple[str, TopicPartition]
"""A partition of a group."""


@dataclass(frozen=True, slots=True)
class Fate:
    """How a transaction ended, when, and by whom."""

    end: TransactionEnd
    at_ms: int
    by: str


@dataclass(slots=True)
class _TransactionalId:
    """A coordinator's knowledge of a transactional id."""

    newest: Transaction
    begun_by: str
    used_ms: int
    state: TransactionState = TransactionState.EMPTY
    started_ms: int = -1
    ended_ms: int = 0
    records: list[bytes] = field(default_factory=list)
    offsets: dict[Place, GroupOffset] = field(default_factory=dict)
    """Group offsets that its transaction is about to commit."""


class Kafka:
    """The effects of requests in Kafka, at once."""

    def __init__(
        self, scheduler: Scheduler, timeout_ms: int, marker_ms: int, lateness_ms: Lateness
    ) -> None:
        self.fates: dict[Transaction, Fate] = {}
        self.records: dict[Transaction, list[bytes]] = {}
        self.checked: dict[Transaction, int] = {}
        """When a driver saw that a transaction was open."""
        self.begun_by: dict[Transaction, str] = {}
        self.visible: Counter[bytes] = Counter()
        """How often each record is visible under ``read_committed``."""
        self.names: dict[str, None] = {}
        """All transactional ids that there ever were."""
        self.ever_forgotten: set[str] = set()
        self.check_commit: Callable[[str, str, str, Sequence[bytes]], None] = lambda *_: None
        self.check_fence: Callable[[str, str, str], None] = lambda *_: None
        self.check_offset: Callable[[Place, GroupOffset, GroupOffset, str], None] = lambda *_: None
        self._ids: dict[str, _TransactionalId] = {}
        self._groups: dict[Place, GroupOffset] = {}
        self._unstable: Counter[Place] = Counter()
        self._producers = 0
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._marker_ms = marker_ms
        self._lateness_ms = lateness_ms

    def begin(self, name: str, by: str) -> Transaction:
        """Begin a transaction: its id's epoch is raised by one more if one has to be aborted."""
        found = self._of(name)
        if found is None:
            self._producers += 1
            begun = Transaction(name, self._producers, 0)
        else:
            self.check_fence(name, found.begun_by, by)
            is_ongoing = found.state is TransactionState.ONGOING
            if is_ongoing:
                self._end(found, TransactionEnd.FENCED, by)
            epoch = found.newest.epoch + (2 if is_ongoing else 1)
            begun = Transaction(name, found.newest.producer_id, epoch)
        self._ids[name] = _TransactionalId(begun, by, self._scheduler.now_ms)
        self.names[name] = None
        self.begun_by[begun] = by
        return begun

    def describe(self, names: Collection[str], by: str) -> dict[str, TransactionDescription]:
        """Describe transactional ids, and note which transactions a driver knows to be open."""
        described = {}
        for name in names:
            if (found := self._of(name)) is not None:
                described[name] = self._description(found)
                if found.state is TransactionState.ONGOING and by.startswith("commit"):
                    self.checked[found.newest] = self._scheduler.now_ms
        return described

    def find(self, prefix: str, state: TransactionState) -> dict[str, TransactionDescription]:
        known = {name: self._of(name) for name in self.names if name.startswith(prefix)}
        return {
            name: self._description(each)
            for name, each in known.items()
            if each is not None and self._shown_state(each) is state
        }

    def is_replaced(self, transaction: Transaction) -> bool:
        found = self._of(transaction.transactional_id)
        return found is not None and found.newest.epoch > transaction.epoch

    def commit(self, transaction: Transaction, by: str) -> None:
        found = self._of(transaction.transactional_id)
        if found is not None and found.newest == transaction:
            if found.state in _OPEN:
                self._end(found, TransactionEnd.COMMITTED, by)
            if found.state is TransactionState.COMPLETE_COMMIT:
                return
        raise TransactionLostError(
            [transaction.transactional_id],
            "it was aborted",
            "Write it again.",
            may_be_committed=found is None,
        )

    def abort(self, transaction: Transaction, by: str) -> None:
        found = self._of(transaction.transactional_id)
        if found is not None and found.newest == transaction and found.state in _OPEN:
            self._end(found, TransactionEnd.ABORTED, by)

    def write(self, transaction: Transaction, values: Sequence[bytes]) -> None:
        """Append records; the first ones begin the time-out."""
        found = self._ongoing(transaction)
        found.records.extend(values)
        self.records.setdefault(transaction, []).extend(values)

    def add_offset(self, transaction: Transaction, place: Place, offset: GroupOffset) -> None:
        """Let a transaction change an offset of a group, which is unstable until it has ended."""
        found = self._ongoing(transaction)
        if place not in found.offsets:
            self._unstable[place] += 1
        found.offsets[place] = offset

    def commit_and_continue(self, transaction: Transaction, by: str) -> None:
        """Commit a transaction, whose producer then has the next one with the same epoch."""
        found = self._ongoing(transaction)
        self._end(found, TransactionEnd.COMMITTED, by)
        # The transactions of a producer are not distinguished.
        del self.fates[transaction]
        self.records.pop(transaction, None)
        found.state, found.records, found.offsets = TransactionState.EMPTY, [], {}

    def open_records(self, process: str) -> list[bytes]:
        """Return the records that a process may still commit, since nobody has fenced it."""
        return [
            record
            for found in self._ids.values()
            if found.state is TransactionState.ONGOING and found.begun_by == process
            for record in found.records
        ]

    def is_unstable(self, place: Place) -> bool:
        return self._unstable[place] > 0

    def is_ending(self, name: str) -> bool:
        """Return whether markers are still to be written."""
        found = self._of(name)
        return found is not None and self._scheduler.now_ms - found.ended_ms < self._marker_ms

    def group(self, group_id: str) -> Mapping[TopicPartition, GroupOffset]:
        return {
            partition: offset
            for (group, partition), offset in self._groups.items()
            if group == group_id
        }

    def _of(self, name: str) -> _TransactionalId | None:
        """Return what is known of an id, unless it was not used for 7 days."""
        found = self._ids.get(name)
        if found is None or found.state is TransactionState.ONGOING:
            return found
        if self._scheduler.now_ms - found.used_ms > _EXPIRATION_MS:
            del self._ids[name]
            self.ever_forgotten.add(name)
            return None
        return found

    def _ongoing(self, transaction: Transaction) -> _TransactionalId:
        found = self._of(transaction.transactional_id)
        if found is None or found.newest != transaction or found.state not in _OPEN:
            raise ProducerFencedError(transaction.transactional_id)
        if found.state is TransactionState.EMPTY:
            began_ms = self._scheduler.now_ms
            found.state, found.started_ms = TransactionState.ONGOING, began_ms
            until_ms = self._timeout_ms + self._lateness_ms()
            self._scheduler.at(until_ms, lambda: self._expire(found, transaction, began_ms))
        return found

    def _expire(self, found: _TransactionalId, transaction: Transaction, started_ms: int) -> None:
        is_same = found.newest == transaction and found.started_ms == started_ms
        if is_same and found.state is TransactionState.ONGOING:
            self._end(found, TransactionEnd.TIMED_OUT, "Kafka")
            name, epoch = transaction.transactional_id, transaction.epoch + 1
            found.newest = Transaction(name, transaction.producer_id, epoch)

    def _end(self, found: _TransactionalId, end: TransactionEnd, by: str) -> None:
        is_committed = end is TransactionEnd.COMMITTED
        if found.state is TransactionState.ONGOING or is_committed:
            self.fates[found.newest] = Fate(end, self._scheduler.now_ms, by)
        if is_committed:
            self.check_commit(found.newest.transactional_id, found.begun_by, by, found.records)
            self.visible.update(found.records)
        found.state = (
            TransactionState.COMPLETE_COMMIT if is_committed else TransactionState.COMPLETE_ABORT
        )
        found.ended_ms = found.used_ms = self._scheduler.now_ms
        offsets = found.offsets
        if offsets and self._marker_ms and is_committed:
            self._scheduler.at(
                self._marker_ms, lambda: self._settle(offsets, by, is_committed=True)
            )
        else:
            self._settle(offsets, by, is_committed=is_committed)

    def _settle(self, offsets: Mapping[Place, GroupOffset], by: str, *, is_committed: bool) -> None:
        """Let the offsets of a transaction count, or drop them: its markers are written."""
        self._unstable.subtract(offsets.keys())
        if is_committed:
            for place, offset in offsets.items():
                if place in self._groups:
                    self.check_offset(place, self._groups[place], offset, by)
            self._groups.update(offsets)

    def _description(self, found: _TransactionalId) -> TransactionDescription:
        newest, state = found.newest, self._shown_state(found)
        return TransactionDescription(
            newest.producer_id, newest.epoch, state, found.started_ms, self._timeout_ms
        )

    def _shown_state(self, found: _TransactionalId) -> TransactionState:
        """Return the state of an id: its end is not complete until the markers are written."""
        if self._scheduler.now_ms - found.ended_ms < self._marker_ms:
            return _BEFORE_MARKERS.get(found.state, found.state)
        return found.state
