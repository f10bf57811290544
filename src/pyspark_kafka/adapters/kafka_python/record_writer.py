"""Writing with record batches of our own, sent over kafka-python's connections."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

import numpy as np
from kafka import KafkaConsumer
from kafka import errors as kafka_errors

from ...domain.errors import ProducerFencedError, UnknownTopicError
from ...domain.kafka_settings import api_timeout_ms
from ...domain.topic_partition import TopicPartition
from ...domain.write_result import DeliveryStats
from ...ports.deadline import Deadline
from ...ports.record_writer import RecordWriter
from ..kafka_format.compression import Codec, Compressor
from ..kafka_format.producer_columns import ProducerColumns
from ..kafka_format.record_encoder import RecordEncoder
from ..kafka_format.size_limits import require_sizes
from ..partitioning.batch_gatherer import FEW_BYTES, BatchGatherer
from ..partitioning.murmur2 import group_by_partition
from ..partitioning.topic_rows import (
    ExplicitPartitions,
    partitions_by_key,
    require_partitions,
    require_topic,
    rows_by_topic,
)
from .cluster_metadata import ClusterMetadata
from .failures import RETRIABLE_ERRORS, ErrorMapper
from .produce_client import ProduceClient
from .produce_wire import ProduceSettings
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ...domain.options import SinkOptions
    from ...domain.transaction import Transaction
    from ..kernels.arrays import Int32Array, Int64Array

_TOPIC_PAUSE_S: Final = 0.1


@final
class KafkaPythonRecordWriter(RecordWriter):
    """Encodes Arrow batches as Kafka's and sends them; connects once, at first use."""

    def __init__(self, options: SinkOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        settings = dict(options.kafka)
        config = {**KafkaConsumer.DEFAULT_CONFIG, **client_config(settings)}
        self._producer = options.producer
        self._errors = ErrorMapper(options.bootstrap_servers, api_timeout_ms(settings))
        self._metadata = ClusterMetadata(config, self._errors, for_writing=True)
        codec = Codec[options.producer.compression.upper()]
        self._client = ProduceClient(
            config,
            self._errors,
            ProduceSettings(
                client_id=config["client_id"],
                acks=options.producer.acks,
                timeout_ms=config["request_timeout_ms"],
                needs_zstd=codec is Codec.ZSTD,
            ),
            options.producer,
            self._metadata,
            RecordEncoder(Compressor(codec, options.producer.compression_level)),
        )
        self._transaction: Transaction | None = None
        self._gatherer = BatchGatherer(FEW_BYTES)
        self._sticky = random.randrange(1 << 16)  # noqa: S311  # no secret

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._client.join_transaction(transaction)

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        require_topic(batch, topic)
        for gathered, option in self._gatherer.add(batch, topic):
            self._write(gathered, option)

    def flush(self) -> DeliveryStats:
        self._write_gathered()
        with self._mapped_errors():
            delivered = self._client.flush()
            self._client.join_transaction(None)
        self._transaction = None
        return delivered

    def close(self) -> None:
        self._client.close()
        self._metadata.close()

    def _write_gathered(self) -> None:
        for batch, topic in self._gatherer.take():
            self._write(batch, topic)

    def _write(self, batch: pa.RecordBatch, topic: str | None) -> None:
        written = unsent_rows = 0
        rows_per_request = self._producer.max_request_size * batch.num_rows // (batch.nbytes or 1)
        with self._mapped_errors():
            columns = ProducerColumns.of(batch, time.time_ns() // 1_000_000)
            explicit = ExplicitPartitions(batch, self._producer.partitioner)
            by_topic = rows_by_topic(batch, topic)
            self._metadata.add_topics(name for name, _ in by_topic)
            for name, rows in by_topic:
                partitions = self._partitions_of(name, columns, rows, explicit)
                for number, of_partition in group_by_partition(partitions, rows):
                    self._client.append(TopicPartition(name, number), columns, of_partition)
                    written += 1
                unsent_rows += len(rows)
                if unsent_rows > rows_per_request:
                    # Brokers work while the next rows are encoded.
                    self._client.send()
                    unsent_rows = 0
            self._client.send()
        self._gatherer.adapt(written)

    def _partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, which may be about to be created."""
        deadline = Deadline.after(self._producer.max_block_ms / 1_000)

        def count() -> int:
            try:
                return self._metadata.partition_count(topic)
            except RETRIABLE_ERRORS:
                if deadline.has_passed:
                    raise
                return 0

        if found := deadline.poll(count, _TOPIC_PAUSE_S):
            return found
        raise UnknownTopicError([topic], "topic", self._errors.bootstrap_servers)

    def _partitions_of(
        self, topic: str, columns: ProducerColumns, rows: Int64Array, explicit: ExplicitPartitions
    ) -> Int32Array:
        """Return the partition of each of a topic's rows."""
        settings, count = self._producer, self._partition_count(topic)
        self._sticky += 1
        sticky = self._sticky % count
        partitions, is_chosen = explicit.of(rows, count)
        require_partitions(topic, columns, rows, (partitions, is_chosen), count)
        if settings.ignores_keys:
            partitions = np.where(is_chosen, partitions, np.int32(sticky))
        else:
            partitions = partitions_by_key(columns, rows, (partitions, is_chosen), count, sticky)
        require_sizes(
            topic,
            columns,
            rows,
            partitions,
            max_size=settings.max_request_size,
            buffer_memory=settings.buffer_memory,
        )
        return partitions

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            with self._errors.mapped_errors("a request to produce"):
                yield
        except Exception as error:
            fenced = (kafka_errors.ProducerFencedError, kafka_errors.InvalidProducerEpochError)
            if self._transaction is not None and isinstance(error.__cause__, fenced):
                raise ProducerFencedError(self._transaction.transactional_id) from error
            raise
