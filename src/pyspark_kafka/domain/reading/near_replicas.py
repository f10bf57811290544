"""Which replica each partition is fetched from, and when its leader has to answer itself (KIP-392).

A leader sends a consumer with a rack to an in-sync replica there, again and again, whether that
replica answers or not. Times are monotonic, in seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..topic_partition import TopicPartition

LEASE_S: Final = 30.0
"""How long a replica is fetched from until the leader is asked again. By then the leader knows
whether the replica is in sync (``replica.lag.time.max.ms``). The Java client waits
``metadata.max.age.ms``."""

MAX_LAG_S: Final = 5.0
"""How long a replica may have nothing of a range whose end the leader has reported."""

_MAX_PAUSE_S: Final = 600.0
_NO_LEASE: Final = (None, math.inf)


@final
class NearReplicas:
    """The replicas that leaders have named, until they fail or their lease ends."""

    def __init__(self, poll_timeout_s: float, lease_s: float = LEASE_S) -> None:
        """Take how long a read may wait for records; at most half of it is spent on replicas.

        A lease does not last longer than metadata, whose age may be ``lease_s``.
        """
        self._lease_s = min(lease_s, LEASE_S)
        self._max_lag_s = min(MAX_LAG_S, poll_timeout_s / 2)
        self._replicas: dict[TopicPartition, tuple[int, float]] = {}
        self._empty_since: dict[TopicPartition, float] = {}
        self._avoided: dict[TopicPartition, tuple[float, float]] = {}
        """The time until which leaders answer themselves, and how long the last such pause was."""

    def of(self, partition: TopicPartition) -> int | None:
        """Return the replica to fetch from, ``None`` for the leader."""
        return self._replicas.get(partition, (None, 0.0))[0]

    def is_avoided(self, partition: TopicPartition, now: float) -> bool:
        """Return whether the leader has to answer itself: a request without a rack."""
        return now < self._avoided.get(partition, (0.0, 0.0))[0]

    def prefer(
        self, partition: TopicPartition, replica: int, now: float, *, has_more: bool = False
    ) -> None:
        """Fetch from a replica that the leader named; with ``has_more``, the leader has more.

        The replica is avoided if it has had nothing for too long while there was something to send.
        """
        if has_more and now - self._empty_since.get(partition, now) > self._max_lag_s:
            self._avoid(partition, now)
        else:
            self._replicas[partition] = replica, now + self._lease_s

    def fail(self, partition: TopicPartition, now: float) -> None:
        """Leave the replica of a partition, if it has one; the leader names none for a while.

        Each further failure doubles that time.
        """
        if partition in self._replicas:
            self._avoid(partition, now)

    def has_answered(self, partition: TopicPartition, now: float, *, is_empty: bool) -> bool:
        """Note a replica's answer; return whether it had nothing for too long."""
        if partition not in self._replicas:
            return False
        if not is_empty:
            self._empty_since.pop(partition, None)
            self._avoided.pop(partition, None)
            return False
        return now - self._empty_since.setdefault(partition, now) > self._max_lag_s

    def expire(self, partitions: Iterable[TopicPartition], now: float) -> list[TopicPartition]:
        """Return the partitions whose lease has ended: their leaders are asked again."""
        ended = [each for each in partitions if self._replicas.get(each, _NO_LEASE)[1] <= now]
        for partition in ended:
            del self._replicas[partition]
        return ended

    def _avoid(self, partition: TopicPartition, now: float) -> None:
        self._replicas.pop(partition, None)
        self._empty_since.pop(partition, None)
        _, last_s = self._avoided.get(partition, (0.0, 0.0))
        pause_s = min(2 * last_s, _MAX_PAUSE_S) or LEASE_S
        self._avoided[partition] = now + pause_s, pause_s
