"""Payloads of values that have no framing, and rows that can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from pyspark_kafka.ports.values.value_format import Payloads

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAINER: Final = (
    (pa.types.is_timestamp, pa.int64()),
    (pa.types.is_date, pa.int32()),
    (pa.types.is_string, pa.binary()),
)


def payloads_of(values: Sequence[bytes | None]) -> Payloads:
    """Return the payloads of a batch; None is a tombstone."""
    sizes = [len(value or b"") for value in values]
    ends = np.cumsum(sizes, dtype=np.int64)
    starts = np.array(
        [
            -1 if value is None else end - len(value)
            for value, end in zip(values, ends, strict=True)
        ],
        np.int64,
    )
    reasons = np.zeros(len(values), np.uint8)
    writers = np.full(len(values), -1, np.int32)
    return Payloads(pa.array(values, pa.binary()), starts, ends, reasons, writers)


def plain(column: pa.Array[Any]) -> list[Any]:
    """Return values that can be compared: NaN is equal to NaN, and years may exceed 9999."""
    found: Any = column.cast(_plain_type(column.type))
    return [_comparable(row) for row in found.to_pylist()]


def _plain_type(kind: Any) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain_type(kind.value_type)))
    for has_type, plainer in _PLAINER:
        if has_type(kind):
            return plainer
    return kind


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(each) for each in value]
    return value
