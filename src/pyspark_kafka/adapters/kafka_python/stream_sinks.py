"""What a continuous query's outputs are written to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, final

from ...domain.continuous.epochs import OutputTracker
from ..partitioning.topic_rows import require_topic
from .produce_client import ProducerFactory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from ...domain.options.sink import SinkOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import PolledRecords
    from .connections import Awaited
    from .rows import Rows


class StreamSink(ABC):
    """Writes, without waiting, and tells what is acknowledged; see ``StreamClient``."""

    def __init__(self) -> None:
        self._tracker = OutputTracker()

    @abstractmethod
    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Return the offsets from which partitions are read."""

    def revoke(self, partitions: Collection[TopicPartition]) -> None:  # noqa: B027  # a hook
        """Deliver what is written of partitions; there comes no more."""

    @abstractmethod
    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        """Write, and send at once; waits while buffers are full."""

    @abstractmethod
    def send(self) -> float:
        """Send what can be sent, and return for how many seconds the caller may wait."""

    @abstractmethod
    def awaited(self) -> Iterable[Awaited]:
        """Return connections with requests in flight, and what receives the next response."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    @property
    def has_acknowledged(self) -> bool:
        """Whether ``take_acknowledged`` has something to return."""
        return self._tracker.has_acknowledged

    def take_acknowledged(self) -> Mapping[TopicPartition, int]:
        """Return the offsets that have advanced since the last call."""
        return self._tracker.take_acknowledged()

    @property
    def is_settled(self) -> bool:
        """Whether all is acknowledged."""
        return self._tracker.is_settled


@final
class NoSink(StreamSink):
    """For functions that return nothing."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        for partition in offsets:
            self._tracker.forget(partition)
        return offsets

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if outputs:
            raise ValueError("there is no sink to write to")
        self._tracker.close(self._tracker.open(polled.partition, polled.next_offset))

    def send(self) -> float:
        return math.inf

    def awaited(self) -> Iterable[Awaited]:
        return ()

    def close(self) -> None:
        """Do nothing."""


@final
class AtLeastOnceSink(StreamSink):
    """Writes as one producer, idempotent as its settings say."""

    def __init__(self, options: SinkOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        super().__init__()
        self._topic = options.topic
        self._factory = ProducerFactory(options)
        self._client = self._factory.new_client(self._acknowledge)

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        for partition in offsets:
            self._tracker.forget(partition)
        if self._topic is not None:
            with self._mapped_errors():
                self._client.connect(self._topic)
        return offsets

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with self._mapped_errors():
            output = self._tracker.open(polled.partition, polled.next_offset)
            for partition, rows in partitioned(outputs, self._topic, self._factory):
                output.unacknowledged += len(rows)
                self._client.append(partition, replace(rows, output=output))
            self._tracker.close(output)
            self._client.send_without_waiting()

    def send(self) -> float:
        with self._mapped_errors():
            return self._client.send_without_waiting()

    def awaited(self) -> Iterable[Awaited]:
        return self._client.awaited()

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._factory.close)
            closing.callback(self._client.close)

    def _mapped_errors(self) -> AbstractContextManager[None]:
        return self._factory.errors.mapped_errors("a request to produce")

    def _acknowledge(self, records: Rows) -> None:
        if records.output is not None:
            self._tracker.acknowledge(records.output, len(records))


def partitioned(
    outputs: Sequence[pa.RecordBatch], topic: str | None, factory: ProducerFactory
) -> list[tuple[TopicPartition, Rows]]:
    """Return the rows of outputs by partition; raises as ``RowPartitioner.partition``."""
    for batch in outputs:
        require_topic(batch, topic)
    groups = [group for batch in outputs for group in factory.partitioner.partition(batch, topic)]
    factory.partitioner.change_sticky_partitions()
    return groups
