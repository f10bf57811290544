"""Records by kafka-python's consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors

from ...domain.kafka_settings import api_timeout_ms
from ...ports.record_reader import RecordReader
from ..arrow.polling import Polled, PolledPartition, read_by_polling
from .connecting import connect
from .failures import Cluster
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ...domain.offset_range import OffsetRange
    from ...domain.options import SourceOptions
    from ...domain.projection import Projection

POLL_MS: Final = 1_000
"""The longest wait of one poll; it ends with the first records."""


@final
class KafkaPythonRecordReader(RecordReader):
    """Polls one partition at a time, with one ``KafkaConsumer`` that is connected at first use."""

    def __init__(self, options: SourceOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        settings = dict(options.kafka)
        self._config = {
            **client_config(settings),
            "auto_offset_reset": "none",
            "enable_auto_commit": False,
            "allow_auto_create_topics": False,
            # A consumer in a group would wait for the group's coordinator before each poll.
            "group_id": None,
        }
        self._cluster = Cluster(options.bootstrap_servers, api_timeout_ms(settings))
        self._poll_timeout_ms = options.poll_timeout_ms
        self._connected: Any = None

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        with self._cluster.mapped_errors("a request for the brokers' versions"):
            if self._connected is None:
                self._connected = connect(KafkaConsumer, self._config)
        partition = _ConsumerPartition(self._connected, self._cluster, offset_range)
        return read_by_polling(partition, offset_range, projection, self._poll_timeout_ms)

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close(autocommit=False)
            self._connected = None


@final
class _ConsumerPartition(PolledPartition):
    """A ``KafkaConsumer`` that is assigned one partition."""

    def __init__(self, consumer: Any, cluster: Cluster, offset_range: OffsetRange) -> None:
        self._consumer = consumer
        self._cluster = cluster
        self._partition = ClientPartition(
            offset_range.partition.topic, offset_range.partition.partition
        )
        consumer.assign([self._partition])
        consumer.seek(self._partition, offset_range.from_offset)

    def poll(self, most: int) -> Polled | None:
        with self._cluster.mapped_errors(f"a fetch from {self._partition}"):
            try:
                records = self._consumer.poll(timeout_ms=POLL_MS, max_records=most)
            except kafka_errors.OffsetOutOfRangeError:
                return None
        return Polled(records.get(self._partition, ()), self._consumer.position(self._partition))

    def leave(self) -> None:
        self._consumer.unsubscribe()

    def ends(self) -> tuple[int, int]:
        partition, timeout_ms = self._partition, self._cluster.timeout_ms
        with self._cluster.mapped_errors(f"a request for the offsets of {partition}"):
            earliest = self._consumer.beginning_offsets([partition], timeout_ms=timeout_ms)
            latest = self._consumer.end_offsets([partition], timeout_ms=timeout_ms)
        return earliest[partition], latest[partition]
