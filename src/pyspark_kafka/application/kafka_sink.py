"""The driver's side of an exactly-once sink: it commits the transactions of micro-batches.

This is a two-phase commit. First the tasks write all records into transactions and leave them
open. Then the driver logs these transactions, which decides the batch: the next driver first
commits what it finds in the log. A transaction that is not in the log is never committed, and
committing one twice has no effect.

Other programs may write to the directory of the log, and this user may end transactions of other
programs. So only transactions are ended whose ids are this query's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ..domain.error_text import excerpt
from ..domain.errors import MetadataLogError, PysparkKafkaError, TransactionLostError
from ..domain.sink_log import BatchState, SinkLogEntry
from ..domain.transaction import FORGOTTEN, is_id_of_query, query_id_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..domain.options import SinkOptions
    from ..domain.transaction import Transaction
    from ..domain.write_result import WriteResult
    from ..ports.metadata_log import MetadataLog
    from ..ports.transactions import Transactions

MAX_ENTRIES: Final = 100
"""The default of ``spark.sql.streaming.minBatchesToRetain``, which bounds Spark's own logs."""

_EMPTY_LOG: Final = SinkLogEntry(-1, BatchState.COMMITTED)


@final
class KafkaSink:
    """Commits and aborts micro-batches one after another, from one driver at a time."""

    def __init__(
        self,
        log: MetadataLog,
        offsets: MetadataLog | None,
        transactions: Callable[[], Transactions],
        options: SinkOptions,
        query_id: Callable[[], str | None],
    ) -> None:
        """Take the sink's log, and the checkpoint's offset log if both are at the same place.

        The offset log must not be empty then: else this is not the checkpoint's storage.
        ``query_id`` returns the checkpoint's, ``None`` if that is at another place.
        """
        self._log = log
        self._offsets = offsets
        self._transactions = transactions
        self._options = options
        self._query_id = query_id

    def recover(self) -> int:
        """Commit what an earlier driver has logged; return the last visible batch, -1 if none.

        Tasks must not write these batches again. Without the query's id, which tasks know, the
        logged batch is not ended yet: Spark runs it again, and its ``commit`` has the id.

        :raises TransactionLostError: if a batch was committed in part and its rest was aborted.
        :raises MetadataLogError: if the log cannot be used, or is not where the checkpoint is.
        """
        planned = self._require_checkpoint()
        number, entry = self._newest()
        if planned is not None:
            self._require_not_after(planned, number, entry)
        if entry.state is BatchState.PREPARED:
            query_id = self._query_id()
            self._require_own(number, entry, query_id)
            if query_id is None:
                return entry.batch_id
            entry = self._complete(number, entry)
        return entry.committed_through

    def commit(self, batch_id: int, query_id: str | None, written: Sequence[WriteResult]) -> None:
        """Commit a batch: its records become visible exactly once.

        :raises TransactionLostError: if the batch took longer than ``transaction.timeout.ms``.
        :raises MetadataLogError: if the log cannot be used, or another driver writes to it.
        """
        opened = _transactions_of(written)
        number, entry = self._newest()
        self._require_not_after(batch_id, number, entry)
        self._require_own(number, entry, query_id)
        if entry.state is BatchState.PREPARED:
            entry = self._complete(number, entry)
            number += 1
            if entry.batch_id == batch_id and entry.state is BatchState.DROPPED:
                # Its tasks were told not to write it.
                raise _dropped(entry)
        if batch_id <= entry.committed_through:
            # Spark runs a batch again if it failed between this commit and Spark's own.
            self.abort(written)
        else:
            self._log_and_commit(number + 1, SinkLogEntry(batch_id, BatchState.PREPARED, opened))
        if query_id is not None:
            self._abort_abandoned(query_id)

    def abort(self, written: Iterable[WriteResult | None]) -> None:
        """Abort the open transactions of a batch; ``None`` stands for a task that failed."""
        for transaction in _transactions_of(written):
            self._transactions().abort(transaction)

    def _log_and_commit(self, number: int, prepared: SinkLogEntry) -> None:
        """Log a batch, and commit it."""
        self._append(number, prepared)
        if self._complete(number, prepared).state is BatchState.DROPPED:
            raise _dropped(prepared)

    def _abort_abandoned(self, query_id: str) -> None:
        prefix = query_id_prefix(self._options.transactional_id_prefix, query_id)
        # The batch is committed already, and these time out by themselves.
        with suppress(PysparkKafkaError):
            self._transactions().abort_abandoned(prefix)

    def _complete(self, number: int, prepared: SinkLogEntry) -> SinkLogEntry:
        """Commit all transactions of an entry, and log the result."""
        try:
            lost = self._commit_all(prepared.transactions)
        except TransactionLostError as error:
            raise self._unknown(number, prepared, error) from error
        if lost and len(lost) < len(prepared.transactions):
            raise TransactionLostError(
                [transaction.transactional_id for transaction in lost],
                f"they were aborted while other transactions of batch {prepared.batch_id} were "
                "committed, because no driver was restarted within 'kafka.transaction.timeout.ms'",
                "A part of the batch is missing in Kafka. Write it by other means, or delete "
                f"'{self._log}' and start the query with a new checkpoint.",
            )
        entry = prepared.with_state(BatchState.DROPPED if lost else BatchState.COMMITTED)
        self._append(number + 1, entry)
        self._log.purge(number + 2 - MAX_ENTRIES)
        return entry

    def _unknown(
        self, number: int, prepared: SinkLogEntry, error: TransactionLostError
    ) -> TransactionLostError:
        """Return the error for a batch that may be committed or not."""
        return TransactionLostError(
            error.transactional_ids,
            FORGOTTEN,
            f"It is unknown whether batch {prepared.batch_id} was committed before. Look for its "
            "records with 'isolation.level=read_committed'. If they are in Kafka, replace "
            f"'prepared' by 'committed' in '{self._log}/{number}', otherwise by 'dropped': then "
            "start the query, which writes a dropped batch again.",
            may_be_committed=True,
        )

    def _commit_all(self, transactions: Sequence[Transaction]) -> Sequence[Transaction]:
        """Commit transactions in order; return those that were aborted.

        Every driver starts with the first one. If that was aborted, none was committed: the others
        are aborted too, so that the batch can be written again.
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
        except TransactionLostError as error:
            if error.may_be_committed:
                raise
            return False
        return True

    def _newest(self) -> tuple[int, SinkLogEntry]:
        latest = self._log.latest()
        if latest is None:
            return -1, _EMPTY_LOG
        try:
            return latest[0], SinkLogEntry.from_bytes(latest[1])
        except ValueError as error:
            raise MetadataLogError(str(self._log), str(error)) from error

    def _require_not_after(self, batch_id: int, number: int, entry: SinkLogEntry) -> None:
        """Raise if an entry would let Spark's last batch, and those before it, be skipped."""
        if entry.batch_id > batch_id:
            raise self._foreign(
                number, f"is of batch {entry.batch_id}, and the query's last batch is {batch_id}"
            )

    def _require_own(self, number: int, entry: SinkLogEntry, query_id: str | None) -> None:
        """Raise if an entry names transactions of others; only open ones need the prefix.

        The prefix is an option, which an earlier run may have set to another value.
        """
        is_open = entry.state is BatchState.PREPARED
        prefix = self._options.transactional_id_prefix if is_open else None
        if not is_open and query_id is None:
            return
        for each in entry.transactions:
            if not is_id_of_query(each.transactional_id, prefix, query_id):
                raise self._foreign(
                    number,
                    f"names the transaction '{excerpt(each.transactional_id)}' (producer id "
                    f"{each.producer_id}, epoch {each.epoch}), and this query's are named "
                    f"'{prefix or '<prefix>'}-{query_id or '<query id>'}-<task>-<attempt>'",
                )

    def _foreign(self, number: int, what: str) -> MetadataLogError:
        return MetadataLogError(
            f"{self._log}/{number}",
            f"The entry of the sink's log {what}. No transaction was committed or aborted. If "
            "'transactionalIdPrefix' was changed, run the query once with the former one; if the "
            "checkpoint is a new one, delete the log of the old one. Otherwise another program "
            "wrote this file: find out which one can write there, and delete the file",
        )

    def _append(self, number: int, entry: SinkLogEntry) -> None:
        if not self._log.add(number, entry.to_bytes()):
            raise MetadataLogError(
                str(self._log),
                f"Another driver has written entry {number} of the sink's log. Only one query can "
                "use a checkpoint at a time: stop the other one",
            )

    def _require_checkpoint(self) -> int | None:
        """Return the last batch of the checkpoint's offset log, if that is at the same place."""
        if self._offsets is None:
            return None
        latest = self._offsets.latest()
        if latest is None:
            raise MetadataLogError(
                str(self._offsets),
                "This process does not find the checkpoint's offset log. Set the option "
                "'metadataPath' to a path that every driver of this query can reach",
            )
        return latest[0]


def _dropped(entry: SinkLogEntry) -> TransactionLostError:
    return TransactionLostError(
        [transaction.transactional_id for transaction in entry.transactions],
        f"they were aborted before batch {entry.batch_id} was complete",
        "Set 'kafka.transaction.timeout.ms' to more than a batch takes, up to the brokers' "
        "'transaction.max.timeout.ms', and restart the query: it writes the batch again.",
    )


def _transactions_of(written: Iterable[WriteResult | None]) -> tuple[Transaction, ...]:
    return tuple(one.transaction for one in written if one and one.transaction is not None)
