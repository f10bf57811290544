"""The command that rewrites the offsets of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.application.checkpoints.offsets import OffsetCheckpoint
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from .application import Application
from .checkpoint import value_of

if TYPE_CHECKING:
    from collections import Counter

    from .checkpoint import Checkpoint
    from .world import World


class OffsetsTool(Application):
    """``pyspark-kafka offsets rewrite``, or ``undo`` without ``targets``."""

    def __init__(
        self, world: World, number: int, checkpoint: Checkpoint, targets: PartitionOffsets | None
    ) -> None:
        super().__init__(world, number, checkpoint)
        self._targets = targets
        self.spawn(self.name, self._run)

    def _run(self) -> None:
        use_cases, scheduler = self._use_cases, self._world.scheduler
        offsets = OffsetCheckpoint(
            use_cases.offsets, use_cases.commits, use_cases.backups, lambda: scheduler.now_ms
        )
        try:
            if self._targets is not None:
                before = offsets.read()
                offsets.change(before, before.moved_to({"0": self._targets}))
            elif (found := offsets.backup()) is not None:
                offsets.undo(offsets.read(), *found)
        except PysparkKafkaError as error:
            self.error = error
            self._world.tell(self.name, "fails", "", error)
        self._end()


class Moves:
    """How often outputs have to be visible after what the command has changed so far."""

    def __init__(self, world: World, checkpoint: Checkpoint) -> None:
        self._world = world
        self._checkpoint = checkpoint
        self._before = checkpoint.done()
        planned = checkpoint.planned()
        self._planned = planned.end if planned else self._before

    def note(self) -> None:
        """Compare where the query resumes now with where it resumed."""
        least, most = self._world.least, self._world.most
        after = self._checkpoint.done()
        for partition in after.keys() | self._planned.keys():
            now, before = after.get(partition, 0), self._before.get(partition, 0)
            # Of a planned batch, the sink may have decided what is read again now.
            self._add(most, partition.partition, before, self._planned.get(partition, 0), 1)
            for counted in (least, most):
                self._add(counted, partition.partition, now, before, 1)
            self._add(least, partition.partition, before, now, -1)

    def _add(self, counted: Counter[bytes], partition: int, start: int, end: int, by: int) -> None:
        for offset in range(start, end):
            counted[value_of(self._checkpoint.tag, partition, offset)] += by
