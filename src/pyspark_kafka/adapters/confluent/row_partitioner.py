"""The rows of a batch by topic and partition, checked and ready for librdkafka."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import UnsupportedFeatureError
from ...ports.clock import epoch_ms
from ..kafka_format.producer_columns import ProducerColumns
from ..kafka_format.size_limits import MAX_REQUEST_SIZE, require_sizes
from ..kernels.arrays import read_only
from ..partitioning.topic_rows import (
    ExplicitPartitions,
    partitions_by_key,
    require_partitions,
    rows_by_topic,
)
from .partitioned_rows import PartitionedRows
from .producer_config import MESSAGE_MAX_BYTES, METADATA_MAX_AGE_MS, PARTITIONER
from .topic_partitions import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ...domain.kafka_settings import ProducerSettings
    from ..kernels.arrays import Int64Array
    from .connection import Connection
    from .topic_partitions import MetadataClient

_METADATA_MAX_AGE_MS: Final = 300_000
"""The default of librdkafka and of Java's client."""


@final
class RowPartitioner:
    """Divides batches into the rows of each topic, and chooses their partitions."""

    def __init__(self, producer: ProducerSettings, connection: Connection) -> None:
        self._producer = producer
        config = connection.config({}, {})
        self._limit = _limit(producer, config)
        self._hashes_keys = not (producer.ignores_keys or PARTITIONER in config)
        self._topics = TopicPartitions(
            connection, producer.max_block_ms / 1_000, _max_age_s(config)
        )
        self._sticky = random.randrange(1 << 16)  # noqa: S311  # no secret

    def partitioned(
        self, client: MetadataClient, batch: pa.RecordBatch, topic: str | None
    ) -> list[PartitionedRows]:
        """Return the rows of each topic; ``topic`` overrides the column. All rows are checked.

        :raises PysparkKafkaError: if a row cannot be written.
        """
        columns = ProducerColumns.of(batch, epoch_ms())
        explicit = ExplicitPartitions(batch, self._producer.partitioner)
        return [
            self._of_topic(client, name, batch, columns, rows, explicit)
            for name, rows in rows_by_topic(batch, topic)
        ]

    def _of_topic(
        self,
        client: MetadataClient,
        topic: str,
        batch: pa.RecordBatch,
        columns: ProducerColumns,
        rows: Int64Array,
        explicit: ExplicitPartitions,
    ) -> PartitionedRows:
        count = self._topics.count(client, topic)
        partitions, is_chosen = explicit.of(rows, count)
        if (partitions >= count).any():
            # The topic may have got more partitions.
            count = self._topics.count(client, topic, refresh=True)
        chosen = partitions, is_chosen
        require_partitions(topic, columns, rows, chosen, count)
        limit, setting = self._limit
        require_sizes(topic, columns, rows, partitions, max_size=limit, setting=setting)
        if self._hashes_keys:
            # librdkafka would do this, in twice the time. It queues records that it has to
            # partition apart from those with a partition, and so changes their order.
            self._sticky += 1
            sticky = self._sticky % count
            partitions = partitions_by_key(columns, rows, chosen, count, sticky)
        part = PartitionedRows(topic, batch, columns, rows, read_only(partitions))
        _check_timestamps(part)
        return part.grouped()


def _limit(producer: ProducerSettings, config: Mapping[str, str]) -> tuple[int, str]:
    """Return the maximum size of a record, and the setting that it comes from."""
    own = _integer(config, MESSAGE_MAX_BYTES)
    if own is not None:
        return own, MESSAGE_MAX_BYTES
    return producer.max_request_size, MAX_REQUEST_SIZE


def _max_age_s(config: Mapping[str, str]) -> float:
    own = _integer(config, METADATA_MAX_AGE_MS)
    if own is not None and own < 0:  # metadata are never refreshed
        return math.inf
    return (_METADATA_MAX_AGE_MS if own is None else own) / 1_000


def _integer(config: Mapping[str, str], name: str) -> int | None:
    """Return a setting's number; librdkafka refuses invalid ones when a client is created."""
    try:
        return int(config[name])
    except (KeyError, ValueError):
        return None


def _check_timestamps(part: PartitionedRows) -> None:
    if part.is_plain or (part.columns.arrays[0][part.rows] != 0).all():
        return
    # librdkafka silently replaces 0 by the current time.
    raise UnsupportedFeatureError(
        "The client 'confluent'",
        "write the timestamp 1970-01-01 00:00:00 UTC; use the client 'kafka-python'",
    )
