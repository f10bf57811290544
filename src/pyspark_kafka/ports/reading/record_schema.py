"""The Arrow schema of the records that readers return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.reading.records import Projection

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


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches of one schema as one batch, as ``pa.concat_batches`` since 19."""
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(list(parts)) for parts in columns], schema=batches[0].schema
    )
