"""Where one partition is read, and what its brokers' answers mean for it.

The caller fetches from ``offset`` on and reports what came of it. Nothing here reads a clock, waits
or does I/O; times are monotonic, in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, final

from ..options.option import INT64_MAX
from .errors import CorruptBatchError, LogTruncatedError
from .leader_epochs import NO_EPOCH, FetchedEpochs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from ..topic_partition import TopicPartition
    from .leader_epochs import EpochEndOffset


_SOME_REFUSALS: Final = 10
"""With the pauses between them, refusals for longer than two brokers lag at the same time."""

_MANY_REFUSALS: Final = 60
"""The same for any broker: about a minute."""

_REMEMBERED_S: Final = 600.0
"""Longer than two times the default age of metadata, for which a broker that is cut off may hide
the others each time that it is asked."""


@final
@dataclass(slots=True, eq=False)
class TopicIdentity:
    """The topic that is read, by the ids that metadata and fetches have shown (KIP-516).

    Brokers do not learn of a topic at the same time, but none forgets what it knew. So one broker
    that lags proves nothing, not even if it refuses the id and names another one in its metadata.
    A broker is ``None`` where it is not known which one answered.
    """

    topic_id: UUID | None = None
    """The id to fetch from; ``None`` on clusters without ids."""

    is_fetched_by_id: bool = True
    """Whether the leader takes ids; one that takes names cannot refuse an id."""

    _was_accepted: bool = False
    _known_by: set[int | None] = field(default_factory=set)
    _refusals: Sequence[tuple[float, int]] = ()
    """When brokers have refused the id that have not known it since."""

    _has_other: bool = False
    _other_by: int | None = None

    @property
    def is_recreated(self) -> bool:
        """Whether another topic has the name of the one that was read."""
        if not (self._has_other and self.is_fetched_by_id):
            return self._has_other
        witnesses = {self._other_by, *(broker for _, broker in self._refusals)} - {None}
        is_known = not self._known_by.isdisjoint(witnesses)
        enough = _SOME_REFUSALS if len(witnesses) > 1 else _MANY_REFUSALS
        return len(self._refusals) >= (1 if is_known else enough)

    def see(self, topic_id: UUID | None, broker: int | None) -> None:
        """Note the topic's id by a broker's metadata, ``None`` if they have none."""
        if topic_id is None:
            return
        self._has_other = self._was_accepted and self.topic_id not in (None, topic_id)
        self._other_by = broker
        if self._has_other:
            return
        if topic_id != self.topic_id:
            self._known_by.clear()
            self._refusals = ()
        self.topic_id = topic_id
        self._known_by.add(broker)
        self._forget_refusals({broker})

    def accept(self, broker: int | None) -> None:
        """Note that a leader answered a fetch: from now on the topic must not be another one."""
        self._was_accepted = True
        self._known_by.add(broker)
        # A broker that knew the topic refuses it for a moment after it has started again.
        self._forget_refusals(self._known_by)

    def refuse(self, broker: int, now: float) -> None:
        """Note that a leader does not know the id."""
        recent = [each for each in self._refusals if now - each[0] <= _REMEMBERED_S]
        self._refusals = (*recent, (now, broker))

    def _forget_refusals(self, brokers: Collection[int | None]) -> None:
        if self._refusals:
            self._refusals = [each for each in self._refusals if each[1] not in brokers]


MAX_BACKOFF_S: Final = 1.0
"""The longest pause between two tries to find a partition's leader."""

_MAX_FAILURES: Final = 10


class FetchError(Enum):
    """Classes of Kafka's errors of a fetch; each client maps its own to them."""

    OUT_OF_RANGE = auto()
    CORRUPT = auto()
    UNKNOWN_ID = auto()
    """The broker does not know the topic's id: not yet, or no longer."""

    RETRIABLE = auto()


class Step(Enum):
    """The next step after a fetch."""

    TAKE_RECORDS = auto()
    FETCH = auto()
    """From the cursor's offset, which is a smaller one now."""

    FIND_LEADER = auto()
    LEAVE_REPLICA = auto()
    """Ask the leader: a nearer replica may answer so only because it lags (KIP-392)."""


@dataclass(slots=True, eq=False)
class Cursor:
    """The part of a partition that is left to be read; another object after each assignment."""

    partition: TopicPartition
    offset: int
    until_offset: int = INT64_MAX
    epochs: FetchedEpochs = field(default_factory=FetchedEpochs)
    leader_epoch: int = NO_EPOCH
    truncated_from: int | None = None
    """The offset that was next when the log was found truncated; ``offset`` is a smaller one."""

    topic: TopicIdentity = field(default_factory=TopicIdentity)
    is_new: bool = True
    """Whether nothing was asked for yet."""

    is_undecoded: bool = False
    """Whether records before ``offset`` wait to be decoded: another broker's records come later."""

    is_out_of_range: bool = False
    """Whether a leader reported it: only the ends of its log confirm that."""

    failures: int = 0
    retry_at: float = 0.0
    failing_since: float = math.inf
    """Since when no request that named the partition was answered."""

    @property
    def passed(self) -> int:
        """The offset after what was read; ``offset`` is smaller once the log was truncated."""
        return self.offset if self.truncated_from is None else self.truncated_from

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left."""
        return self.offset >= self.until_offset

    def see(self, topic_id: UUID | None, broker: int | None) -> None:
        """Note the topic's id by a broker's metadata; the epochs of another topic begin again."""
        before = self.topic.topic_id
        self.topic.see(topic_id, broker)
        if self.topic.topic_id != before:
            self.leader_epoch = NO_EPOCH

    def may_move(self, now: float) -> bool:
        """Return whether a broker to fetch from may be looked for."""
        return self.retry_at <= now and not self.is_undecoded

    def is_led_elsewhere(self, leader_epoch: int) -> bool:
        """Return whether metadata that name another leader are newer than the one in use.

        A broker that is cut off from the cluster knows older ones (KIP-320).
        """
        return leader_epoch == NO_EPOCH or leader_epoch > self.leader_epoch

    def was_led(self, leader_epoch: int) -> bool:
        """Return whether metadata name a former leader, since a newer epoch of the topic is known.

        It may answer all the same, as a follower that knows the newer epoch.
        """
        return self.topic.topic_id is not None and NO_EPOCH < leader_epoch < self.leader_epoch

    def follow(self, leader_epoch: int) -> None:
        """Take a leader's epoch by the metadata, or the newest that is known of this topic.

        Without a topic's id its epochs may be those of another topic of this name, and begin again.
        """
        is_same = self.topic.topic_id is not None and leader_epoch != NO_EPOCH
        self.leader_epoch = max(self.leader_epoch, leader_epoch) if is_same else leader_epoch

    def answered(
        self,
        error: FetchError | None,
        diverging: EpochEndOffset | None,
        broker: int,
        now: float,
        *,
        is_leader: bool,
    ) -> Step:
        """Take a broker's answer, and return what comes next.

        :raises LogTruncatedError: if the log has other records than were read.
        :raises CorruptBatchError: if the broker cannot read its log.
        """
        if not is_leader and (diverging is not None or error is FetchError.OUT_OF_RANGE):
            return Step.LEAVE_REPLICA
        if diverging is not None:
            return Step.FETCH if self.compare(diverging) else Step.FIND_LEADER
        if self.truncated_from is not None and error in (None, FetchError.OUT_OF_RANGE):
            # The log is the same up to here.
            raise LogTruncatedError(self.partition, self.truncated_from, self.offset)
        if error is None:
            self.failures = 0
            return Step.TAKE_RECORDS
        if error is FetchError.CORRUPT:
            raise CorruptBatchError(self.partition, self.offset, "its broker cannot read it")
        if error is FetchError.UNKNOWN_ID:
            self.topic.refuse(broker, now)
        self.is_out_of_range = error is FetchError.OUT_OF_RANGE
        return Step.FIND_LEADER

    def compare(self, found: EpochEndOffset) -> bool:
        """Fetch from a smaller offset until the leader has the same records up to there.

        Return whether the answer has that offset.
        """
        same_until = self.epochs.truncate(found, self.offset)
        if same_until == self.offset:
            return False
        self._diverge(same_until)
        return True

    def advance(self, next_offset: int, diverges_at: int | None) -> None:
        """Pass what was fetched.

        :raises LogTruncatedError: if the log is another one from ``diverges_at`` on.
        """
        if diverges_at is not None:
            offset = self.offset
            self._diverge(diverges_at)
            raise LogTruncatedError(self.partition, offset, diverges_at)
        self.offset = next_offset

    def _diverge(self, offset: int) -> None:
        self.truncated_from, self.offset = self.passed, offset

    def back_off(self, now: float, pause_s: float) -> None:
        """Try again at once after the first failure, and ever later after further ones."""
        pause_s *= 2 ** (self.failures - 1) if self.failures else 0
        self.retry_at = now + min(pause_s, MAX_BACKOFF_S)
        self.failures = min(self.failures + 1, _MAX_FAILURES)
