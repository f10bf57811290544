"""Writing with record batches of our own, sent over kafka-python's connections."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
from kafka import KafkaConsumer
from kafka import errors as kafka_errors

from ...domain.errors import (
    NullTopicError,
    ProducerFencedError,
    RecordDeliveryError,
    RecordTooLargeError,
    UnknownTopicError,
)
from ...domain.kafka_settings import api_timeout_ms
from ...domain.topic_partition import TopicPartition
from ...domain.write_result import DeliveryStats
from ...ports.deadline import Deadline
from ...ports.record_writer import RecordWriter
from ..kafka_format.compression import Codec, Compressor
from ..kafka_format.java_sizes import JAVAS_OVERHEAD, first_too_large
from ..kafka_format.producer_columns import ProducerColumns
from ..kafka_format.record_blocks import read_only
from ..kafka_format.record_encoder import RecordEncoder
from ..partitioning.murmur2 import group_by_partition, murmur2_partitions
from ..partitioning.topic_rows import partitions_of, rows_by_topic
from .cluster_metadata import ClusterMetadata
from .failures import RETRIABLE_ERRORS, ErrorMapper
from .produce_client import ProduceClient
from .produce_wire import ProduceSettings
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...domain.options import SinkOptions
    from ...domain.transaction import Transaction

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
    Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

GATHERED_BYTES: Final = 1024 * 1024
"""Smaller Arrow batches are concatenated before they are encoded: a Kafka batch belongs to one
partition, and each partition gets only a few rows of a small Arrow batch."""

_TOPIC_PAUSE_S: Final = 0.1


@final
class KafkaPythonRecordWriter(RecordWriter):
    """Encodes Arrow batches as Kafka's and sends them; connects at first use, and stays so."""

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
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._gathered_topic: str | None = None
        self._sticky = random.randrange(1 << 16)  # noqa: S311  # no secret

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._client.join_transaction(transaction)

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        if topic is None and ("topic" not in batch.schema.names or batch["topic"].null_count):
            raise NullTopicError
        is_another = self._gathered and (
            batch.schema != self._gathered[0].schema or topic != self._gathered_topic
        )
        if is_another:
            self._write_gathered()
        self._gathered.append(batch)
        self._gathered_topic = topic
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= GATHERED_BYTES:
            self._write_gathered()

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
        batches, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if not batches:
            return
        batch = pa.concat_batches(batches) if len(batches) > 1 else batches[0]  # type: ignore[attr-defined]  # the stubs lack it
        with self._mapped_errors():
            columns = ProducerColumns.of(batch, time.time_ns() // 1_000_000)
            for topic, rows in rows_by_topic(batch, self._gathered_topic):
                self._append(topic, batch, columns, rows)
            self._client.send()

    def _append(
        self, topic: str, batch: pa.RecordBatch, columns: ProducerColumns, rows: Longs
    ) -> None:
        count = self._partition_count(topic)
        chosen = self._chosen(topic, batch, columns, rows, count)
        self._require_size(topic, columns, rows, chosen)
        for number, of_partition in group_by_partition(chosen, rows):
            self._client.append(TopicPartition(topic, number), columns, of_partition)

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

    def _chosen(
        self, topic: str, batch: pa.RecordBatch, columns: ProducerColumns, rows: Longs, count: int
    ) -> Integers:
        """Return the partition of every row of the batch; those of other topics have any."""
        self._sticky += 1
        sticky = self._sticky % count
        if self._producer.ignores_keys:
            chosen: Integers = np.full(columns.num_rows, sticky, np.int32)
        else:
            chosen = murmur2_partitions(columns, count, sticky)
        asked, is_asked = partitions_of(batch, rows, self._producer.partitioner, count)
        beyond = np.flatnonzero(is_asked & ((asked < 0) | (asked >= count)))
        if len(beyond):
            first = int(beyond[0])
            size = columns.payload_bytes(rows[first : first + 1])
            reason = f"the topic's partitions are 0 to {count - 1}"
            raise RecordDeliveryError(topic, int(asked[first]), size, reason)
        chosen[rows[is_asked]] = asked[is_asked]
        return chosen

    def _require_size(
        self, topic: str, columns: ProducerColumns, rows: Longs, chosen: Integers
    ) -> None:
        producer = self._producer
        limit = min(producer.max_request_size, producer.buffer_memory)
        if columns.record_sizes().max() + JAVAS_OVERHEAD <= limit:
            return
        place, size = first_too_large(columns.arrays, read_only(rows), limit)
        if place < 0:
            return
        # The words of Java's KafkaProducer.ensureValidRecordSize.
        if size > producer.max_request_size:
            larger_than = f"{producer.max_request_size}, which is the value of the max.request.size"
        else:
            larger_than = "the total memory buffer you have configured with the buffer.memory"
        row = rows[place : place + 1]
        raise RecordTooLargeError(
            topic,
            int(chosen[row[0]]),
            columns.payload_bytes(row),
            f"The message is {size} bytes when serialized which is larger than {larger_than} "
            "configuration.",
        )

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
