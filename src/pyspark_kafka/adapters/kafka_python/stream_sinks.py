"""Sinks of continuous queries, over kafka-python's connections."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, final

from ..partitioning.topic_rows import require_topic
from ..stream_sinks import StreamSink
from .produce_client import ProducerFactory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from ...domain.options.sink import SinkOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import PolledRecords
    from .connections import Awaited
    from .rows import Rows


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
        if self._topic is not None:
            with self._mapped_errors():
                self._client.connect(self._topic)
        return super().assign(offsets)

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        with self._mapped_errors():
            groups = partitioned(outputs, self._topic, self._factory)
            count = sum(len(rows) for _, rows in groups)
            output = self._tracker.add(polled.partition, polled.next_offset, count)
            for partition, rows in groups:
                self._client.append(partition, replace(rows, output=output))
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
