"""The executor's side of a sink: writing rows, with or without a transaction."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, final

from ...domain.errors import PysparkKafkaError
from ...domain.writing.transaction import SLOTS, WriteResult, is_free

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from ...domain.options.sink import SinkOptions
    from ...domain.writing.transaction import Transaction, TransactionDescription
    from ...ports.reading import SourceEvents
    from ...ports.writing.record_writer import RecordWriter
    from ...ports.writing.transactions import Transactions


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
