"""What the options of a sink say about how records are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from kafka import KafkaConsumer

from ..kafka_format.compression import Codec, Compressor
from ..kafka_format.record_encoder import RecordEncoder
from .cluster_metadata import ClusterMetadata
from .produce_client import ProduceClient
from .produce_wire import ProduceSettings
from .row_partitioner import RowPartitioner
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.options import SinkOptions
    from .rows import Rows


@final
class ProducerFactory:
    """Makes producers that share the cluster's metadata, and are used by one thread."""

    def __init__(self, options: SinkOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        config, self.errors = client_settings(dict(options.kafka))
        self.config: dict[str, Any] = {**KafkaConsumer.DEFAULT_CONFIG, **config}
        self.metadata = ClusterMetadata(self.config, self.errors, for_writing=True)
        self.partitioner = RowPartitioner(self.metadata, self.errors, options.producer)
        codec = Codec[options.producer.compression.upper()]
        self._producer = options.producer
        self._encoder = RecordEncoder(Compressor(codec, options.producer.compression_level))
        self._settings = ProduceSettings(
            client_id=self.config["client_id"],
            acks=options.producer.acks,
            timeout_ms=self.config["request_timeout_ms"],
            needs_zstd=codec is Codec.ZSTD,
        )

    def new_client(self, on_delivery: Callable[[Rows], None] | None = None) -> ProduceClient:
        """Return a new producer, which is not connected yet."""
        return ProduceClient(
            self.config,
            self.errors,
            self._settings,
            self._producer,
            self.metadata,
            self._encoder,
            on_delivery=on_delivery,
        )

    def close(self) -> None:
        """Close the connection for metadata."""
        self.metadata.close()
