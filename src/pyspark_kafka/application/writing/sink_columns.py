"""The columns of batches that a sink writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from ...domain.writing.sink_schema import HEADERS, TYPES, check_sink_schema
from ...ports.reading import HEADERS as RECORD_HEADERS
from ...ports.reading import TYPES as RECORD_TYPES

if TYPE_CHECKING:
    from ...domain.options.sink import SinkOptions

_NAMES: Final[Mapping[pa.DataType, str]] = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.int32(): "int",
    RECORD_TYPES["timestamp"]: "timestamp",
    RECORD_HEADERS: HEADERS,
}
"""Spark's names of the Arrow types that a sink writes."""


def record_columns(batch: pa.RecordBatch, topic: str | None) -> pa.RecordBatch:
    """Drop columns that records do not have, and the topics if the option ``topic`` is set."""
    unused = {"topic"} if topic is not None else set()
    return batch.select(
        [name for name in TYPES if name in batch.schema.names and name not in unused]
    )


@final
class FunctionOutput:
    """Checks what the function of a continuous query returns; a task has one of its own."""

    def __init__(self, sink: SinkOptions | None) -> None:
        """Take the options of the sink; ``None`` if the function is the sink."""
        self._sink = sink
        self._checked: pa.Schema | None = None
        self._has_others = False

    def batches(self, returned: object) -> Sequence[pa.RecordBatch]:
        """Return the batches with rows, with the columns of records.

        :raises TypeError: if it is neither a batch, nor several, nor ``None``.
        :raises SinkSchemaError: if columns are missing or of a wrong type.
        """
        if returned is None:
            return ()
        batches = (returned,) if isinstance(returned, pa.RecordBatch) else returned
        if not isinstance(batches, Sequence) or not all(
            isinstance(batch, pa.RecordBatch) for batch in batches
        ):
            kind = type(returned).__name__
            raise TypeError(f"it returned a {kind}, not a RecordBatch, a list of them, or None")
        if self._sink is None:
            raise TypeError("it returned rows, and the query has no sink to write them to")
        return [self._columns(batch, self._sink) for batch in batches if batch.num_rows]

    def _columns(self, batch: pa.RecordBatch, sink: SinkOptions) -> pa.RecordBatch:
        if batch.schema != self._checked:
            types = {field.name: _name(field.type) for field in batch.schema}
            check_sink_schema(
                types,
                has_topic_option=sink.topic is not None,
                encoded=[options.column for options in sink.values],
            )
            self._checked = batch.schema
            needed = record_columns(batch, sink.topic).schema.names
            self._has_others = needed != batch.schema.names
        return record_columns(batch, sink.topic) if self._has_others else batch


def _name(kind: pa.DataType) -> str:
    return next((name for known, name in _NAMES.items() if kind.equals(known)), str(kind))
