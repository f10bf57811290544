"""What a continuous query's outputs are written to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, final

from kafka import KafkaConsumer

from ...domain.continuous.output_tracker import OutputTracker
from ...domain.kafka_settings import api_timeout_ms
from ..kafka_format.compression import Codec, Compressor
from ..kafka_format.record_encoder import RecordEncoder
from ..partitioning.topic_rows import require_topic
from .cluster_metadata import ClusterMetadata
from .failures import ErrorMapper
from .produce_client import ProduceClient, Rows
from .produce_wire import ProduceSettings
from .row_partitioner import RowPartitioner
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from ...domain.options import SinkOptions
    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.topic_partition import TopicPartition
    from ...ports.stream_client import PolledRecords
    from .connections import RawConnection


class StreamSink(ABC):
    """Writes, without waiting, and tells what is acknowledged; see ``StreamClient``."""

    def __init__(self) -> None:
        self._tracker = OutputTracker()

    @abstractmethod
    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        """Return the offsets from which partitions are read."""

    @abstractmethod
    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        """Write, and send at once; waits while buffers are full."""

    @abstractmethod
    def send(self) -> float:
        """Send what can be sent, and return for how many seconds the caller may wait."""

    @abstractmethod
    def awaited(self) -> Iterable[tuple[RawConnection, Callable[[], None]]]:
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

    def awaited(self) -> Iterable[tuple[RawConnection, Callable[[], None]]]:
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
        settings = dict(options.kafka)
        config = {**KafkaConsumer.DEFAULT_CONFIG, **client_config(settings)}
        errors = ErrorMapper(options.bootstrap_servers, api_timeout_ms(settings))
        self._topic = options.topic
        self._metadata = ClusterMetadata(config, errors, for_writing=True)
        self._partitioner = RowPartitioner(self._metadata, errors, options.producer)
        codec = Codec[options.producer.compression.upper()]
        self._client = ProduceClient(
            config,
            errors,
            ProduceSettings(
                client_id=config["client_id"],
                acks=options.producer.acks,
                timeout_ms=config["request_timeout_ms"],
                needs_zstd=codec is Codec.ZSTD,
            ),
            options.producer,
            self._metadata,
            RecordEncoder(Compressor(codec, options.producer.compression_level)),
            on_delivery=self._acknowledge,
        )

    def assign(self, offsets: PartitionOffsets) -> PartitionOffsets:
        for partition in offsets:
            self._tracker.forget(partition)
        return offsets

    def write(self, polled: PolledRecords, outputs: Sequence[pa.RecordBatch]) -> None:
        for batch in outputs:
            require_topic(batch, self._topic)
        output = self._tracker.open(polled.partition, polled.next_offset)
        for batch in outputs:
            for columns, of_topic in self._partitioner.partition(batch, self._topic):
                for partition, rows in of_topic:
                    output.unacknowledged += len(rows)
                    self._client.append(partition, columns, rows, output)
        self._tracker.close(output)
        self._client.send_without_waiting()

    def send(self) -> float:
        return self._client.send_without_waiting()

    def awaited(self) -> Iterable[tuple[RawConnection, Callable[[], None]]]:
        return self._client.awaited()

    def close(self) -> None:
        self._client.close()
        self._metadata.close()

    def _acknowledge(self, records: Rows) -> None:
        if records.output is not None:
            self._tracker.acknowledge(records.output, len(records))
