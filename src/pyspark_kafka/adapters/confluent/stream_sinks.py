"""Sinks of continuous queries, by librdkafka's producers."""

from __future__ import annotations

import itertools
import math
import weakref
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import BrokerUnreachableError
from ...domain.options.settings_table import ISOLATION_LEVEL, READ_COMMITTED
from ...ports.clock import Deadline
from ..partitioning.topic_rows import require_topic
from ..stream_sinks import StreamSink, TransactionalSink
from .cluster import Cluster
from .offset_fetcher import ConfluentOffsetFetcher
from .partitioned_rows import BatchPartitioner
from .producer_config import FORCED, producer_client_config, producer_config
from .producer_handle import ProducerHandle
from .transactions import PartitionTransactions, PendingOutputs, TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from threading import Event

    import pyarrow as pa

    from ...domain.continuous.epochs import Output
    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...domain.partition_offsets import PartitionOffsets
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

_CLOSE_S: Final = 0.5
"""How long a closed client waits for a call of librdkafka's, which ends its thread later."""


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
        """Return a new producer of transactions.

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
            self._producer = self._producers.create(FORCED, {})
            self._producer.notify(self._file)
        return self._producer


@final
class ExactlyOnceSink(TransactionalSink[PartitionTransactions]):
    """Commits outputs with the offsets of their input, in a thread for each partition."""

    def __init__(
        self,
        producers: SinkProducers,
        source: SourceOptions,
        settings: ContinuousSettings,
        wake: Callable[[], None],
    ) -> None:
        """Connect to nothing yet; ``wake`` is called after each commit."""
        super().__init__(settings)
        self._producers = producers
        self._wake = wake
        # The group is one of the sink's cluster. Its offsets are from ended transactions.
        kafka = {**dict(producers.options.kafka), ISOLATION_LEVEL: READ_COMMITTED}
        self._group = ConfluentOffsetFetcher(replace(source, kafka=tuple(kafka.items())))
        self._metadata: ProducerHandle | None = None
        weakref.finalize(self, _close_all, self._writers).atexit = False

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        parts: list[PartitionedRows] = []
        if outputs:
            parts = self._producers.partitioned(self._connected(), outputs)
        size = sum(part.payload_bytes for part in parts)
        transactions = self._track(polled)
        if transactions is not None:
            transactions.add(PendingOutputs(parts, polled.next_offset, size))

    def send(self) -> float:
        if self._metadata is not None:
            self._metadata.wait(0)
        self._take_committed()
        return math.inf

    def renew(self) -> None:
        if not self._producers.cluster.settings.is_outdated:
            return
        self._close_metadata()
        kept = self._writers.keys() - self._revoked
        self._await_end(kept)
        # What was committed last has to be taken before its producers are forgotten.
        self.send()
        self._fence(kept)

    def close(self) -> None:
        everything = list(self._writers.values())
        self._close_writers(list(self._writers))
        deadline = Deadline.after(_CLOSE_S)
        for transactions in everything:
            transactions.join(deadline.remaining)
        with ExitStack() as closing:
            closing.callback(self._group.close)
            closing.callback(self._close_metadata)

    def _connected(self) -> ProducerHandle:
        """Return the producer that asks for metadata, created at first use."""
        if self._metadata is None:
            self._metadata = self._producers.create(FORCED, {})
        return self._metadata

    def _close_metadata(self) -> None:
        metadata, self._metadata = self._metadata, None
        if metadata is not None:
            metadata.close()

    def _await_end(self, partitions: Collection[TopicPartition]) -> None:
        for partition in self._writers.keys() & partitions:
            self._writers[partition].await_end()

    def _begin(
        self, partitions: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        # The first record must not wait for connections.
        self._connected()
        self._fence(partitions)
        return self._group.committed(self._settings.group_id, new) if new else {}

    def _fence(self, partitions: Collection[TopicPartition]) -> None:
        """Begin new transactions of partitions, all at the same time."""
        for partition in partitions:
            self._writers[partition] = PartitionTransactions(
                partition,
                partial(self._producer, partition),
                self._wake,
                self._producers.options.producer.buffer_memory,
                self._producers.cluster.settings.timeout_s,
                partial(self._overdue, partition),
            )
        for partition in partitions:
            self._writers[partition].await_fenced()

    def _overdue(self, partition: TopicPartition) -> BrokerUnreachableError:
        settings = self._producers.cluster.settings
        reason = f"the transaction of {partition} waits for its coordinator"
        return BrokerUnreachableError(settings.bootstrap_servers, settings.timeout_s, reason)

    def _producer(self, partition: TopicPartition, stopped: Event) -> TransactionalProducer:
        name = self._settings.transactional_id(partition.topic, partition.partition)
        producer = self._producers.create_transactional(name)
        return TransactionalProducer(
            producer,
            self._producers.cluster,
            group_id=self._settings.group_id,
            transactional_id=name,
            stopped=stopped,
        )


def _close_all(writers: Mapping[TopicPartition, PartitionTransactions]) -> None:
    for transactions in writers.values():
        transactions.close()
