"""The logs of a partition's replicas, and what is true of them."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from pyspark_kafka.domain.topic_partition import TopicPartition

from .batches import COMMIT, Batch

UNDEFINED: Final = (-1, -1)


class Stable(NamedTuple):
    """The last stable offset of a log, and its aborted transactions."""

    offset: int
    aborted: tuple[tuple[int, int, int], ...]
    """Producers, first offsets, and where their markers are."""


@dataclass(slots=True, eq=False)
class Replica:
    """A broker's log of a partition."""

    node: int
    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    high_watermark: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """Leader epochs, each with its first offset."""

    is_behind: bool = False
    """Whether it does not copy what its leader writes."""

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.start

    def append(self, batch: Batch) -> None:
        self.batches.append(batch)
        if batch.epoch >= 0:
            self.lead_in(batch.epoch, batch.base_offset)

    def lead_in(self, epoch: int, offset: int) -> None:
        """Note the first offset of a leader's epoch."""
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs.append((epoch, offset))

    def truncate(self, end: int) -> None:
        while self.batches and self.batches[-1].last_offset >= end:
            self.batches.pop()
        self.epochs = [each for each in self.epochs if each[1] < end]
        self.high_watermark = min(self.high_watermark, self.end)

    def follow(self, leader: "Replica") -> None:
        """Copy the leader's log, without what the leader does not have."""
        common = 0
        for ours, theirs in zip(self.batches, leader.batches, strict=False):
            if ours is not theirs:
                break
            common += 1
        self.batches[common:] = leader.batches[common:]
        self.start = leader.start
        self.epochs = list(leader.epochs)
        self.high_watermark = min(leader.high_watermark, self.end)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the last epoch up to one, and its end, as Kafka's ``LeaderEpochFileCache``."""
        if not self.epochs or epoch < 0:
            return UNDEFINED
        if epoch == self.epochs[-1][0]:
            return epoch, self.end
        higher = next((each for each in self.epochs if each[0] > epoch), None)
        if higher is None:
            return UNDEFINED
        lower = [each for each in self.epochs if each[0] <= epoch]
        return (lower[-1][0] if lower else epoch), higher[1]

    def stable(self) -> Stable:
        """Return the last stable offset, as far as records are replicated."""
        begun: dict[int, int] = {}
        aborted = []
        for batch in self.batches:
            if batch.base_offset >= self.high_watermark:
                break
            if batch.marker is not None:
                first = begun.pop(batch.producer, None)
                if first is not None and batch.marker != COMMIT:
                    aborted.append((batch.producer, first, batch.base_offset))
            elif batch.producer >= 0:
                begun.setdefault(batch.producer, batch.base_offset)
        # A transaction whose first records were deleted begins where the log does
        # (UnifiedLog.maybeIncrementFirstUnstableOffset).
        offset = min([*begun.values(), self.high_watermark])
        return Stable(max(self.start, offset), tuple(aborted))

    def open_transactions(self) -> dict[int, int]:
        begun: dict[int, int] = {}
        for batch in self.batches:
            if batch.marker is not None:
                begun.pop(batch.producer, None)
            elif batch.producer >= 0:
                begun.setdefault(batch.producer, batch.base_offset)
        return begun

    def from_offset(self, offset: int, end: int) -> Iterator[Batch]:
        """Yield the batches from the one on that has an offset, or comes after it."""
        if offset >= end:
            return
        at = bisect_left(self.batches, offset, key=lambda each: each.last_offset)
        for batch in self.batches[at:]:
            if batch.base_offset >= end:
                return
            yield batch


@dataclass(slots=True, eq=False)
class Truth:
    """A record: in which versions of its partition's log it is, and whether it is visible."""

    offset: int
    timestamp: int
    value: bytes
    producer: int
    batch: Batch
    born: int
    died: int = 1 << 30
    is_committed: bool | None = None
    """``None`` while its transaction is open."""


@dataclass(slots=True, eq=False)
class Partition:
    """A partition of a topic, with the log that counts: that of its last leader."""

    name: TopicPartition
    topic_id: UUID
    replicas: dict[int, Replica]
    leader: int = -1
    last_leader: int = -1
    epoch: int = -1
    in_sync: list[int] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)
    divergences: list[int] = field(default_factory=list)
    """Where the log of each version differs from the next one's."""

    is_deleted: bool = False

    @property
    def version(self) -> int:
        return len(self.divergences)

    @property
    def log(self) -> Replica:
        """The log that counts, also while the partition has no leader."""
        return self.replicas[self.last_leader]

    def note_batch(self, batch: Batch) -> None:
        """Note the records of a batch that the leader has taken."""
        if batch.marker is not None:
            for truth in self.truths:
                is_open = truth.is_committed is None and truth.died > self.version
                if truth.producer == batch.producer and is_open:
                    truth.is_committed = batch.marker == COMMIT
            return
        self.truths += [
            Truth(offset, time, value, batch.producer, batch, self.version)
            for offset, time, value in batch.records
        ]

    def diverge(self, end: int) -> None:
        """Note that the log was truncated to an offset."""
        self.divergences.append(end)
        for truth in self.truths:
            if truth.offset >= end and truth.died > self.version:
                truth.died = self.version

    def visible(self, start: int, end: int, version: int, *, committed: bool) -> Iterator[Truth]:
        """Yield the records with offsets of ``[start, end)`` that a reader must not pass.

        With ``committed``, one must not be passed while its transaction is open.
        """
        for truth in self.truths:
            is_there = start <= truth.offset < end and truth.born <= version < truth.died
            is_aborted = truth.producer >= 0 and truth.is_committed is False
            if is_there and not (committed and is_aborted):
                yield truth
