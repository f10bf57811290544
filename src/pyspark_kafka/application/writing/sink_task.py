"""The executor's side of a sink: the columns of its batches, and writing rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from ...domain.errors import PysparkKafkaError
from ...domain.writing.sink_schema import HEADERS, TYPES, check_sink_schema
from ...domain.writing.transaction import SLOTS, WriteResult, is_free
from ...ports.record_schema import HEADERS as RECORD_HEADERS
from ...ports.record_schema import TYPES as RECORD_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...domain.options.sink import SinkOptions
    from ...domain.writing.transaction import Transaction, TransactionDescription
    from ...ports.reading import SourceEvents
    from ...ports.writing import RecordWriter, Transactions


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
    """Checks what the function of a continuous query returns; each task has its own."""

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
                names=batch.schema.names,
            )
            self._checked = batch.schema
            needed = record_columns(batch, sink.topic).schema.names
            self._has_others = needed != batch.schema.names
        return record_columns(batch, sink.topic) if self._has_others else batch


def _name(kind: pa.DataType) -> str:
    return next((name for known, name in _NAMES.items() if kind.equals(known)), str(kind))


def _unchanged(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


@final
class SinkTask:
    """Writes the rows of one task; all are acknowledged when ``write`` returns."""

    def __init__(
        self,
        writer: RecordWriter,
        transactions: Callable[[], Transactions],
        options: SinkOptions,
        events: SourceEvents,
        encode: Callable[[pa.RecordBatch], pa.RecordBatch] = _unchanged,
    ) -> None:
        """Take a writer, a factory of transactions, which only exactly-once needs, and an encoder.

        The encoder turns the columns that have a format into binaries (``SinkEncoding``).
        """
        self._writer = writer
        self._transactions = transactions
        self._options = options
        self._events = events
        self._encode = encode

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        transactional_id: str | None = None,
        used_until_ms: int = -1,
    ) -> WriteResult:
        """Write batches; with an id, into a transaction that the driver commits.

        The transaction gets the first of the ids ``<transactional_id>-<slot>`` that is free, which
        ``is_free`` decides with ``used_until_ms``. Without rows, no transaction is begun.

        :raises PysparkKafkaError: as the encoder, ``RecordWriter`` and ``Transactions``; the
            transaction is aborted then.
        """
        transaction: Transaction | None = None
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                encoded = self._encode(batch)
                if transactional_id is not None and transaction is None:
                    transaction = self._begin(transactional_id, used_until_ms)
                    self._writer.join_transaction(transaction)
                self._writer.write(encoded, self._options.topic)
            delivered = self._writer.flush()
        except BaseException:
            self._abort(transaction)
            raise
        self._events.records_delivered(delivered)
        return WriteResult(delivered, transaction)

    def _begin(self, name: str, used_until_ms: int) -> Transaction:
        """Begin a transaction under an id that no attempt of this batch has."""
        transactions = self._transactions()
        used: dict[str, TransactionDescription] = {}
        for slot in range(SLOTS):
            transactional_id = f"{name}-{slot}"
            found = transactions.describe([transactional_id]).get(transactional_id)
            if found is None or is_free(found, used_until_ms):
                return transactions.begin(transactional_id)
            used[transactional_id] = found
        # Attempts of drivers that died. The oldest one is the least likely to be needed.
        oldest = min(used, key=lambda each: (used[each].is_open, used[each].started_ms))
        return transactions.begin(oldest)

    def _abort(self, transaction: Transaction | None) -> None:
        """Abort now: readers would have to wait for the transaction's timeout."""
        if transaction is not None:
            with suppress(PysparkKafkaError):
                self._transactions().abort(transaction)
