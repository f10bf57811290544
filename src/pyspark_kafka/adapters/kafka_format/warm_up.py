"""Having the kernels ready before the first record comes."""

from __future__ import annotations

import numpy as np

from ...domain.projection import ALL_COLUMNS
from ...domain.topic_partition import TopicPartition
from . import block_fields as section
from .column_buffers import BatchBuilder
from .decode_kernel import decode_records
from .record_blocks import read_only


def load_kernels() -> None:
    """Take the kernel that every read needs from its cache, or compile it: two or three seconds."""
    builder = BatchBuilder(TopicPartition("none", 0), ALL_COLUMNS)
    nothing = read_only(np.empty(0, np.uint8))
    no_sections = np.empty((0, section.FIELDS), np.int64)
    decode_records(nothing, no_sections, builder.cursor, 0, 0, 0, builder.buffers.arrays)
