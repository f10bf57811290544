"""The driver's side of an exactly-once sink: what a micro-batch was written in becomes visible.

It is a commit in two steps. The first is Spark's and the tasks': all records are in Kafka, in
transactions that are open. Then the driver writes down which transactions these are, and from
then on the batch is decided: whoever drives the query next ends what it finds written down before
anything else. The rest follows from Kafka: a transaction that is not written down is never
committed, and to commit one again changes nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ..domain.errors import MetadataLogError, PysparkKafkaError, TransactionLostError
from ..domain.sink_log import BatchState, SinkLogEntry
from ..domain.transaction import query_id_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..domain.options import SinkOptions
    from ..domain.transaction import Transaction
    from ..domain.write_result import WriteResult
    from ..ports.metadata_log import MetadataLog
    from ..ports.transactions import Transactions

MAX_ENTRIES: Final = 100
"""As many as Spark keeps of its own logs (``spark.sql.streaming.minBatchesToRetain``)."""

_NOBODY_YET: Final = SinkLogEntry(-1, BatchState.COMMITTED)


@final
class KafkaSink:
    """Commits and aborts micro-batches, one after the other, from one driver at a time."""

    def __init__(
        self,
        log: MetadataLog,
        offsets: MetadataLog | None,
        transactions: Callable[[], Transactions],
        options: SinkOptions,
    ) -> None:
        """Take the sink's log, the checkpoint's own one of offsets, and a way to transactions.

        ``offsets`` is looked at where the log's place was found by the checkpoint's.
        """
        self._log = log
        self._offsets = offsets
        self._transactions = transactions
        self._options = options

    def recover(self) -> int:
        """End what an earlier driver has decided; give the last batch whose records can be seen.

        -1 stands for none. Tasks are not to write those batches again.

        :raises TransactionLostError: if a part of a batch was aborted after another was committed.
        :raises MetadataLogError: if the log cannot be used, or is not where the checkpoint is.
        """
        self._require_checkpoint()
        number, entry = self._newest()
        if entry.state is BatchState.PREPARED:
            entry = self._complete(number, entry)
        return entry.committed_through

    def commit(self, batch_id: int, query_id: str | None, written: Sequence[WriteResult]) -> None:
        """Make a batch's records visible, once and for all.

        :raises TransactionLostError: if the batch took longer than ``transaction.timeout.ms``.
        :raises MetadataLogError: if the log cannot be used, or another driver writes to it.
        """
        opened = _transactions_of(written)
        number, entry = self._newest()
        if entry.state is BatchState.PREPARED:
            entry = self._complete(number, entry)
            number += 1
        if batch_id <= entry.committed_through:
            # Spark runs a batch again that it does not know to be committed.
            self.abort(written)
        else:
            self._decide(number + 1, SinkLogEntry(batch_id, BatchState.PREPARED, opened))
        if query_id is not None:
            self._abort_abandoned(query_id)

    def abort(self, written: Iterable[WriteResult | None]) -> None:
        """Abort what the tasks of a batch have left open; ``None`` stands for one that failed."""
        for transaction in _transactions_of(written):
            self._transactions().abort(transaction)

    def _decide(self, number: int, prepared: SinkLogEntry) -> None:
        """Write a batch down, and commit it."""
        self._append(number, prepared)
        if self._complete(number, prepared).state is BatchState.DROPPED:
            raise TransactionLostError(
                [transaction.transactional_id for transaction in prepared.transactions],
                f"they were aborted before batch {prepared.batch_id} was at its end",
                "Set 'kafka.transaction.timeout.ms' to more than a batch takes, within the "
                "brokers' 'transaction.max.timeout.ms', and start the query again: it writes the "
                "batch anew.",
            )

    def _abort_abandoned(self, query_id: str) -> None:
        prefix = query_id_prefix(self._options.transactional_id_prefix, query_id)
        # The batch is committed whatever becomes of these: they time out by themselves.
        with suppress(PysparkKafkaError):
            self._transactions().abort_abandoned(prefix)

    def _complete(self, number: int, prepared: SinkLogEntry) -> SinkLogEntry:
        """Commit every transaction of an entry, and append what became of it."""
        lost = self._commit_all(prepared.transactions)
        if lost and len(lost) < len(prepared.transactions):
            raise TransactionLostError(
                [transaction.transactional_id for transaction in lost],
                f"they were aborted while other transactions of batch {prepared.batch_id} were "
                "committed, since no driver came back within 'kafka.transaction.timeout.ms'",
                f"A part of the batch is missing in Kafka. Write it by other means, or start the "
                f"query with a new checkpoint and '{self._log}' emptied.",
            )
        entry = prepared.becoming(BatchState.DROPPED if lost else BatchState.COMMITTED)
        self._append(number + 1, entry)
        self._log.purge(number + 2 - MAX_ENTRIES)
        return entry

    def _commit_all(self, transactions: Sequence[Transaction]) -> Sequence[Transaction]:
        """Commit transactions in their order, and give those that are lost.

        Every driver begins with the first. Where that one is lost none was committed, and the
        others are aborted, so that the batch can be written anew.
        """
        if transactions and not self._is_committed(transactions[0]):
            for transaction in transactions[1:]:
                self._transactions().abort(transaction)
            return transactions
        return [
            transaction for transaction in transactions[1:] if not self._is_committed(transaction)
        ]

    def _is_committed(self, transaction: Transaction) -> bool:
        try:
            self._transactions().commit(transaction)
        except TransactionLostError:
            return False
        return True

    def _newest(self) -> tuple[int, SinkLogEntry]:
        latest = self._log.latest()
        if latest is None:
            return -1, _NOBODY_YET
        try:
            return latest[0], SinkLogEntry.from_bytes(latest[1])
        except ValueError as error:
            raise MetadataLogError(str(self._log), str(error)) from error

    def _append(self, number: int, entry: SinkLogEntry) -> None:
        if not self._log.add(number, entry.to_bytes()):
            raise MetadataLogError(
                str(self._log),
                f"Another driver has written entry {number} of the sink's log. Only one query may "
                "use a checkpoint at a time: stop the other one",
            )

    def _require_checkpoint(self) -> None:
        if self._offsets is not None and self._offsets.latest() is None:
            raise MetadataLogError(
                str(self._offsets),
                "The checkpoint's offsets are not found where this process looks for them. Set the "
                "option 'metadataPath' to a place that every driver of this query can reach",
            )


def _transactions_of(written: Iterable[WriteResult | None]) -> tuple[Transaction, ...]:
    return tuple(one.transaction for one in written if one and one.transaction is not None)
