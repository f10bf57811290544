"""Taking a group over from the tasks of an exactly-once continuous query."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...domain.writing.errors import ProducerFencedError
from ...domain.writing.group_seal import GroupOffset, GroupSeal
from ...domain.writing.transaction import continuous_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.topic_partition import TopicPartition
    from ...ports.writing import Transactions

    Check = Callable[[Mapping[TopicPartition, GroupOffset]], None]

_ATTEMPTS: Final = 3
"""A task that starts meanwhile fences whoever takes over, and is fenced in turn."""


def take_over_group(
    transactions: Transactions,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    seal: GroupSeal,
    check: Check = lambda _: None,
) -> dict[TopicPartition, int]:
    """Fence the tasks that write partitions, seal the group, and return what they committed.

    ``offsets`` are committed where they are greater. ``check`` may refuse what the group has,
    before a task is fenced and again before anything is committed. Afterwards, a run that this seal
    or an earlier one excludes can no longer commit. All of it has the time of one call.

    :raises ProducerFencedError: if tasks of the query start again and again.
    :raises PysparkKafkaError: as ``Transactions``.
    """
    with transactions.one_deadline():
        check(transactions.committed(group_id, offsets.keys(), is_stable=False))
        for _ in range(_ATTEMPTS - 1):
            with suppress(ProducerFencedError):
                return _take_over_once(transactions, group_id, offsets, seal, check)
        return _take_over_once(transactions, group_id, offsets, seal, check)


def _take_over_once(
    transactions: Transactions,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    seal: GroupSeal,
    check: Check,
) -> dict[TopicPartition, int]:
    begun = {
        partition: transactions.begin(continuous_id(group_id, *partition)) for partition in offsets
    }
    found = transactions.committed(group_id, offsets.keys())
    check(found)
    for partition, transaction in begun.items():
        before = found.get(partition, GroupOffset(0))
        offset = max(offsets[partition], before.offset)
        sealed = GroupOffset(offset, str(seal.beside(GroupSeal.of(before))))
        transactions.commit_offset(transaction, group_id, partition, sealed)
    return {partition: each.offset for partition, each in found.items()}
