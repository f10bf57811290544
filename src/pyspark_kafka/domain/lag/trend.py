"""Whether a query catches up, from samples of its lag."""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..topic_partition import TopicPartition
    from .lag import SourceLag

WINDOW_MS: Final = 60_000
"""The window of the rates; twice the time between two commits, if that is longer."""

MAX_WINDOW_MS: Final = 900_000

MAX_SAMPLES: Final = 16
"""About how many samples a window has: one of 10,000 partitions takes some 2 MB."""

_MIN_WAITED_MS: Final = 10_000
_TOLERANCE: Final = 0.01


class Direction(enum.Enum):
    """The direction of a query's lag."""

    UNKNOWN = "unknown"
    CAUGHT_UP = "caught up"
    CATCHING_UP = "catching up"
    KEEPING_PACE = "keeping pace"
    FALLING_BEHIND = "falling behind"
    WAITING = "waiting"
    """There are records to read, and no batch is committed."""


@final
@dataclass(frozen=True, slots=True)
class Trend:
    """A direction, and the rates behind it, where they are known.

    ``read`` and ``arrived`` are offsets per second; ``seconds_left`` is the time until the lag is 0
    at this rate, and ``seconds_waited`` the time since the last commit.
    """

    direction: Direction
    read: float | None = None
    arrived: float | None = None
    seconds_left: float | None = None
    seconds_waited: float | None = None


@final
@dataclass(frozen=True, slots=True)
class LagSample:
    """The lag at a time (monotonic milliseconds); ``batch_id`` is the last committed batch."""

    at_ms: int
    batch_id: int
    sources: Mapping[str, SourceLag]

    @property
    def total(self) -> int:
        """The total lag of all sources."""
        return sum(source.lag.total for source in self.sources.values())

    def latest(self) -> dict[tuple[str, TopicPartition], int]:
        """Return the latest offset of each partition of each source."""
        return {
            (name, each.partition): each.latest
            for name, source in self.sources.items()
            for each in source.partitions
        }

    def consumed(self) -> dict[tuple[str, TopicPartition], int]:
        """Return the next offset to read of each partition of each source."""
        return {
            (name, each.partition): each.consumed
            for name, source in self.sources.items()
            for each in source.partitions
        }


@final
class LagTrend:
    """Keeps recent samples of one query.

    A query reads in batches, so that its lag is a sawtooth. Only samples right after a commit can
    be compared: the first and the last of these give direction and rate. Of samples in between,
    only some are kept, for when the first ones are too old.
    """

    def __init__(self) -> None:
        self._seen: deque[LagSample] = deque()
        self._commits: deque[LagSample] = deque()
        self._window_ms = WINDOW_MS

    def add(self, sample: LagSample) -> Trend:
        """Add a sample, later than those before, and return the trend."""
        if self._seen and sample.batch_id != self._seen[-1].batch_id:
            if self._commits:
                apart = sample.at_ms - self._commits[-1].at_ms
                self._window_ms = min(MAX_WINDOW_MS, max(WINDOW_MS, 2 * apart))
            self._keep(self._commits, sample)
        self._keep(self._seen, sample)
        for kept in (self._seen, self._commits):
            while len(kept) > 2 and sample.at_ms - kept[0].at_ms > self._window_ms:
                kept.popleft()
        return self._trend(sample)

    def _keep(self, kept: deque[LagSample], sample: LagSample) -> None:
        """Append a sample, instead of the last one if that is close to the one before it."""
        if len(kept) > 1 and (kept[-1].at_ms - kept[-2].at_ms) * MAX_SAMPLES < self._window_ms:
            kept.pop()
        kept.append(sample)

    def _trend(self, now: LagSample) -> Trend:
        arrived = _rate(self._seen[0], now, self._seen[0].latest(), now.latest())
        if now.total == 0:
            return Trend(Direction.CAUGHT_UP, arrived=arrived)
        waited = now.at_ms - (self._commits or self._seen)[-1 if self._commits else 0].at_ms
        if len(self._commits) < 2 or waited > self._window_ms:
            is_long = waited >= _MIN_WAITED_MS
            direction = Direction.WAITING if is_long else Direction.UNKNOWN
            return Trend(
                direction, arrived=arrived, seconds_waited=waited / 1_000 if is_long else None
            )
        return self._between_commits(now, arrived)

    def _between_commits(self, now: LagSample, arrived: float | None) -> Trend:
        first, last = self._commits[0], self._commits[-1]
        read = _rate(first, last, first.consumed(), last.consumed())
        gained = first.total - last.total
        if abs(gained) <= _TOLERANCE * max(first.total, last.total):
            return Trend(Direction.KEEPING_PACE, read, arrived)
        if gained < 0:
            return Trend(Direction.FALLING_BEHIND, read, arrived)
        rate = gained * 1_000 / (last.at_ms - first.at_ms)
        return Trend(Direction.CATCHING_UP, read, arrived, seconds_left=now.total / rate)


def _rate(
    first: LagSample,
    last: LagSample,
    before: Mapping[tuple[str, TopicPartition], int],
    after: Mapping[tuple[str, TopicPartition], int],
) -> float | None:
    """Return offsets per second, over the partitions that are in both samples."""
    if last.at_ms <= first.at_ms:
        return None
    growth = sum(after[each] - offset for each, offset in before.items() if each in after)
    return growth * 1_000 / (last.at_ms - first.at_ms)
