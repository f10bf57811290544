"""What a continuous query makes of its records, written with at-least-once delivery."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.epochs import OutputTracker
from ...domain.partition_offsets import PartitionOffsets
from ..partitioning.topic_rows import require_topic
from .cluster import Cluster
from .partitioned_rows import BatchPartitioner
from .producer_config import FORCED, REPORT_FAILURES_ONLY, producer_client_config, producer_config
from .producer_handle import ProducerHandle

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from ...domain.continuous.epochs import Output
    from ...domain.options.sink import SinkOptions
    from ...domain.topic_partition import TopicPartition
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


class StreamWriter(ABC):
    """The part of ``StreamClient`` that writes; its methods mean what they mean there."""

    @property
    @abstractmethod
    def has_acknowledged(self) -> bool:
        """Whether ``take_acknowledged`` has something to return."""

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """Whether all that was written is acknowledged."""

    @abstractmethod
    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Wait until earlier outputs of these partitions are delivered; return where to begin."""

    @abstractmethod
    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Write no further outputs of these partitions."""

    @abstractmethod
    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        """Write what was made of polled records."""

    @abstractmethod
    def handle_events(self) -> None:
        """Take acknowledgements without waiting, and raise what could not be delivered."""

    @abstractmethod
    def take_acknowledged(self) -> Mapping[TopicPartition, int]:
        """Return the offsets of the partitions that have advanced since the last call."""

    @abstractmethod
    def renew(self) -> None:
        """Go on with new producers if certificates or keys were replaced, once all is written."""

    @abstractmethod
    def close(self) -> None:
        """Destroy what was created; a second call does nothing."""


@final
class NoSink(StreamWriter):
    """Writes nothing, and so acknowledges at once."""

    def __init__(self) -> None:
        self._tracker = OutputTracker()

    @property
    def has_acknowledged(self) -> bool:
        return self._tracker.has_acknowledged

    @property
    def is_settled(self) -> bool:
        return True

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        for partition in offsets:
            self._tracker.forget(partition)
        return offsets

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Do nothing: all is acknowledged."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        if outputs:
            raise ValueError("there is no sink to write to")
        self._tracker.close(self._tracker.open(polled.partition, polled.next_offset))

    def handle_events(self) -> None:
        """Do nothing: there is no producer."""

    def take_acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._tracker.take_acknowledged()

    def renew(self) -> None:
        """Do nothing: there is no producer."""

    def close(self) -> None:
        """Do nothing: nothing was created."""


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
class AtLeastOnceWriter(StreamWriter):
    """Sends outputs at once, with one producer, and counts their acknowledgements."""

    def __init__(self, producers: SinkProducers, file: int) -> None:
        """Connect to nothing yet; ``file`` gets a byte when there are acknowledgements."""
        self._producers = producers
        self._file = file
        self._tracker = OutputTracker()
        self._numbers = itertools.count(1)
        self._outputs: dict[int, Output] = {}
        self._producer: ProducerHandle | None = None

    @property
    def has_acknowledged(self) -> bool:
        return self._tracker.has_acknowledged

    @property
    def is_settled(self) -> bool:
        return self._tracker.is_settled

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        # The first record must not wait for connections.
        self._connected()
        self._flush()
        for partition in offsets:
            self._tracker.forget(partition)
        return offsets

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Do nothing: what was written is delivered."""

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        parts: list[PartitionedRows] = []
        if outputs:
            parts = self._producers.partitioned(self._connected(), outputs)
        output = self._tracker.open(polled.partition, polled.next_offset)
        output.unacknowledged = sum(len(part.rows) for part in parts)
        if parts:
            number = next(self._numbers)
            self._outputs[number] = output
            for part in parts:
                self._connected().send(part, number)
        self._tracker.close(output)

    def handle_events(self) -> None:
        if self._producer is None:
            return
        for number, rows in self._producer.take_delivered():
            output = self._outputs[number]
            self._tracker.acknowledge(output, rows)
            if output.is_acknowledged:
                del self._outputs[number]

    def take_acknowledged(self) -> Mapping[TopicPartition, int]:
        return self._tracker.take_acknowledged()

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
            self.handle_events()

    def _connected(self) -> ProducerHandle:
        if self._producer is None:
            self._producer = self._producers.create({REPORT_FAILURES_ONLY: "false"}, {})
            self._producer.notify(self._file)
        return self._producer
