"""Records of a cluster in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

import pyarrow as pa

from ...domain.errors import OffsetOutOfRangeError
from ...domain.offset_range import OffsetRange
from ...domain.options import SourceOptions
from ...domain.projection import Projection
from ...ports.record_reader import RecordReader
from ..kafka_format.record_columns import RecordColumns
from .cluster import MemoryCluster

RECORDS_PER_BATCH: Final = 1_000


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
            self._check_in_range(offset_range, position)
            records = self._cluster.fetch(
                partition,
                position,
                until,
                committed_only=self._committed_only,
                max_records=RECORDS_PER_BATCH,
            )
            if not records:
                self._check_in_range(offset_range, until - 1)
                return
            yield RecordColumns.of(records).to_record_batch(partition, projection)
            position = records[-1].offset + 1

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""

    def _check_in_range(self, offset_range: OffsetRange, offset: int) -> None:
        watermarks = self._cluster.watermarks(
            offset_range.partition, committed_only=self._committed_only
        )
        earliest, latest = watermarks or (0, 0)
        if not earliest <= offset < latest:
            raise OffsetOutOfRangeError(
                offset_range.partition, offset, earliest=earliest, latest=latest
            )
