"""Which task reads which partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..topic_partition import TopicPartition


def spread(
    partitions: Iterable[TopicPartition], slots: Mapping[int, Collection[TopicPartition]]
) -> dict[int, list[TopicPartition]]:
    """Return the slot of each new partition: the one with the fewest, the lowest of equal ones.

    ``slots`` has the partitions that each slot reads already; only slots that get new ones are
    returned. Partitions are taken in order, so that each topic is spread evenly.

    :raises ValueError: if there is no slot.
    """
    if not slots:
        raise ValueError("there is no slot to read a partition")
    counts = {slot: len(read) for slot, read in sorted(slots.items())}
    spread_over: dict[int, list[TopicPartition]] = {}
    for partition in sorted(partitions):
        slot = min(counts, key=lambda each: (counts[each], each))
        counts[slot] += 1
        spread_over.setdefault(slot, []).append(partition)
    return spread_over
