"""What a column needs after the kernel, seldom: see ``INVALID_UTF8`` and ``DUPLICATE_KEYS``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kafka_format.utf8 import valid_utf8
from . import program_layout as at

if TYPE_CHECKING:
    from ..kernels.arrays import BoolArray, Int64Array
    from ..value_columns.layout import Column


def repaired(
    array: pa.Array[Any], columns: tuple[Column, ...], marks: Int64Array, number: int = 0
) -> pa.Array[Any]:
    """Return a column with its texts valid, and its maps without all but the last of equal keys."""
    column = columns[number]
    if not marks[number : column.end].any():
        return array
    if marks[number] & at.INVALID_UTF8:
        return _valid_texts(array)
    below = [
        repaired(child, columns, marks, child_number)
        for child, child_number in zip(
            children_of(array), numbers_below(columns, number), strict=True
        )
    ]
    whole = with_children(array, below)
    return _unique_keys(whole) if marks[number] & at.DUPLICATE_KEYS else whole


def children_of(array: pa.Array[Any]) -> list[pa.Array[Any]]:
    """Return the arrays of the columns directly below a column."""
    if isinstance(array, pa.StructArray):
        return [array.field(number) for number in range(array.type.num_fields)]
    if isinstance(array, pa.MapArray):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
        )
        return [entries]
    return [array.values] if isinstance(array, pa.ListArray) else []


def with_children(array: pa.Array[Any], below: list[pa.Array[Any]]) -> pa.Array[Any]:
    """Return an array with other arrays below it."""
    buffers = array.buffers()[: 1 if pa.types.is_struct(array.type) else 2]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, children=below)


def numbers_below(columns: tuple[Column, ...], number: int) -> list[int]:
    """Return the numbers of the columns directly below a column."""
    numbers, child = [], number + 1
    while child < columns[number].end:
        numbers.append(child)
        child = columns[child].end
    return numbers


def _valid_texts(array: pa.Array[Any]) -> pa.Array[Any]:
    """Replace invalid UTF-8 as Java's ``String`` does."""
    valid = valid_utf8(array.cast(pa.binary()))
    texts: pa.Array[Any] = pc.if_else(array.is_valid(), valid, pa.scalar(None, pa.string()))
    return texts


def _unique_keys(array: Any) -> pa.Array[Any]:
    """Keep the last entry of each key, as Protobuf's specification says."""
    offsets = np.asarray(array.offsets)
    keep = _is_last(np.repeat(np.arange(len(array)), np.diff(offsets)), array.keys)
    kept = np.concatenate(([0], np.cumsum(keep)))
    mask = pa.array(keep)
    entries = pa.StructArray.from_arrays(
        [array.keys.filter(mask), array.items.filter(mask)],
        fields=[array.type.key_field, array.type.item_field],
    )
    new_offsets = pa.py_buffer(kept[offsets].astype(np.int32))
    buffers = [array.buffers()[0], new_offsets]
    return pa.Array.from_buffers(
        array.type, len(array), buffers, array.null_count, children=[entries]
    )


def _is_last(rows: Int64Array, keys: pa.Array[Any]) -> BoolArray:
    codes = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
    pairs = rows * (int(codes.max(initial=0)) + 1) + codes
    _, first_from_behind = np.unique(pairs[::-1], return_index=True)
    is_last = np.zeros(len(pairs), np.bool_)
    is_last[len(pairs) - 1 - first_from_behind] = True
    return is_last
