"""The ids that Apicurio's own serializers give values: in headers, or in front of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .wire_format import ID_BYTES, ID_MAGIC

if TYPE_CHECKING:
    from ...kernels.arrays import Array, Int64Array, UInt8Array

NO_ID: Final = -1
HAS_GLOBAL_ID: Final = -2
"""A header has a global id, and none has a content id."""

_LONG_BYTES: Final = 8


@final
@dataclass(frozen=True, slots=True)
class ApicurioIds:
    """Where payloads are, and the ids of their schemas, or ``NO_ID`` or ``HAS_GLOBAL_ID``.

    Starts and ends of nulls are -1.
    """

    starts: Int64Array
    ends: Int64Array
    ids: Int64Array


def find_apicurio_ids(values: pa.Array[Any], headers: pa.Array[Any], column: str) -> ApicurioIds:
    """Return the content ids of a binary array.

    A header with an id comes before an id in front of the value (``KafkaDeserializer``). That has 8
    bytes, or 4 bytes that are not all zero (``OptimisticFallbackIdHandler``).
    """
    is_valid, (bounds, data) = _valid(values), _content(values)
    starts, ends = np.where(is_valid, bounds[:-1], -1), np.where(is_valid, bounds[1:], -1)
    by_content, ids = _header_ids(headers, f"apicurio.{column}.contentId")
    by_global, _ = _header_ids(headers, f"apicurio.{column}.globalId")
    rows = np.flatnonzero(is_valid & ~by_content & ~by_global & (ends - starts > ID_BYTES))
    rows = rows[data[starts[rows]] == ID_MAGIC]
    at = starts[rows] + 1
    found, length = _numbers(data, at, ">u4"), np.full(len(rows), ID_BYTES)
    is_long = (found == 0) & (ends[rows] - at >= _LONG_BYTES)
    found[is_long], length[is_long] = _numbers(data, at[is_long], ">i8"), _LONG_BYTES
    ids[rows], starts[rows] = np.maximum(found, NO_ID), at + length
    ids[by_global & ~by_content] = HAS_GLOBAL_ID
    return ApicurioIds(starts, ends, ids)


def _header_ids(headers: pa.Array[Any], name: str) -> tuple[Any, Int64Array]:
    """Return which rows have a header of this name, and the ids in the last ones."""
    rows, ids = len(headers), np.full(len(headers), NO_ID, np.int64)
    bounds, pairs = _bounds(headers), headers.values  # type: ignore[attr-defined]  # it is a list
    entries = np.flatnonzero(np.asarray(pc.equal(pairs.field(0), pa.scalar(name))))
    entries = entries[(entries >= bounds[0]) & (entries < bounds[-1])]
    last = np.full(rows, -1)
    # Of equal indexes, NumPy assigns the last value.
    last[np.searchsorted(bounds, entries, side="right") - 1] = entries
    found = np.flatnonzero(_valid(headers) & (last >= 0))
    (value_bounds, data), entries = _content(pairs.field(1)), last[found]
    starts = value_bounds[entries]
    is_long = value_bounds[entries + 1] - starts == _LONG_BYTES
    ids[found[is_long]] = _numbers(data, starts[is_long], ">i8")
    has_header = np.zeros(rows, np.bool_)
    has_header[found] = True
    return has_header, np.maximum(ids, NO_ID)


def _numbers(data: UInt8Array, at: Int64Array, kind: str) -> Int64Array:
    """Return the numbers at places of the data."""
    size = np.dtype(kind).itemsize
    content: Array = np.ascontiguousarray(data[at[:, np.newaxis] + np.arange(size)])
    return content.view(kind)[:, 0].astype(np.int64)


def _content(values: pa.Array[Any]) -> tuple[Int64Array, UInt8Array]:
    """Return where the values of a binary array start and end, and their bytes."""
    data = memoryview(values.buffers()[2] or b"")
    return _bounds(values), np.frombuffer(data, np.uint8)


def _bounds(array: pa.Array[Any]) -> Int64Array:
    """Return the offsets of an array with a variable length: one more than it has rows."""
    offsets = array.buffers()[1]
    if offsets is None or not offsets.size:  # an array without rows may have none
        return np.zeros(1, np.int64)
    place = 4 * array.offset
    found: Array = np.frombuffer(memoryview(offsets), np.int32, len(array) + 1, place)
    return found.astype(np.int64)


def _valid(array: pa.Array[Any]) -> Any:
    return np.asarray(array.is_valid())
