"""The sink of continuous queries, by librdkafka's producer."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final, final

from ..partitioning.topic_rows import require_topic
from ..stream_sinks import StreamSink
from .cluster import Cluster
from .partitioned_rows import BatchPartitioner
from .producer_config import FORCED, producer_client_config, producer_config
from .producer_handle import ProducerHandle

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ...domain.continuous.epochs import Output
    from ...domain.options.sink import SinkOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.continuous import PolledRecords
    from .partitioned_rows import PartitionedRows

STREAM_TUNED: Final = {
    # Records that come while requests are in flight are sent together.
    "linger.ms": "0",
    "socket.nagle.disable": "true",
}

_WAIT_S: Final = 0.1
"""How long to wait for reports before they are looked at."""


@final
class AtLeastOnceSink(StreamSink):
    """Sends outputs at once, with one producer, and counts their acknowledgements."""

    def __init__(self, options: SinkOptions, file: int) -> None:
        """Connect to nothing yet; ``file`` gets a byte when there are acknowledgements.

        :raises OptionsError: if librdkafka does not know a setting.
        """
        super().__init__()
        self._cluster = Cluster(options, producer_client_config)
        self._options = options
        self._partitioner = BatchPartitioner(options.producer, self._cluster)
        self._file = file
        self._numbers = itertools.count(1)
        self._outputs: dict[int, Output] = {}
        self._producer: ProducerHandle | None = None
        self._is_renewing = False
        """Whether another producer follows once all outputs are acknowledged."""

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        # The first record must not wait for connections.
        producer = self._connected()
        self.send()
        while self._tracker.awaits(offsets):
            producer.wait(_WAIT_S)
            self.send()
        return super().assign(offsets)

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        parts = self._partitioned(outputs) if outputs else []
        rows = sum(len(part.rows) for part in parts)
        output = self._tracker.add(polled.partition, polled.next_offset, rows)
        if parts:
            number = next(self._numbers)
            self._outputs[number] = output
            for part in parts:
                self._connected().send(part, number)

    def send(self) -> float:
        if self._producer is not None:
            for number, rows in self._producer.take_delivered():
                output = self._outputs[number]
                self._tracker.acknowledge(output, rows)
                if output.is_acknowledged:
                    del self._outputs[number]
        return math.inf

    def renew(self) -> None:
        self._is_renewing = self._cluster.settings.is_outdated
        if self._is_renewing and not self._outputs:
            self.close()
            self._is_renewing = False

    @property
    def takes_outputs(self) -> bool:
        return not self._is_renewing

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _partitioned(self, outputs: Sequence[pa.RecordBatch]) -> list[PartitionedRows]:
        """Return the rows of each output, after checking all of them.

        :raises PysparkKafkaError: if a row cannot be written.
        """
        topic, client = self._options.topic, self._connected()
        for batch in outputs:
            require_topic(batch, topic)
        parts = [self._partitioner.partitioned(client, batch, topic) for batch in outputs]
        self._partitioner.change_sticky_partitions()
        return parts

    def _connected(self) -> ProducerHandle:
        if self._producer is None:
            producer = self._options.producer
            tuned = {**producer_config(producer), **STREAM_TUNED}
            config = self._cluster.settings.config(FORCED, tuned)
            buffer, topic = producer.buffer_memory, self._options.topic
            timeout_s = producer.delivery_timeout_ms / 1_000
            self._producer = ProducerHandle(self._cluster, config, buffer, topic, timeout_s)
            self._producer.notify(self._file)
        return self._producer
