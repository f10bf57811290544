"""Keeping others from committing the output of an exactly-once continuous query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from ...domain.writing.group_seal import GroupSeal
from ..writing.group_take_over import take_over_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.topic_partition import TopicPartition
    from ...ports.writing import Transactions


@final
@dataclass(frozen=True, slots=True)
class WriterExclusion:
    """The driver's side of a run: the others are drivers of micro-batches, and late tasks."""

    take_batch: Callable[[int], None]
    """Lets no micro-batch query write a planned batch: ``KafkaSink.hand_over``."""

    transactions: Callable[[], Transactions]
    settings: ContinuousSettings

    def require_unsealed(self, offsets: Mapping[TopicPartition, int], newest: int) -> None:
        """Check that the group is sealed with no later batch than the newest in the checkpoint.

        :raises QueryReplacedError: if it is, as with an older backup of the checkpoint.
        :raises PysparkKafkaError: as ``Transactions.committed``.
        """
        # A transaction of a task that was killed may stay open until its time-out.
        found = self.transactions().committed(
            self.settings.group_id, offsets.keys(), is_stable=False
        )
        replace(self.settings, first_epoch=newest).require_unsealed(found.values())

    def end_tasks(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Let no task of this run commit any longer, and return what they have committed.

        :raises PysparkKafkaError: as ``take_over_group``.
        """
        seal = GroupSeal(run_id=self.settings.run_id)
        return take_over_group(self.transactions(), self.settings.group_id, offsets, seal)
