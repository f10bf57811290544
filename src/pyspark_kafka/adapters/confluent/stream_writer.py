"""Sinks of continuous queries, by librdkafka's producers."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final, final

from ..partitioning.topic_rows import require_topic
from ..stream_sinks import StreamSink
from .cluster import Cluster
from .partitioned_rows import BatchPartitioner
from .producer_config import FORCED, REPORT_FAILURES_ONLY, producer_client_config, producer_config
from .producer_handle import ProducerHandle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from ...domain.continuous.epochs import Output
    from ...domain.options.sink import SinkOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.continuous import PolledRecords
    from .partitioned_rows import PartitionedRows
    from .topic_partitions import MetadataClient

STREAM_TUNED: Final = {
    # What comes while requests are in flight is sent together.
    "linger.ms": "0",
    "socket.nagle.disable": "true",
}

_KEPT_BROKERS: Final = {
    # A bootstrap replaces all brokers when the last connection ends, be it idle. Offsets then wait
    # for the replaced coordinator, and without a time-out (rd_kafka_coord_req_fsm, librdkafka
    # 2.16). If all addresses of the cluster change, the query's restart finds the new ones.
    "metadata.recovery.strategy": "none",
}


@final
class SinkProducers:
    """Creates producers for a sink, and prepares what they send."""

    def __init__(self, options: SinkOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        """
        self.cluster = Cluster(options, producer_client_config)
        self.options = options
        self._partitioner = BatchPartitioner(options.producer, self.cluster)

    def create(self, forced: Mapping[str, str], tuned: Mapping[str, str]) -> ProducerHandle:
        """Return a new producer; ``forced`` settings override the user's, and these ``tuned``.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        producer = self.options.producer
        config = self.cluster.settings.config(
            forced, {**producer_config(producer), **STREAM_TUNED, **tuned}
        )
        return ProducerHandle(self.cluster, config, producer.buffer_memory, self.options.topic)

    def create_transactional(self, transactional_id: str) -> ProducerHandle:
        """Return a new producer of transactions, which reports only failures.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        producer = self.options.producer
        timeout_ms = producer.transaction_timeout_ms
        tuned = {
            "transaction.timeout.ms": str(timeout_ms),
            # librdkafka requires it not to be longer.
            "message.timeout.ms": str(min(producer.delivery_timeout_ms, timeout_ms)),
            # The last transaction has not ended everywhere when the next one begins.
            "retry.backoff.ms": "2",
            "retry.backoff.max.ms": "100",
        }
        forced = {**FORCED, **_KEPT_BROKERS, "transactional.id": transactional_id}
        return self.create(forced, tuned)

    def partitioned(
        self, client: MetadataClient, outputs: Sequence[pa.RecordBatch]
    ) -> list[PartitionedRows]:
        """Return the rows of each output, after checking all of them.

        :raises PysparkKafkaError: if a row cannot be written.
        """
        topic = self.options.topic
        for batch in outputs:
            require_topic(batch, topic)
        parts = [self._partitioner.partitioned(client, batch, topic) for batch in outputs]
        self._partitioner.change_sticky_partitions()
        return parts


@final
class AtLeastOnceSink(StreamSink):
    """Sends outputs at once, with one producer, and counts their acknowledgements."""

    def __init__(self, producers: SinkProducers, file: int) -> None:
        """Connect to nothing yet; ``file`` gets a byte when there are acknowledgements."""
        super().__init__()
        self._producers = producers
        self._file = file
        self._numbers = itertools.count(1)
        self._outputs: dict[int, Output] = {}
        self._producer: ProducerHandle | None = None

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        # The first record must not wait for connections.
        self._connected()
        self._flush()
        return super().assign(offsets)

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        parts: list[PartitionedRows] = []
        if outputs:
            parts = self._producers.partitioned(self._connected(), outputs)
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
        if self._producers.cluster.settings.is_outdated:
            self._flush()
            self.close()

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _flush(self) -> None:
        if self._outputs:
            self._connected().flush()
            self.send()

    def _connected(self) -> ProducerHandle:
        if self._producer is None:
            self._producer = self._producers.create({REPORT_FAILURES_ONLY: "false"}, {})
            self._producer.notify(self._file)
        return self._producer
