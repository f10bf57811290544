"""Topics with their partitions, offsets and sizes, as brokers describe them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..partition_offsets import PartitionOffsets
    from ..security.rights import Operation


_RETENTION_MS: Final = "retention.ms"
_RETENTION_BYTES: Final = "retention.bytes"
_CLEANUP_POLICY: Final = "cleanup.policy"

DESCRIBED_SETTINGS: Final = (_CLEANUP_POLICY, _RETENTION_BYTES, _RETENTION_MS)
"""The settings of a topic that a description has."""

REPLICA_SELECTOR: Final = "replica.selector.class"
"""The brokers' setting for the class that lets consumers read from replicas (KIP-392)."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker, the address that it advertises, and its rack, empty if it has none."""

    broker_id: int
    host: str
    port: int
    rack: str = ""


@final
@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """The brokers of a partition, by their ids, and the size of the leader's log in bytes.

    ``leader`` is ``None`` while there is none. ``size`` is ``None`` if it is not known.
    """

    leader: int | None
    replicas: frozenset[int]
    in_sync: frozenset[int]
    size: int | None = None


@final
@dataclass(frozen=True, slots=True)
class TopicDescription:
    """The partitions of a topic by their numbers, its configuration, and the user's rights.

    ``config`` and ``operations`` are ``None`` if they are not known.
    """

    partitions: Mapping[int, PartitionDescription]
    config: Mapping[str, str] | None = None
    operations: frozenset[Operation] | None = None

    @property
    def retention_ms(self) -> int | None:
        """How long records are kept; -1 without a limit, ``None`` if it is not known."""
        return self._number(_RETENTION_MS)

    @property
    def retention_bytes(self) -> int | None:
        """How many bytes of a partition are kept; -1 without a limit, ``None`` if not known."""
        return self._number(_RETENTION_BYTES)

    @property
    def cleanup_policy(self) -> str | None:
        """``delete``, ``compact`` or both; ``None`` if it is not known."""
        return None if self.config is None else self.config.get(_CLEANUP_POLICY)

    def _number(self, name: str) -> int | None:
        text = "" if self.config is None else self.config.get(name, "")
        return int(text) if text.removeprefix("-").isdecimal() else None


_NOT_DESCRIBED = PartitionDescription(None, frozenset(), frozenset())


@final
@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """A partition with its offsets, ``None`` if its leader did not return them."""

    number: int
    earliest: int | None
    latest: int | None
    description: PartitionDescription

    @property
    def offsets(self) -> int | None:
        """The number of offsets: an upper bound of the number of records."""
        if self.earliest is None or self.latest is None:
            return None
        return max(0, self.latest - self.earliest)


@final
@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic and its partitions, in the order of their numbers."""

    name: str
    partitions: tuple[PartitionSummary, ...]
    description: TopicDescription

    @property
    def offsets(self) -> int | None:
        """The number of offsets of all partitions; ``None`` if one is not known."""
        return _sum(each.offsets for each in self.partitions)

    @property
    def size(self) -> int | None:
        """The bytes of all leaders' logs; ``None`` if one is not known."""
        return _sum(each.description.size for each in self.partitions)

    @property
    def leaders(self) -> frozenset[int]:
        """The brokers that lead partitions of the topic."""
        found = (each.description.leader for each in self.partitions)
        return frozenset(leader for leader in found if leader is not None)

    @property
    def replication_factor(self) -> int:
        """The largest number of replicas of a partition."""
        return max((len(each.description.replicas) for each in self.partitions), default=0)

    @property
    def under_replicated(self) -> int:
        """The number of partitions with replicas that are not in sync, or without a leader."""
        return sum(
            each.description.leader is None
            or bool(each.description.replicas - each.description.in_sync)
            for each in self.partitions
        )


def summarize(
    partitions: Iterable[TopicPartition],
    earliest: PartitionOffsets,
    latest: PartitionOffsets,
    descriptions: Mapping[str, TopicDescription],
) -> tuple[TopicSummary, ...]:
    """Return the topics of partitions in the order of their names.

    Topics that are not described were deleted meanwhile, and are left out.
    """
    by_topic: defaultdict[str, list[PartitionSummary]] = defaultdict(list)
    for each in sorted(partitions):
        if each.topic in descriptions:
            described = descriptions[each.topic].partitions.get(each.partition, _NOT_DESCRIBED)
            by_topic[each.topic].append(
                PartitionSummary(each.partition, earliest.get(each), latest.get(each), described)
            )
    return tuple(
        TopicSummary(name, tuple(found), descriptions[name]) for name, found in by_topic.items()
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
