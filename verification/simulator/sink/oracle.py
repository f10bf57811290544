"""The promises: for errors when they are raised, and for everything at the end."""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import TransactionLostError
from pyspark_kafka.domain.writing.group_seal import GroupOffset, GroupSeal
from pyspark_kafka.domain.writing.transaction import (
    LANES,
    SLOTS,
    Transaction,
    TransactionEnd,
    TransactionState,
)

from ..engine.outcome import ViolationError
from .calls import StorageError
from .checkpoint import SOURCE, Checkpoint, between, part, value_of
from .faults import Fault
from .kafka import OPERATOR, Fate, Place
from .ports import SINKS
from .world import MAX_ENTRIES, World

PARTLY_LOST: Final = "A part of the batch is missing"
OTHER_DRIVER: Final = "Another driver has written entry"
LATE_WRITE: Final = "by a late write"

_REPLACED: Final = "a transaction that was aborted, and replaced, is taken for committed"
_ALL_COMMITTED: Final = "partly lost, says a driver, and another one has committed all"

_RESTORED: Final = "duplicate: an older backup was restored"
_REVIVED: Final = "an entry that was on its way when the log was deleted"
_UNREADABLE: Final = "lost: a checkpoint that the driver cannot read was restored or rewritten"

KNOWN: Final = frozenset(
    {
        _RESTORED,
        _REVIVED,
        "lost in part: FENCED by a late request",
        "lost in part: FENCED by task",
        "fences what began after its check",
        "text: its own late entry",
        "text: fenced after its time-out",
        "text: fenced after it was aborted",
        "dropped: FENCED by a late request",
        "dropped: FENCED by an attempt of its own",
        "text: one is open still",
        "text: one was committed",
        _UNREADABLE,
    }
)
"""Known limits of the code under test: counted, and no violation unless ``--strict``."""

_OF_OTHER_MODE: Final = re.compile(
    r"The transactions of batch (\d+) are|has taken over batch (\d+), and it alone"
    r"|batch (\d+) would write the records between them again"
    r"|Batch (\d+), the last one in the checkpoint, is an epoch"
)
_ENDS: Final = (TransactionEnd.ABORTED, TransactionEnd.TIMED_OUT, TransactionEnd.FENCED)
_DUPLICATES: Final = frozenset({Fault.DELETED_LOG, Fault.NEW_CHECKPOINT, Fault.COPIED})
_CHANGED: Final = frozenset({Fault.RESTORED, Fault.REWRITTEN})
_WITHOUT_ENTRIES: Final = frozenset({Fault.DELETED_LOG, Fault.RESTORED})
"""Actions of people that free the number of an entry of the sink's log."""
_SHARED: Final = frozenset({Fault.TWO_DRIVERS, Fault.COPIED, Fault.SUSPENDED_DRIVER})


def _kind_of(kind: str, ends: AbstractSet[TransactionEnd]) -> str:
    return _REPLACED if TransactionEnd.ABORTED in ends else kind


def application_of(process: str) -> str:
    """Return the application of a process: its number in the name."""
    return process.split(" ")[1].split(".", maxsplit=1)[0]


def batch_of(process: str) -> int:
    """Return the micro-batch of a process: ``commit 3.2`` is of batch 2."""
    return int(process.split(" ")[1].split(".")[1])


class Oracle:
    def __init__(self, world: World) -> None:
        self._world = world
        self.by_hand: set[Transaction] = set()
        """Transactions that people have ended by hand."""
        self._logged: defaultdict[int, list[SinkLogEntry]] = defaultdict(list)
        self._adders: dict[int, str] = {}
        self._checked: dict[Transaction, int | None] = {}
        """When a driver has seen that a transaction was open, before it logged the batch."""
        self._last: dict[str, SinkLogEntry] = {}
        world.check_error = self.check_error
        world.check_entry = self._check_entry
        world.kafka.check_commit = self._check_commit
        world.kafka.check_fence = self._check_fence
        world.kafka.check_offset = self._check_offset
        world.check_stop = self._check_stop
        self._committed: dict[str, tuple[int, int]] = {}
        """Who has committed last under a continuous query's id, and until when that was hidden."""

    def check_error(self, error: Exception, checkpoint: Checkpoint, by: str) -> None:
        """Check that what an error of the driver says is true."""
        if isinstance(error, TransactionLostError):
            self._check_lost(error, checkpoint, by)
        elif isinstance(error, MetadataLogError) and not isinstance(error, StorageError):
            if OTHER_DRIVER in error.message:
                self._check_other_driver(error, by)
            elif found := _OF_OTHER_MODE.search(error.message):
                batch = int(next(filter(None, found.groups())))
                self._check_other_mode(batch, checkpoint, error, by)
            elif not self._world.interference and not self._is_of_others(error, by):
                self._violate("untrue: the log", str(error))

    def _check_other_mode(
        self, batch: int, checkpoint: Checkpoint, error: Exception, by: str
    ) -> None:
        """Check that the other mode has not finished a batch that it is said to have to finish.

        A batch that is planned was not finished then: only a late write of the other mode did.
        """
        is_planned = by.startswith("plan") and batch_of(by) == batch
        if checkpoint.is_committed(batch) and not (is_planned or self._world.interference):
            self._violate("untrue: the other mode", str(error))

    def _is_of_others(self, error: MetadataLogError, by: str) -> bool:
        """Return whether an entry came late, or after the driver that read it had died."""
        adder = self._adders.get(max(self._adders, default=0), by)
        is_late = LATE_WRITE in error.message and "(late)" in adder
        is_late |= any(
            f"detected for {number}. " in error.message and str(error).endswith(f"({log})")
            for log, number in self._world.late_entries
        )
        return is_late or int(application_of(adder)) > int(application_of(by))

    def _violate(self, kind: str, text: str) -> None:
        """Raise, or count what is known of the code under test."""
        if kind not in KNOWN or self._world.settings.is_strict:
            raise ViolationError(kind, text)
        self._world.known[kind] += 1

    def _check_entry(self, number: int, content: bytes, checkpoint: Checkpoint, by: str) -> None:
        """Check that the transactions of a batch have its records, and ended as an entry says."""
        entry, kafka = SinkLogEntry.from_bytes(content), self._world.kafka
        self._logged[number].append(entry)
        self._adders[number], self._last[by] = by, entry
        if entry.state is BatchState.PREPARED:
            self._checked.update({each: kafka.checked.get(each) for each in entry.transactions})
            if "(late)" not in by:  # else the checkpoint may have been restored since
                self._check_records(entry, checkpoint)
        if not self.by_hand.isdisjoint(entry.transactions):
            return
        ends = {kafka.fates[each].end for each in entry.transactions if each in kafka.fates}
        is_committed = ends == {TransactionEnd.COMMITTED}
        if entry.state is BatchState.COMMITTED and ends and not is_committed:
            is_late = "(late)" in self._adders.get(number - 1, "")
            is_revived = is_late or self._world.known[_REVIVED] > 0
            if _WITHOUT_ENTRIES & self._world.interference and is_revived:
                self._violate(_REVIVED, str(entry))
                return
            self._violate(_kind_of("logged as committed, and is not", ends), str(entry))
        is_shared = Fault.COPIED in self._world.interference
        if entry.state is BatchState.DROPPED and TransactionEnd.COMMITTED in ends and not is_shared:
            self._violate("logged as dropped, and is not", str(entry))

    def _check_commit(self, name: str, begun_by: str, by: str, records: Sequence[bytes]) -> None:
        """Check that a query writes nothing after its ``stop`` has returned."""
        number = application_of(begun_by)
        if by.startswith("task"):
            self._committed[name] = int(number), self._world.scheduler.now_ms
        if records and number in self._world.stopped_ms:
            self._violate("visible after stop", f"{sorted(records)} of {begun_by}, by {by}")

    def _check_stop(self, processes: Sequence[str]) -> None:
        """Check that none of the tasks that still run may commit after ``stop`` has returned."""
        for process in processes:
            if records := self._world.kafka.open_records(process):
                self._violate("may be visible after stop", f"{sorted(records)} of {process}")

    def _check_offset(self, place: Place, before: GroupOffset, now: GroupOffset, by: str) -> None:
        """Check that no earlier batch seals a group again."""
        sealed, seal = (GroupSeal.of(each).batch_id for each in (before, now))
        if sealed is not None and seal is not None and seal < sealed:
            self._violate("a seal is lowered", f"{by} replaces {before} of {place} by {now}")

    def _check_fence(self, name: str, begun_by: str, by: str) -> None:
        """Check that no late micro-batch driver fences a task of a later query that it can see.

        A continuous driver cannot see another one in the same planned batch. Once a still later
        query has planned a micro-batch, any driver of micro-batches may fence the task.
        """
        is_continuous = f"-{SOURCE}-" in name
        is_driver = by.startswith(("plan", "commit", "abort")) and "(late)" not in by
        if not is_driver or name not in self._committed:
            return
        number, at_ms = self._committed[name]
        is_late = int(application_of(by)) < number and application_of(begun_by) == str(number)
        if not is_continuous or not is_late:
            return
        if self._world.planned_ms.get(by.split(" ")[1], 0) > at_ms:
            return  # it was suspended before it looked for its batch
        if any(int(key.split(".")[0]) > number for key in self._world.planned_ms):
            return
        looked_ms = self._world.looked_ms.get(by, self._world.scheduler.now_ms)
        if at_ms + self._world.settings.marker_ms < looked_ms:
            self._violate("a late driver fences a task", f"{by} fences {begun_by}, {name}")

    def _check_records(self, entry: SinkLogEntry, checkpoint: Checkpoint) -> None:
        """Check that no record of a batch is missing, if it is committed now."""
        records = self._world.kafka.records
        written = {value for each in entry.transactions for value in records[each]}
        missing = set(checkpoint.values(entry.batch_id)) - written - self._world.written_by_people
        if any(not self._world.is_visible(each) for each in missing):
            kind = _UNREADABLE if self._is_unreadable else "decided without its records"
            self._violate(kind, f"{missing}: {entry}")

    def _check_other_driver(self, error: MetadataLogError, by: str) -> None:
        found = re.search(rf"{OTHER_DRIVER} (-?\d+)", error.message)
        assert found
        adder = self._adders.get(int(found[1]), "")
        if not adder or application_of(adder) == application_of(by):
            what = "text: its own late entry" if "(late)" in adder else "untrue: another driver"
            self._violate(what, f"{adder or 'nobody'} added it: {error}")

    def _check_lost(self, error: TransactionLostError, checkpoint: Checkpoint, by: str) -> None:
        if Fault.COPIED in self._world.interference:
            return  # it is reported, and two logs cannot be right
        text = error.message
        found = re.search(rf"'{SINKS}/(\d+)'", text)
        entry = self._entry_of(error, by, int(found[1]) if found else None)
        if found and checkpoint.newest_entry()[0] > int(found[1]):
            self._violate("about an entry that is not the newest", text)
        if error.may_be_committed:
            self._check_unknown(error, entry)
            return
        for end in _ENDS:
            for name in re.findall(rf"'([^']+)' {re.escape(end.value)}", text):
                self._check_end(name, end, entry, by, text)
        if PARTLY_LOST in text:
            self._check_partly_lost(entry, text)
        elif "was dropped before" in text:
            self._check_dropped(checkpoint, entry, by, text)
        else:
            self._violate("unexplained loss", text)

    def _entry_of(self, error: TransactionLostError, by: str, number: int | None) -> SinkLogEntry:
        """Return the entry that an error is about.

        Another one may have its number by now, as where people delete the log. What was dropped
        before it was logged, the error knows alone.
        """
        own = [self._last[by]] if by in self._last else []
        logged = own if number is None else self._logged[number]
        names = set(error.transactional_ids)
        for entry in reversed(logged):
            if names <= {each.transactional_id for each in entry.transactions}:
                return entry
        if number is not None:
            return logged[-1]
        return SinkLogEntry(batch_of(by), BatchState.DROPPED, self._world.given[by])

    def _check_unknown(self, error: TransactionLostError, entry: SinkLogEntry) -> None:
        kafka = self._world.kafka
        logged = {each.transactional_id: each for each in entry.transactions}
        for name in error.transactional_ids:
            is_replaced = name in logged and kafka.is_replaced(logged[name])
            if name not in kafka.ever_forgotten and not is_replaced:
                self._violate("untrue: forgotten", error.message)

    def _check_end(
        self, name: str, end: TransactionEnd, entry: SinkLogEntry, by: str, text: str
    ) -> None:
        logged = [each for each in entry.transactions if each.transactional_id == name]
        kafka = self._world.kafka
        fate = kafka.fates.get(logged[0]) if logged else None
        if fate is None or fate.end is not end:
            if fate and fate.end is TransactionEnd.COMMITTED and PARTLY_LOST in text:
                is_lost = bool(self.lost(entry))
                what = "text: one was committed" if is_lost else _ALL_COMMITTED
            elif fate and fate.end is TransactionEnd.TIMED_OUT:
                what = "text: fenced after its time-out"
            elif fate and fate.end is TransactionEnd.ABORTED and kafka.is_replaced(logged[0]):
                what = "text: fenced after it was aborted"
            else:
                what = f"untrue: {end.name}"
            self._violate(what, f"it is {fate}: {text}")
        elif end is not TransactionEnd.TIMED_OUT and not self._is_by_another(fate.by, by):
            what = "a late request" if "(late)" in fate.by else "an attempt of its own"
            self._violate(f"dropped: {end.name} by {what}", f"it is {fate}: {text}")

    def _is_by_another(self, process: str, by: str) -> bool:
        if process == OPERATOR or _SHARED & self._world.interference:
            return True
        return application_of(process) != application_of(by)

    def _check_dropped(
        self, checkpoint: Checkpoint, entry: SinkLogEntry, by: str, text: str
    ) -> None:
        world = self._world
        seen = {each for each in checkpoint.values(entry.batch_id) if world.is_visible(each)}
        if seen and not world.interference:
            self._violate("untrue: no record is visible", text)
        if "took nearly as long" in text:
            took_ms = world.scheduler.now_ms - world.planned_ms[by.split(" ")[1]]
            timeout_ms = world.settings.timeout_ms
            if took_ms < timeout_ms - min(31_000, timeout_ms // 4 + 1_000):
                self._violate("untrue: took long", f"it took {took_ms} ms: {text}")

    def _check_partly_lost(self, entry: SinkLogEntry, text: str) -> None:
        lost = self.lost(entry)
        if not lost or len(lost) == len(entry.transactions):
            ends = {fate.end for fate in lost.values() if fate}
            kind = _kind_of("untrue: a part is missing", ends) if lost else _ALL_COMMITTED
            self._violate(kind, text)
        for transaction, fate in lost.items():
            if fate is None:
                self._violate("text: one is open still", text)
            else:
                self._require_excused(transaction, fate, text)

    def _require_excused(self, transaction: Transaction, fate: Fate, text: str) -> None:
        """Raise unless a batch had to be lost in part."""
        checked_ms = self._checked.get(transaction) or sys.maxsize
        if fate.at_ms < checked_ms:
            self._violate("lost in part, unchecked", f"{fate}: {text}")
        if fate.end is TransactionEnd.TIMED_OUT:
            needed_ms = min(30_000, self._world.settings.timeout_ms // 4)
            # The coordinator's clock is known within bounds only.
            is_exact = Fault.SKEW not in self._world.settings.kinds
            if is_exact and fate.at_ms - checked_ms < needed_ms:
                self._violate("lost in part, too late", f"{fate}: {text}")
        elif fate.by != OPERATOR and Fault.DELETED_LOG not in self._world.interference:
            what = "a late request" if "(late)" in fate.by else fate.by.split(" ")[0]
            self._violate(f"lost in part: {fate.end.name} by {what}", f"{fate}: {text}")

    def lost(self, entry: SinkLogEntry) -> dict[Transaction, Fate | None]:
        fates = {each: self._world.kafka.fates.get(each) for each in entry.transactions}
        return {
            each: fate
            for each, fate in fates.items()
            if fate is None or fate.end is not TransactionEnd.COMMITTED
        }

    def check_end(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Check that every record is visible once, and that bounds hold."""
        seen = self._world.kafka.visible + Counter(self._world.written_by_people)
        known = set()
        for checkpoint in checkpoints:
            for partition, offset in between({}, self._world.input):
                known.add(value_of(checkpoint.tag, partition, offset))
                self._check_record(partition, offset, checkpoint, checkpoints, seen)
        if extra := seen.keys() - known:
            self._violate("never read", str(sorted(extra)))
        self._check_bounds(checkpoints)
        self._check_ends_by_others()

    def _check_ends_by_others(self) -> None:
        """Check that no driver ends what another one has begun in a later batch, or in a copy."""
        world = self._world
        is_in_order = world.interference <= _SHARED
        for transaction, fate in world.kafka.fates.items():
            if fate.end not in (TransactionEnd.ABORTED, TransactionEnd.FENCED):
                continue
            if fate.by == OPERATOR or transaction in self._checked:
                continue
            begun_by = world.kafka.begun_by[transaction]
            one, other = application_of(fate.by), application_of(begun_by)
            if world.places[one] != world.places[other]:
                self._violate("a copy ends the original's transaction", f"{transaction}: {fate}")
            elif is_in_order and one != other and self._is_earlier(fate.by, begun_by):
                self._violate("a late driver ends a transaction", f"{transaction}: {fate}")

    def _is_earlier(self, process: str, other: str) -> bool:
        """Return whether a process is of a batch before another's."""
        if process.startswith("driver"):  # a continuous query, which may have taken a batch
            taken = self._world.taken.get(application_of(process))
            return taken is not None and taken < batch_of(other)
        return batch_of(process) < batch_of(other)

    def _check_record(
        self,
        partition: int,
        offset: int,
        checkpoint: Checkpoint,
        checkpoints: Sequence[Checkpoint],
        seen: Counter[bytes],
    ) -> None:
        value = value_of(checkpoint.tag, partition, offset)
        if offset < _at(checkpoint.first, partition, 0):
            # An earlier checkpoint of the same input has it.
            values = [value_of(each.tag, partition, offset) for each in checkpoints]
            if not any(seen[each] for each in values):
                self._violate("lost", f"record {value!r} is not visible")
        elif checkpoint.last is None or offset < _at(checkpoint.last, partition, 0):
            self._check_times(value, seen[value])

    def _check_times(self, value: bytes, times: int) -> None:
        world = self._world
        least, most = (1 + each[value] for each in (world.least, world.most))
        if times < least:
            self._violate(self._kind_of_loss(), f"record {value!r} is visible {times} times")
        if times > most and not world.interference & _DUPLICATES:
            kind = _RESTORED if Fault.RESTORED in world.interference else "duplicate"
            self._violate(kind, f"record {value!r} is visible {times} times")

    def _kind_of_loss(self) -> str:
        if self._world.known[_REVIVED]:
            return _REVIVED
        return _UNREADABLE if self._is_unreadable else "lost"

    @property
    def _is_unreadable(self) -> bool:
        """Whether people have changed a checkpoint that drivers cannot read."""
        settings = self._world.settings
        is_readable = settings.is_log_in_checkpoint or settings.is_checkpoint_readable
        return bool(_CHANGED & self._world.interference) and not is_readable

    def _check_bounds(self, checkpoints: Sequence[Checkpoint]) -> None:
        world = self._world
        runs = len(world.places)
        of_runs = runs * world.settings.partitions * LANES * SLOTS
        if len(world.kafka.names) > of_runs + len(world.input) * len(checkpoints):
            self._violate("too many ids", str(len(world.kafka.names)))
        if opened := world.kafka.find("", TransactionState.ONGOING):
            self._violate("left open", str(opened))
        for checkpoint in checkpoints:
            # A run that takes over, or aborts, adds one; the next batch of micro-batches purges.
            added = runs if world.settings.has_continuous else 0
            if len(checkpoint.sinks.batch_ids()) > MAX_ENTRIES + 2 + added:
                self._violate("too many entries", str(checkpoint.sinks.batch_ids()))


def _at(offsets: Mapping[TopicPartition, int], partition: int, default: int) -> int:
    return offsets.get(part(partition), default)
