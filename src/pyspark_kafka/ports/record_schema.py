"""The schema of records in Arrow's types, apart from the ports: it imports Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..domain.reading.records import Projection

HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)

TYPES: Final[dict[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}
"""The Arrow types of the JVM connector's schema."""


def record_schema(projection: Projection) -> pa.Schema:
    """Return the schema of the projected columns."""
    return pa.schema([pa.field(column, TYPES[column]) for column in projection.columns])


def with_headers(headers: pa.Array[Any], added: Mapping[str, pa.Array[Any]]) -> pa.Array[Any]:
    """Return the headers of records, each followed by those of ``added`` that are not null."""
    pairs: Any = headers.cast(HEADERS)
    counts = pairs.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    valid = np.stack([each.is_valid().to_numpy(zero_copy_only=False) for each in added.values()])
    offsets = np.zeros(len(pairs) + 1, np.int64)
    np.cumsum(counts + valid.sum(0), out=offsets[1:])
    old = pairs.flatten()
    # The old pairs come first among the keys and the values. They are followed by the names, and
    # by the values of the first name for all records, of the second one, and so on.
    rows, numbers = np.nonzero(valid.T)
    is_old = np.zeros(offsets[-1], np.bool_)
    is_old[np.arange(len(old)) + np.repeat(offsets[:-1] - np.cumsum(counts) + counts, counts)] = (
        True
    )
    key_rows = np.empty(len(is_old), np.int64)
    key_rows[is_old] = np.arange(len(old))
    value_rows = key_rows.copy()
    key_rows[~is_old] = len(old) + numbers
    value_rows[~is_old] = len(old) + numbers * len(pairs) + rows
    keys = pa.concat_arrays([old.field("key"), pa.array([*added], pa.string())])
    values = pa.concat_arrays([old.field("value"), *added.values()])
    together = pa.StructArray.from_arrays(
        [keys.take(pa.array(key_rows)), values.take(pa.array(value_rows))],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), together, type=HEADERS)


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches of one schema as one batch, as ``pa.concat_batches`` since 19."""
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(list(parts)) for parts in columns], schema=batches[0].schema
    )
