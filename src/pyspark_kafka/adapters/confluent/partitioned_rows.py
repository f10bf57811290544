"""The rows of a batch in the order in which librdkafka gets them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ...domain.errors import UnsupportedFeatureError
from ..partitioning.murmur2 import RowGroups
from ..partitioning.row_partitioner import MAX_REQUEST_SIZE, RowPartitioner
from .producer_config import MESSAGE_MAX_BYTES, METADATA_MAX_AGE_MS, PARTITIONER
from .topic_partitions import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from ...domain.options.client_settings import ProducerSettings
    from ..kafka_format.producer_columns import ProducerColumns
    from ..kernels.arrays import Int32Array, Int64Array
    from ..partitioning.row_partitioner import PartitionedColumns
    from .cluster import Cluster
    from .topic_partitions import MetadataClient

_METADATA_MAX_AGE_MS: Final = 300_000
"""The default of librdkafka and of Java's client."""


@final
@dataclass(frozen=True, slots=True)
class PartitionedRows:
    """The rows of a batch, by topic and partition.

    ``NO_PARTITION`` leaves the choice to librdkafka. No array can be written to.
    """

    batch: pa.RecordBatch
    columns: ProducerColumns
    rows: Int64Array
    partitions: Int32Array
    """The partition of each of ``rows``."""

    groups: int
    """The number of different partitions."""

    topics: Sequence[str]
    """The topics of the rows, in the order of their rows."""

    topic_ends: Int64Array
    """Where the rows of each topic end in ``rows``."""

    topic_bytes: Int64Array
    """The bytes of the keys, values and headers of each topic's rows."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, found: PartitionedColumns) -> PartitionedRows:
        """Put the rows of each partition together, in their order.

        librdkafka then looks up a partition once instead of for each record, and records that are
        sent together are adjacent in memory: this takes half the time.
        """
        columns, topics, partitions = found.columns, found.topics, found.partitions
        groups = RowGroups.of(topics.codes, partitions)
        rows = groups.rows
        ends: Int64Array = np.cumsum(np.bincount(topics.codes, minlength=len(topics.names)))
        topic_bytes, _ = columns.measure_groups(rows, ends)
        return cls(
            batch,
            columns,
            rows,
            partitions[rows],
            len(groups.ends),
            topics.names,
            ends,
            topic_bytes,
        )

    @property
    def is_plain(self) -> bool:
        """Whether there are keys and values only."""
        names = self.batch.schema.names
        return "timestamp" not in names and "headers" not in names

    @property
    def payload_bytes(self) -> int:
        """The bytes of all keys, values and headers."""
        return int(self.topic_bytes.sum())

    def topic(self, place: int) -> str:
        """Return the topic of one of the rows."""
        return self.topics[int(np.searchsorted(self.topic_ends, place, "right"))]

    def size(self, place: int) -> int:
        """Return the bytes of key, value and headers of one of the rows."""
        return self.columns.payload_bytes(self.rows[place : place + 1])


@final
class BatchPartitioner:
    """Divides batches into the rows of each topic, and chooses their partitions."""

    def __init__(self, producer: ProducerSettings, cluster: Cluster) -> None:
        config = cluster.settings.config({}, {})
        limit, setting = _limit(producer, config)
        # librdkafka would hash keys, in twice the time. It also queues records that it has to
        # partition apart from those with a partition, which changes their order.
        hashes_keys = not (producer.ignores_keys or PARTITIONER in config)
        self._rows = RowPartitioner(
            producer, max_size=limit, setting=setting, needs_partition=hashes_keys
        )
        self._topics = TopicPartitions(
            cluster.errors, producer.max_block_ms / 1_000, _max_age_s(config)
        )

    def partitioned(
        self, client: MetadataClient, batch: pa.RecordBatch, topic: str | None
    ) -> PartitionedRows:
        """Return the rows by topic and partition; ``topic`` overrides the column. All are checked.

        :raises PysparkKafkaError: if a row cannot be written.
        """
        found = self._rows.partition(batch, topic, partial(self._topics.counts, client))
        rows = PartitionedRows.of(batch, found)
        _check_timestamps(rows)
        self._rows.add_bytes(zip(rows.topics, rows.topic_bytes.tolist(), strict=True))
        return rows

    def change_sticky_partitions(self) -> None:
        """Choose other partitions for rows without a key: the rows before were sent."""
        self._rows.change_sticky_partitions()


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
