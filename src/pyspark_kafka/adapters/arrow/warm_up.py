"""Having the kernels ready before the first record comes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...domain.projection import ALL_COLUMNS
from ...domain.topic_partition import TopicPartition
from . import section
from .column_buffers import BatchBuilder
from .compressors import Compressor
from .outgoing_columns import OutgoingColumns
from .partitioner import group_by_partition, murmur2_partitions
from .record_encoder import Producer, RecordEncoder
from .record_kernel import decode_records
from .sections import read_only


def load_kernels() -> None:
    """Take the kernel that every read needs from its cache, or compile it: two or three seconds."""
    builder = BatchBuilder(TopicPartition("none", 0), ALL_COLUMNS)
    nothing = read_only(np.empty(0, np.uint8))
    no_sections = np.empty((0, section.FIELDS), np.int64)
    decode_records(nothing, no_sections, builder.cursor, 0, 0, 0, builder.buffers.arrays)


def load_writing_kernels() -> None:
    """Take the kernels that every write needs from their cache, or compile them: some seconds."""
    columns = OutgoingColumns.of(pa.record_batch({"value": pa.nulls(2, pa.binary())}), 0)
    murmur2_partitions(columns, 1, 0)
    rows = np.arange(columns.num_rows)
    group_by_partition(rows.astype(np.int32), rows)
    columns.payload_bytes(rows)
    encoder = RecordEncoder(Compressor())
    encoder.chunks(columns, rows, 0)
    encoder.encode(columns, rows, Producer(), 0)
