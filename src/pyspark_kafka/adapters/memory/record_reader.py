"""Records of a cluster in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.errors import OffsetOutOfRangeError
from ...ports.record_reader import RecordReader
from ..kafka_format.record_columns import RecordColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ...domain.offset_range import OffsetRange
    from ...domain.options import SourceOptions
    from ...domain.projection import Projection
    from .cluster import MemoryCluster

RECORDS_A_BATCH: Final = 1_000


@final
class MemoryRecordReader(RecordReader):
    """Reads from a ``MemoryCluster``."""

    def __init__(self, cluster: MemoryCluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._committed_only = options.reads_committed_only

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        partition, until = offset_range.partition, offset_range.until_offset
        position = offset_range.from_offset
        while position < until:
            self._require_held(offset_range, position)
            records = self._cluster.fetch(
                partition,
                position,
                until,
                committed_only=self._committed_only,
                most=RECORDS_A_BATCH,
            )
            if not records:
                self._require_held(offset_range, until - 1)
                return
            columns = RecordColumns.of(records)
            yield columns.to_record_batch(partition, projection)
            position = records[-1].offset + 1

    def close(self) -> None:
        """Do nothing: the cluster is the caller's."""

    def _require_held(self, offset_range: OffsetRange, offset: int) -> None:
        ends = self._cluster.ends(offset_range.partition, committed_only=self._committed_only)
        earliest, latest = ends or (0, 0)
        if not earliest <= offset < latest:
            raise OffsetOutOfRangeError(
                offset_range.partition, offset, earliest=earliest, latest=latest
            )
