"""The leader epochs of what was read of a partition, and where another log differs from it.

A leader writes its epoch, which no other leader of the partition has had, into each record batch.
Two replicas hold the same records up to an offset if they have the same epochs up to there
(KIP-101). A consumer detects by them that an unclean election has truncated what it read (KIP-320).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_EPOCH: Final = -1
"""The epoch of records in formats without one, and of a leader that does not report its own."""

NO_OFFSET: Final = -1


class EpochBatch(Protocol):
    """A record batch."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that wrote it."""

    @property
    def base_offset(self) -> int:
        """Its first offset."""


@final
@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """A leader's last epoch up to the one that it was asked for, and the offset after its records.

    Kafka's ``EpochEndOffset``: both are -1 if the leader knows no such epoch.
    """

    epoch: int
    end_offset: int


@final
class FetchedEpochs:
    """The epochs of the batches that were read of one partition, in order.

    There is an entry for each epoch, not for each batch. An epoch is unknown after batches of the
    formats 0 and 1.
    """

    __slots__ = ("_confirmed", "_is_doubted", "_starts")

    def __init__(self) -> None:
        self._starts: list[tuple[int, int]] = []
        self._confirmed = NO_EPOCH
        self._is_doubted = False

    @property
    def last(self) -> int:
        """The epoch of the last record before the next offset; -1 if a leader cannot compare it."""
        return self._starts[-1][0] if self._starts and not self._is_doubted else NO_EPOCH

    def is_confirmed(self, leader_epoch: int) -> bool:
        """Return whether the leader of an epoch need not be asked: it has the same records.

        A leader whose own epoch is not known cannot be asked.
        """
        return self.last == NO_EPOCH or leader_epoch <= max(self.last, self._confirmed)

    def confirm(self, found: EpochEndOffset, offset: int, leader_epoch: int) -> bool:
        """Return whether a leader's answer for ``last`` shows that it has the same records.

        The leader is not asked again until its successor leads.
        """
        if found.epoch != self.last or found.end_offset < offset:
            return False
        self._confirmed = leader_epoch
        return True

    def extend(self, batches: Sequence[EpochBatch]) -> int | None:
        """Add batches that follow; return where their log differs, as ``append`` does."""
        if batches[0].leader_epoch == batches[-1].leader_epoch == self.last:
            return None
        found = (self.append(batch.leader_epoch, batch.base_offset) for batch in batches)
        return next((offset for offset in found if offset is not None), None)

    def append(self, epoch: int, base_offset: int) -> int | None:
        """Add the next batch; return where the log differs from what was read, ``None`` if not.

        The log can only differ after an answer that left ``truncate`` in doubt.
        """
        last = self._starts[-1][0] if self._starts else NO_EPOCH
        if epoch == last:
            self._is_doubted = False
            return None
        if epoch == NO_EPOCH:
            self._starts.clear()
        elif self._is_doubted and epoch < last:
            # Epochs never go back in one log.
            return self._end_of(epoch, base_offset)
        else:
            self._starts.append((epoch, base_offset))
        self._is_doubted = False
        return None

    def truncate(self, found: EpochEndOffset, offset: int) -> int:
        """Return up to where a leader, which has another log, may have the same records.

        That is ``offset``, where reading had got to, or a smaller one. Then the epochs from there
        on are forgotten, and the leader has to be asked for the epoch that is the last one now.

        An answer without an offset proves nothing. An earlier epoch that ends at ``offset`` or
        later does not either: compaction may have removed all records of the later one.
        """
        if not NO_OFFSET < found.end_offset < offset:
            self._is_doubted = True
            return offset
        same_until = min(found.end_offset, self._end_of(found.epoch, offset))
        self._starts = [start for start in self._starts if start[1] < same_until]
        self._confirmed = NO_EPOCH
        return same_until

    def _end_of(self, epoch: int, end_offset: int) -> int:
        """Return where the records that were read of an epoch and of earlier ones end."""
        return next((start for other, start in self._starts if other > epoch), end_offset)
