"""Writing to a cluster in memory."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, final

from ...domain.errors import KafkaRequestError
from ...ports.record_writer import RecordWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from .cluster import MemoryCluster


@final
class MemoryRecordWriter(RecordWriter):
    """Writes to a ``MemoryCluster``, which acknowledges at once."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._acknowledged = 0

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        for row in batch.to_pylist():
            self._write_row(row, topic)

    def flush(self) -> int:
        acknowledged, self._acknowledged = self._acknowledged, 0
        return acknowledged

    def close(self) -> None:
        """Do nothing: the cluster is the caller's."""

    def _write_row(self, row: dict[str, Any], topic: str | None) -> None:
        name = topic or row.get("topic")
        if not name:
            raise KafkaRequestError("a record", "it names no topic")
        timestamp = row.get("timestamp")
        self._cluster.produce(
            name,
            row.get("value"),
            key=row.get("key"),
            partition=self._partition(name, row),
            headers=tuple((pair["key"], pair["value"]) for pair in row.get("headers") or ()),
            timestamp=None if timestamp is None else round(timestamp.timestamp() * 1_000),
        )
        self._acknowledged += 1

    def _partition(self, topic: str, row: dict[str, Any]) -> int:
        chosen = row.get("partition")
        if chosen is not None:
            return int(chosen)
        self._cluster.require([topic], "topic")
        key = row.get("key")
        return 0 if key is None else zlib.crc32(key) % self._cluster.topics()[topic]
