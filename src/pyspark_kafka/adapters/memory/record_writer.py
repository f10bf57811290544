"""A writer to a cluster in memory."""

from __future__ import annotations

import zlib
from typing import Any, final

import pyarrow as pa

from ...domain.errors import NullTopicError
from ...domain.transaction import Transaction
from ...domain.write_result import DeliveryStats
from ...ports.record_writer import RecordWriter
from .cluster import MemoryCluster


@final
class MemoryRecordWriter(RecordWriter):
    """Writes to a ``MemoryCluster``, which acknowledges immediately."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._delivered = DeliveryStats()
        self._transaction: Transaction | None = None

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        rows = batch.to_pylist()
        if topic is None and any(row.get("topic") is None for row in rows):
            raise NullTopicError
        for row in rows:
            self._write_row(topic or str(row["topic"]), row)

    def flush(self) -> DeliveryStats:
        delivered, self._delivered = self._delivered, DeliveryStats()
        self._transaction = None
        return delivered

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""

    def _write_row(self, topic: str, row: dict[str, Any]) -> None:
        timestamp = row.get("timestamp")
        headers = tuple((pair["key"], pair["value"]) for pair in row.get("headers") or ())
        key, value = _bytes(row.get("key")), _bytes(row.get("value"))
        self._cluster.produce(
            topic,
            value,
            key=key,
            partition=self._partition(topic, row, key),
            headers=headers,
            timestamp=None if timestamp is None else round(timestamp.timestamp() * 1_000),
            transaction=self._transaction and self._cluster.number_of(self._transaction),
        )
        texts = [name.encode() for name, _ in headers]
        size = sum(map(len, filter(None, [key, value, *texts, *(value for _, value in headers)])))
        self._delivered += DeliveryStats(1, size)

    def _partition(self, topic: str, row: dict[str, Any], key: bytes | None) -> int:
        chosen = row.get("partition")
        if chosen is not None:
            return int(chosen)
        self._cluster.require([topic], "topic")
        return 0 if key is None else zlib.crc32(key) % self._cluster.topics()[topic]


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
