"""A writer to a cluster in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import pyarrow as pa

from ...domain.transaction import Transaction
from ...domain.write_result import DeliveryStats
from ...ports.clock import epoch_ms
from ...ports.record_writer import RecordWriter
from ..kafka_format.producer_columns import ProducerColumns
from ..kernels.arrays import Int64Array
from ..partitioning.topic_rows import (
    ExplicitPartitions,
    partitions_by_key,
    require_partitions,
    rows_by_topic,
)
from .cluster import MemoryCluster

_COLUMNS: Final = {"key", "value", "headers"}


@final
class MemoryRecordWriter(RecordWriter):
    """Writes to a ``MemoryCluster``, which acknowledges immediately."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._delivered = DeliveryStats()
        self._transaction: Transaction | None = None
        self._sticky = -1

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        columns = ProducerColumns.of(batch, epoch_ms())
        explicit = ExplicitPartitions(batch, None)
        records = batch.select([name for name in batch.schema.names if name in _COLUMNS])
        fields = records.to_pylist() or [{}] * batch.num_rows
        for name, rows in rows_by_topic(batch, topic):
            partitions = self._partitions(name, columns, rows, explicit)
            for row, partition in zip(rows.tolist(), partitions, strict=True):
                timestamp = int(columns.arrays[0][row])
                self._produce(name, partition, timestamp, fields[row])
            self._delivered += DeliveryStats(len(rows), columns.payload_bytes(rows))

    def flush(self) -> DeliveryStats:
        delivered, self._delivered = self._delivered, DeliveryStats()
        self._transaction = None
        return delivered

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""

    def _partitions(
        self, topic: str, columns: ProducerColumns, rows: Int64Array, explicit: ExplicitPartitions
    ) -> Sequence[int]:
        """Return the partition of each of a topic's rows, as Kafka's Java client chooses it."""
        self._cluster.require([topic], "topic")
        count = self._cluster.topics()[topic]
        chosen = explicit.of(rows, count)
        require_partitions(topic, columns, rows, chosen, count)
        self._sticky += 1
        partitions: Sequence[int] = partitions_by_key(
            columns, rows, chosen, count, self._sticky % count
        ).tolist()
        return partitions

    def _produce(self, topic: str, partition: int, timestamp: int, fields: dict[str, Any]) -> None:
        self._cluster.produce(
            topic,
            _bytes(fields.get("value")),
            key=_bytes(fields.get("key")),
            partition=partition,
            headers=tuple((pair["key"], pair["value"]) for pair in fields.get("headers") or ()),
            timestamp=timestamp,
            transaction=self._transaction and self._cluster.number_of(self._transaction),
        )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
