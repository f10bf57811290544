"""Sinks of continuous queries: what every client tracks, and the rule of exactly-once delivery."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, final

from ..domain.continuous.epochs import OutputTracker
from ..domain.partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from ..domain.continuous.epochs import Output
    from ..domain.continuous.settings import ContinuousSettings
    from ..domain.topic_partition import TopicPartition
    from ..ports.continuous import PolledRecords


class StreamSink(ABC):
    """The part of ``StreamClient`` that writes; its methods mean what they mean there."""

    def __init__(self) -> None:
        self._tracker = OutputTracker()

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Forget earlier outputs of partitions; return the offsets at which these are read."""
        for partition in offsets:
            self._tracker.forget(partition)
        return offsets

    def revoke(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027  # a hook
        """Deliver what was written of partitions; nothing more is."""

    @abstractmethod
    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        """Write what was made of polled records, and send it at once."""

    def send(self) -> float:
        """Send what can be sent, take acknowledgements, and raise what could not be delivered.

        Does not wait; returns for how many seconds the caller may.
        """
        return math.inf

    def awaited(self) -> Iterable[tuple[Any, Callable[[], None]]]:
        """Return connections with requests in flight, and what receives the next response."""
        return ()

    def renew(self) -> None:  # noqa: B027  # a hook
        """Go on with new producers if certificates or keys were replaced, once all is written."""

    def close(self) -> None:  # noqa: B027  # a hook
        """Close what was created; a second call does nothing."""

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


class TransactionWriter(Protocol):
    """Writes the outputs of one input partition, one transaction after the other."""

    @property
    def is_settled(self) -> bool:
        """Whether all is committed, and its offset was taken."""

    @property
    def is_over(self) -> bool:
        """Whether it can be closed without a wait once it is finished."""

    def commit(self, next_offset: int) -> None:
        """Commit an offset of the input, without outputs."""

    def take_committed(self) -> int | None:
        """Return the offset that was committed since the last call, if any."""

    def finish(self) -> None:
        """Write no more than what was written; do not wait for that."""

    def close(self) -> None:
        """End the writer; what is not committed may be or not."""


W = TypeVar("W", bound=TransactionWriter)


class TransactionalSink(StreamSink, Generic[W]):
    """Commits outputs and the offsets of their input together, by a writer for each partition."""

    def __init__(self, settings: ContinuousSettings) -> None:
        super().__init__()
        self._settings = settings
        self._writers: dict[TopicPartition, W] = {}
        self._revoked: set[TopicPartition] = set()
        self._outputs: defaultdict[TopicPartition, deque[Output]] = defaultdict(deque)

    @final
    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        again = offsets.restrict(self._writers.keys() - self._revoked)
        self._await_end(offsets.keys())
        self._close_writers(offsets.keys())
        super().assign(offsets)
        committed = self._begin(offsets.keys(), offsets.keys() - again.keys())
        for partition, offset in again.items():
            self._writers[partition].commit(offset)
        return PartitionOffsets(later(offsets, committed))

    @final
    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        for partition in self._writers.keys() & set(partitions):
            self._revoked.add(partition)
            self._writers[partition].finish()

    @property
    def is_settled(self) -> bool:
        # The tracker does not know of offsets that `assign` commits.
        return super().is_settled and all(each.is_settled for each in self._writers.values())

    @abstractmethod
    def _await_end(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until what was written of partitions before is committed; some are new."""

    @abstractmethod
    def _begin(
        self, partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Begin writers, which fence earlier ones; then return the group's offsets of ``new``."""

    def _track(self, polled: PolledRecords) -> W | None:
        """Return the writer of outputs, which its commit of their offset acknowledges.

        There is none if the partition was revoked: another task may read it already.
        """
        partition = polled.partition
        if partition in self._revoked or partition not in self._writers:
            return None
        output = self._tracker.add(partition, polled.next_offset, 1)
        self._outputs[partition].append(output)
        return self._writers[partition]

    def _take_committed(self) -> None:
        """Acknowledge outputs, and close the writers of revoked partitions that are done."""
        for partition, writer in self._writers.items():
            committed = writer.take_committed()
            if committed is not None:
                outputs = self._outputs[partition]
                while outputs and outputs[0].next_offset <= committed:
                    self._tracker.acknowledge(outputs.popleft(), 1)
        self._close_writers([each for each in self._revoked if self._writers[each].is_over])

    def _close_writers(self, partitions: Collection[TopicPartition]) -> None:
        with ExitStack() as closing:
            for partition in partitions:
                self._revoked.discard(partition)
                self._outputs.pop(partition, None)
                writer = self._writers.pop(partition, None)
                if writer is not None:
                    closing.callback(writer.close)


def later(
    offsets: PartitionOffsets, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the greater of each offset and the one that is committed, if there is one."""
    return {each: max(offset, committed.get(each, offset)) for each, offset in offsets.items()}
