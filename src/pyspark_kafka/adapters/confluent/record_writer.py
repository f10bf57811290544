"""Records for librdkafka's producer."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ...domain.errors import PysparkKafkaError, UnsupportedFeatureError
from ...domain.writing.transaction import DeliveryStats
from ...ports.writing import RecordWriter
from ..partitioning.batch_gatherer import BatchGatherer
from ..partitioning.topic_rows import require_topic
from ..process_local import ProcessLocal
from .cluster import Cluster
from .idle_watch import IdleWatch
from .partitioned_rows import BatchPartitioner
from .producer_config import FORCED, producer_client_config, producer_config
from .producer_handle import ProducerHandle

if TYPE_CHECKING:
    import pyarrow as pa

    from ...domain.options.sink import SinkOptions
    from ...domain.writing.transaction import Transaction


@final
@dataclass(slots=True)
class _Session:
    """A client, and the records that it has written."""

    client: ProducerHandle
    gatherer: BatchGatherer
    written: DeliveryStats


@final
class ConfluentRecordWriter(RecordWriter):
    """Writes with one handle of librdkafka's, which is created at first use."""

    def __init__(self, options: SinkOptions) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        :raises UnsupportedFeatureError: if its C API cannot be called.
        """
        self._cluster = Cluster(options, producer_client_config)
        self._watch = IdleWatch(self._cluster.settings)
        self._uses: ExitStack | None = None
        self._producer = options.producer
        self._topic = options.topic
        self._tuned = producer_config(options.producer)
        self._partitioner = BatchPartitioner(options.producer, self._cluster)
        self._local: ProcessLocal[_Session] = ProcessLocal()

    def join_transaction(self, transaction: Transaction) -> None:  # noqa: ARG002  # the port's
        raise UnsupportedFeatureError(
            "The client 'confluent'",
            "write into a transaction that another process ends; use the client 'kafka-python'",
        )

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        require_topic(batch, topic)
        self._begin()
        session = self._session()
        for gathered, option in session.gatherer.add(batch, topic):
            self._write(session, gathered, option)

    def flush(self) -> DeliveryStats:
        session = self._local.get()
        if session is None:
            return DeliveryStats()
        for batch, topic in session.gatherer.take():
            self._write(session, batch, topic)
        if session.written.records:
            session.client.flush()
            session.client.take_delivered()
        self._partitioner.change_sticky_partitions()
        written, session.written = session.written, DeliveryStats()
        self._end()
        return written

    def close(self) -> None:
        self._begin()
        self._close_session()
        self._end()

    def handle_idle_events(self) -> bool:
        """Implement ``Watched``."""
        session = self._local.get()
        if session is not None:
            try:
                session.client.wait(0)
            except PysparkKafkaError:
                self._close_session()
        return self._local.get() is not None

    def _begin(self) -> None:
        """Begin to use the client, until the end of ``flush``."""
        if self._uses is None:
            self._uses = ExitStack()
            self._uses.enter_context(self._watch.in_use())
            if self._cluster.settings.is_outdated:
                self._close_session()

    def _end(self) -> None:
        uses, self._uses = self._uses, None
        if uses is not None:
            uses.close()

    def _close_session(self) -> None:
        session = self._local.pop()
        if session is not None:
            session.client.close()

    def _session(self) -> _Session:
        session = self._local.get() or self._local.set(
            _Session(self._new_client(), BatchGatherer(), DeliveryStats())
        )
        self._watch.start(self)
        return session

    def _write(self, session: _Session, batch: pa.RecordBatch, topic: str | None) -> None:
        # All rows are checked before the first is sent.
        rows = self._partitioner.partitioned(session.client, batch, topic)
        session.client.send(rows)
        session.written += DeliveryStats(batch.num_rows, rows.payload_bytes)
        session.gatherer.adapt(rows.groups)

    def _new_client(self) -> ProducerHandle:
        config = self._cluster.settings.config(FORCED, self._tuned)
        producer = self._producer
        timeout_s = producer.delivery_timeout_ms / 1_000
        return ProducerHandle(self._cluster, config, producer.buffer_memory, self._topic, timeout_s)
