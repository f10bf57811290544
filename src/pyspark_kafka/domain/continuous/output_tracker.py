"""Offsets below which every output is acknowledged."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from ..topic_partition import TopicPartition


@final
@dataclass(slots=True, eq=False)
class Output:
    """What was made of the records up to ``next_offset``; complete once it is closed."""

    partition: TopicPartition
    next_offset: int
    unacknowledged: int = 0
    is_closed: bool = False

    @property
    def is_acknowledged(self) -> bool:
        """Whether all of its rows are sent and acknowledged."""
        return self.is_closed and not self.unacknowledged


@final
class OutputTracker:
    """Tracks the outputs of several partitions, which brokers acknowledge in any order."""

    def __init__(self) -> None:
        self._outputs: dict[TopicPartition, deque[Output]] = {}
        self._advanced: dict[TopicPartition, int] = {}

    def open(self, partition: TopicPartition, next_offset: int) -> Output:
        """Return a new output of the records up to ``next_offset``, behind the earlier ones."""
        output = Output(partition, next_offset)
        self._outputs.setdefault(partition, deque()).append(output)
        return output

    def close(self, output: Output) -> None:
        """Take no more rows for an output."""
        output.is_closed = True
        self._advance(output.partition)

    def acknowledge(self, output: Output, rows: int) -> None:
        """Count acknowledged rows of an output."""
        output.unacknowledged -= rows
        self._advance(output.partition)

    def forget(self, partition: TopicPartition) -> None:
        """Forget the outputs of a partition, which is read from another offset."""
        self._outputs.pop(partition, None)
        self._advanced.pop(partition, None)

    def take_acknowledged(self) -> dict[TopicPartition, int]:
        """Return the offsets of the partitions that have advanced since the last call."""
        advanced, self._advanced = self._advanced, {}
        return advanced

    @property
    def has_acknowledged(self) -> bool:
        """Whether a partition has advanced since the last ``take_acknowledged``."""
        return bool(self._advanced)

    @property
    def is_settled(self) -> bool:
        """Whether no output is waited for."""
        return not self._outputs

    def _advance(self, partition: TopicPartition) -> None:
        outputs = self._outputs.get(partition)
        if outputs is None:
            # An output of before `forget` may still be acknowledged.
            return
        while outputs and outputs[0].is_acknowledged:
            self._advanced[partition] = outputs.popleft().next_offset
        if not outputs:
            del self._outputs[partition]
