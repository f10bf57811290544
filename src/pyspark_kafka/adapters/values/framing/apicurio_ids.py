"""The ids that Apicurio's own serializers give values: in headers, or in front of values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .wire_format import ID_BYTES, ID_MAGIC

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...kernels.arrays import Array, Int32Array, Int64Array, UInt8Array

NO_ID: Final = -1

_LONG_BYTES: Final = 8
_MAX_REF: Final = 0x7F
"""The longest name of a message with its tag and length: these are one byte each."""

_NAME_TAG: Final = 0x0A
_BEFORE_NAME: Final = 3


@final
@dataclass(frozen=True, slots=True)
class ApicurioIds:
    """Where payloads are, and the content or global ids of their schemas, or ``NO_ID``.

    Starts and ends of nulls are -1.
    """

    starts: Int64Array
    ends: Int64Array
    ids: Int64Array
    are_global: npt.NDArray[np.bool_]
    are_in_headers: npt.NDArray[np.bool_]


def find_apicurio_ids(
    values: pa.Array[Any], headers: pa.Array[Any], column: str, *, are_global: bool = False
) -> ApicurioIds:
    """Return the ids of a binary array; ``are_global`` is of ids in front of values.

    A header with an id comes before an id in front of the value (``KafkaDeserializer``). That has 8
    bytes, or 4 bytes that are not all zero (``OptimisticFallbackIdHandler``).
    """
    is_valid, (bounds, data) = _valid(values), _content(values)
    starts, ends = np.where(is_valid, bounds[:-1], -1), np.where(is_valid, bounds[1:], -1)
    by_content, ids = _header_ids(headers, f"apicurio.{column}.contentId")
    by_global, global_ids = _header_ids(headers, f"apicurio.{column}.globalId")
    by_global &= ~by_content
    ids[by_global] = global_ids[by_global]
    in_headers = by_content | by_global
    rows = np.flatnonzero(is_valid & ~in_headers & (ends - starts > ID_BYTES))
    rows = rows[data[starts[rows]] == ID_MAGIC]
    at = starts[rows] + 1
    found, length = _numbers(data, at, ">u4"), np.full(len(rows), ID_BYTES)
    is_long = (found == 0) & (ends[rows] - at >= _LONG_BYTES)
    found[is_long], length[is_long] = _numbers(data, at[is_long], ">i8"), _LONG_BYTES
    ids[rows], starts[rows] = np.maximum(found, NO_ID), at + length
    return ApicurioIds(starts, ends, ids, by_global | (~in_headers & are_global), in_headers)


def find_messages(
    values: pa.Array[Any], headers: pa.Array[Any], column: str, found: ApicurioIds
) -> tuple[ApicurioIds, Int32Array, tuple[str, ...]]:
    """Return payloads without the names of their messages, and for each value a name or -1.

    Names are in a header, if the id is in one, or in a length-delimited ``Ref`` in front of the
    message (``ProtobufKafkaDeserializer`` and ``ref.proto`` of Apicurio 2.6). Serializers of
    Apicurio 3 write both (``ProtobufSerializer``).
    """
    _, data = _content(values)
    names: dict[bytes, int] = {}
    in_front = np.full(len(values), -1, np.int32)
    lengths = _ref_lengths(data, found)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        texts = _bytes(data, found.starts[rows] + _BEFORE_NAME, length - _BEFORE_NAME)
        distinct, places = np.unique(texts, return_inverse=True)
        numbers = [names.setdefault(one.tobytes(), len(names)) for one in distinct]
        in_front[rows] = np.array(numbers, np.int32)[places]
    named = in_front.copy()
    last = _last_entries(headers, f"apicurio.protobuf.type{'.key' if column == 'key' else ''}")
    rows = np.flatnonzero(found.are_in_headers & (last >= 0))
    for row, text in zip(rows.tolist(), _header_values(headers, last[rows]), strict=True):
        named[row] = names.setdefault(text or b"", len(names))
    has_ref = (in_front >= 0) & (in_front == named)
    starts = np.where(has_ref, found.starts + lengths, found.starts)
    return (
        replace(found, starts=starts),
        named,
        tuple(one.decode("utf-8", "replace") for one in names),
    )


def _ref_lengths(data: UInt8Array, found: ApicurioIds) -> Int64Array:
    """Return the lengths of a ``Ref``, with its own length, or 0 where there is none."""
    lengths = np.zeros(len(found.starts), np.int64)
    is_valid = (found.starts >= 0) & (found.ids >= 0)
    rows = np.flatnonzero(is_valid & (found.ends - found.starts > _BEFORE_NAME))
    start = found.starts[rows]
    length = data[start].astype(np.int64)
    is_ref = (length <= _MAX_REF) & (data[start + 1] == _NAME_TAG) & (data[start + 2] == length - 2)
    is_ref &= (length > 2) & (start + 1 + length <= found.ends[rows])
    lengths[rows[is_ref]] = length[is_ref] + 1
    return lengths


def _last_entries(headers: pa.Array[Any], name: str) -> Int64Array:
    """Return the indexes of the last headers of a name, or -1."""
    rows = len(headers)
    bounds, pairs = _bounds(headers), headers.values  # type: ignore[attr-defined]  # it is a list
    entries = np.flatnonzero(np.asarray(pc.equal(pairs.field(0), pa.scalar(name))))
    entries = entries[(entries >= bounds[0]) & (entries < bounds[-1])]
    last = np.full(rows, -1)
    # Of equal indexes, NumPy assigns the last value.
    last[np.searchsorted(bounds, entries, side="right") - 1] = entries
    last[~_valid(headers)] = -1
    return last


def _header_values(headers: pa.Array[Any], entries: Int64Array) -> list[bytes | None]:
    pairs: Any = headers.values  # type: ignore[attr-defined]  # it is a list
    found: list[bytes | None] = pairs.field(1).take(pa.array(entries)).to_pylist()
    return found


def _header_ids(headers: pa.Array[Any], name: str) -> tuple[Any, Int64Array]:
    """Return which rows have a header of this name, and the ids in the last ones."""
    last = _last_entries(headers, name)
    ids = np.full(len(headers), NO_ID, np.int64)
    found = np.flatnonzero(last >= 0)
    pairs: Any = headers.values  # type: ignore[attr-defined]  # it is a list
    (value_bounds, data), entries = _content(pairs.field(1)), last[found]
    starts = value_bounds[entries]
    is_long = value_bounds[entries + 1] - starts == _LONG_BYTES
    ids[found[is_long]] = _numbers(data, starts[is_long], ">i8")
    return last >= 0, np.maximum(ids, NO_ID)


def _numbers(data: UInt8Array, at: Int64Array, kind: str) -> Int64Array:
    """Return the numbers at places of the data."""
    return _bytes(data, at, np.dtype(kind).itemsize).view(kind).astype(np.int64)


def _bytes(data: UInt8Array, at: Int64Array, size: int) -> Array:
    """Return as many bytes from each place of the data, as NumPy's void."""
    content: Array = np.ascontiguousarray(data[at[:, np.newaxis] + np.arange(size)])
    found: Array = content.view(f"V{size}")[:, 0]
    return found


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
