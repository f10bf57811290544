"""The Arrow schema of records with typed values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from .value_types import arrow_type

if TYPE_CHECKING:
    from ...domain.values.typed_schema import TypedSchema


def typed_record_schema(schema: TypedSchema) -> pa.Schema:
    """Return the schema of the output: the one that Spark expects, in each detail."""
    return pa.schema([pa.field(one.name, arrow_type(one.data_type)) for one in schema.columns])
