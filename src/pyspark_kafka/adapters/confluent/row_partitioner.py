"""The rows of a batch by topic and partition, checked and ready for librdkafka."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ...domain.errors import UnsupportedFeatureError
from ...ports.clock import epoch_ms
from ..kafka_format.producer_columns import ProducerColumns
from ..partitioning.size_limits import MAX_REQUEST_SIZE, require_sizes
from ..partitioning.sticky_partitions import StickyPartitions
from ..partitioning.topic_rows import (
    RowTopics,
    explicit_partitions,
    partitions_by_key,
    require_partitions,
)
from .partitioned_rows import PartitionedRows
from .producer_config import MESSAGE_MAX_BYTES, METADATA_MAX_AGE_MS, PARTITIONER
from .topic_partitions import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ...domain.options.client_settings import ProducerSettings
    from ..kernels.arrays import Int32Array, Int64Array
    from .cluster import Cluster
    from .topic_partitions import MetadataClient

_METADATA_MAX_AGE_MS: Final = 300_000
"""The default of librdkafka and of Java's client."""


@final
class RowPartitioner:
    """Divides batches into the rows of each topic, and chooses their partitions."""

    def __init__(self, producer: ProducerSettings, cluster: Cluster) -> None:
        self._producer = producer
        config = cluster.settings.config({}, {})
        self._limit = _limit(producer, config)
        self._hashes_keys = not (producer.ignores_keys or PARTITIONER in config)
        self._topics = TopicPartitions(
            cluster.errors, producer.max_block_ms / 1_000, _max_age_s(config)
        )
        self._sticky = StickyPartitions(producer.batch_size)

    def partitioned(
        self, client: MetadataClient, batch: pa.RecordBatch, topic: str | None
    ) -> PartitionedRows:
        """Return the rows by topic and partition; ``topic`` overrides the column. All are checked.

        :raises PysparkKafkaError: if a row cannot be written.
        """
        columns = ProducerColumns.of(batch, epoch_ms())
        topics = RowTopics.of(batch, topic)
        partitions = self._partitions(client, batch, columns, topics)
        rows = PartitionedRows.of(batch, columns, topics, partitions)
        _check_timestamps(rows)
        self._sticky.add(zip(rows.topics, rows.topic_bytes.tolist(), strict=True))
        return rows

    def change_sticky_partitions(self) -> None:
        """Let rows without a key go on with other partitions: what was written is sent."""
        self._sticky.change()

    def _partitions(
        self,
        client: MetadataClient,
        batch: pa.RecordBatch,
        columns: ProducerColumns,
        topics: RowTopics,
    ) -> Int32Array:
        """Return the partition of each row."""
        counts: Int64Array = np.array(
            [self._topics.count(client, name) for name in topics.names], np.int64
        )
        chosen = explicit_partitions(batch, self._producer.partitioner, topics, counts)
        partitions, is_chosen = chosen
        if is_chosen.any():
            for code in np.unique(topics.codes[partitions >= counts[topics.codes]]).tolist():
                # The topic may have got more partitions.
                counts[code] = self._topics.count(client, topics.names[code], refresh=True)
        require_partitions(columns, topics, counts, chosen)
        limit, setting = self._limit
        require_sizes(columns, topics, partitions, max_size=limit, setting=setting)
        if not self._hashes_keys:
            return partitions
        # librdkafka would do this, in twice the time. It queues records that it has to partition
        # apart from those with a partition, and so changes their order.
        sticky = self._sticky.choose(topics.names, counts)
        return partitions_by_key(columns, topics, counts, chosen, sticky)


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


def _check_timestamps(rows: PartitionedRows) -> None:
    if rows.is_plain or rows.columns.arrays[0].all():
        return
    # librdkafka silently replaces 0 by the current time.
    raise UnsupportedFeatureError(
        "The client 'confluent'",
        "write the timestamp 1970-01-01 00:00:00 UTC; use the client 'kafka-python'",
    )
