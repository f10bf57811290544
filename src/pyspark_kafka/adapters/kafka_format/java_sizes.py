"""The size of a record as Java's producer measures it before it has a batch."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..kernels.compiled import compiled, inlined
from ..kernels.intrinsics import borrowed
from .encode_kernel import varint_size

JAVAS_OVERHEAD: Final = 82
"""What Java's producer adds to a record's fields when it measures it: 61 bytes for the batch that
it would be alone in (``RECORD_BATCH_OVERHEAD``), and 21 for itself (``MAX_RECORD_OVERHEAD``)."""


@compiled
def first_too_large(columns: Any, rows: Any, most: int) -> Any:
    """Give the place of the first row that is larger than ``most`` bytes, and its size; else -1.

    The size is the one that Java's producer holds to ``max.request.size``: that of
    ``AbstractRecords.estimateSizeInBytesUpperBound``.
    """
    columns, rows = borrowed((columns, rows))
    _, keys, values, headers = columns
    for place in range(len(rows)):
        row = rows[place]
        size = JAVAS_OVERHEAD + _field(keys, row) + _field(values, row)
        first, behind = header_range(headers, row)
        size += varint_size(behind - first)
        for entry in range(first, behind):
            size += _field(headers[2], entry) + _field(headers[3], entry)
        if size > most:
            return place, size
    return -1, 0


@inlined
def _field(column: Any, row: Any) -> Any:
    """Give the bytes of a value with its length before it."""
    length = field_length(column, row)
    return varint_size(length) + max(length, 0)


@inlined
def field_length(column: Any, row: Any) -> Any:
    """Give the length of a value, -1 for null."""
    starts, _, valid = column
    if valid[row] == 0:
        return np.int64(-1)
    return np.int64(starts[row + 1]) - np.int64(starts[row])


@inlined
def header_range(headers: Any, row: Any) -> Any:
    """Give the first header of a row, and the one behind its last."""
    starts, valid, _, _ = headers
    first = np.int64(starts[row])
    if valid[row] == 0:
        return first, first
    return first, np.int64(starts[row + 1])
