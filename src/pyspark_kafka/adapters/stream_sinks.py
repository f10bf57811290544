"""Sinks of continuous queries: the state that every client tracks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, final

from ..domain.continuous.epochs import OutputTracker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from ..domain.partition_offsets import PartitionOffsets
    from ..domain.topic_partition import TopicPartition
    from ..ports.continuous import PolledRecords


class StreamSink(ABC):
    """The part of ``StreamClient`` that writes; its methods have the same contracts."""

    def __init__(self) -> None:
        self._tracker = OutputTracker()

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Forget earlier outputs of partitions; return the offsets at which these are read."""
        for partition in offsets:
            self._tracker.forget(partition)
        return offsets

    def revoke(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027  # a hook
        """Deliver the outputs that were written for partitions, and accept no more of them."""

    @abstractmethod
    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        """Write the outputs of polled records, and send them at once."""

    def send(self) -> float:
        """Send as much as possible, take acknowledgements, and raise delivery errors.

        Does not wait; returns for how many seconds the caller may.
        """
        return math.inf

    def awaited(self) -> Iterable[tuple[Any, Callable[[], bool]]]:
        """Return connections with requests in flight, each with its receiving function."""
        return ()

    def renew(self) -> None:  # noqa: B027  # a hook
        """Continue with new producers once all is written if certificates or keys were replaced."""

    @property
    def takes_outputs(self) -> bool:
        """Whether there may be further outputs; not while a new producer waits for the others."""
        return True

    def close(self) -> None:  # noqa: B027  # a hook
        """Close the clients that were created; a second call does nothing."""

    @property
    def has_acknowledged(self) -> bool:
        """Whether ``take_acknowledged`` has something to return."""
        return self._tracker.has_acknowledged

    def take_acknowledged(self) -> Mapping[TopicPartition, int]:
        """Return the offsets of the partitions that have advanced since the last call."""
        return self._tracker.take_acknowledged()

    @property
    def is_settled(self) -> bool:
        """Whether all that was written is acknowledged."""
        return self._tracker.is_settled


@final
class NoSink(StreamSink):
    """Writes nothing, and so acknowledges at once."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if outputs:
            raise ValueError("there is no sink to write to")
        self._tracker.add(polled.partition, polled.next_offset, 0)


def later(
    offsets: PartitionOffsets, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the greater of each offset and the committed one, if there is one."""
    return {each: max(offset, committed.get(each, offset)) for each, offset in offsets.items()}
