"""The driver's side of an exactly-once sink: it commits the transactions of micro-batches.

This is a two-phase commit. First the tasks write all records into transactions and leave them
open. Then the driver logs these transactions, which decides the batch: the next driver first
commits what it finds in the log. A transaction that is not in the log is never committed, and
committing one twice has no effect.

Before it decides, the driver looks whether each transaction is still open: else all are aborted,
and the batch is written again. After that, a transaction can only be lost to its time-out, or to
somebody who aborts it on purpose.

Other programs may write to the directory of the log, and this user may end transactions of other
programs. So only transactions with this query's ids are ended.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...domain.checkpoints.entries import (
    NO_PLAN,
    BatchState,
    SinkLogEntry,
    SinkPlan,
    other_query_error,
)
from ...domain.errors import MetadataLogError, PysparkKafkaError
from ...domain.partition_offsets import PartitionOffsets
from ...domain.text import excerpt
from ...domain.writing.errors import TransactionLostError
from ...domain.writing.group_seal import GroupSeal
from ...domain.writing.transaction import (
    FORGOTTEN,
    Transaction,
    TransactionEnd,
    TransactionState,
    continuous_id,
    end_of,
    is_id_of_earlier_version,
    is_id_of_query,
    log_prefix,
    ms_left,
    query_id_prefix,
    run_prefix,
)
from ...ports.clock import epoch_ms
from ..checkpoints.logs import newest_entry, purge
from .group_take_over import take_over_group

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ...domain.options.sink import SinkOptions
    from ...domain.topic_partition import TopicPartition
    from ...domain.writing.group_seal import GroupOffset
    from ...domain.writing.transaction import TransactionDescription, WriteResult
    from ...ports.checkpoints import MetadataLog
    from ...ports.writing import Transactions
    from .sink_checkpoint import SinkCheckpoint

    Ends: TypeAlias = Mapping[Transaction, TransactionEnd | None]
    Lost: TypeAlias = Mapping[Transaction, TransactionEnd]

MAX_ENTRIES: Final = 100
"""The default of ``spark.sql.streaming.minBatchesToRetain``, which bounds Spark's own logs."""

_MAX_NEEDED_MS: Final = 30_000
"""How long the transactions of a batch have to stay open when it is decided, or a quarter of
``transaction.timeout.ms`` if that is less."""

_LONG_MS: Final = 1_000
"""The time in which no other driver can write ``MAX_ENTRIES / 2`` batches."""

_EMPTY_LOG: Final = SinkLogEntry(-1, BatchState.COMMITTED)

_DONE: Final = frozenset({TransactionEnd.COMMITTED, TransactionEnd.REPLACED})
_UNCLEAR: Final = frozenset(
    {TransactionEnd.REPLACED, TransactionEnd.FENCED, TransactionEnd.FORGOTTEN}
)
"""A transaction of a prepared batch that ended so may have been committed before."""


@final
class KafkaSink:
    """Commits and aborts micro-batches one after another, from one driver at a time."""

    def __init__(
        self,
        log: MetadataLog,
        checkpoint: SinkCheckpoint,
        transactions: Callable[[], Transactions],
        options: SinkOptions,
        log_id: str,
        now_ms: Callable[[], int] = epoch_ms,
    ) -> None:
        """Take the sink's log and the checkpoint.

        ``log_id`` is the part of transactional ids that stands for the place of the log.
        ``now_ms`` is the driver's clock, since the epoch.
        """
        self._log = log
        self._checkpoint = checkpoint
        self._transactions = transactions
        self._options = options
        self._log_id = log_id
        self._now_ms = now_ms
        self._read_ms = 0
        """When the newest entry was read."""

    def recover(self) -> SinkPlan:
        """Commit what an earlier driver has logged, and return what the next tasks must know.

        Tasks must not write visible batches again. Without the query's id, which tasks know, a
        logged batch is not ended yet: Spark runs it again, and its ``commit`` has the id.

        :raises TransactionLostError: if a batch was committed in part and its rest was aborted.
        :raises MetadataLogError: if the log cannot be used, or is not where the checkpoint is, or
            if the batch in the log is not the one in the checkpoint.
        """
        planned_ms = self._now_ms()
        last = self._checkpoint.last()
        number, entry = self._newest()
        if last.batch_id is None and entry.offsets is not None:
            # It could be read when the entry was written.
            last = self._checkpoint.last(is_readable=True)
        planned, query_id = last.batch_id, last.query_id
        if planned is not None:
            self._require_not_after(planned, number, entry)
            if entry.offsets is not None and entry.state is not BatchState.DROPPED:
                where = f"{self._log}/{number}"
                self._checkpoint.require_written(entry.batch_id, entry.offsets, planned, where)
        self._require_own(number, entry, query_id)
        if entry.state is BatchState.PREPARED and query_id is not None:
            entry, _ = self._complete(number, entry)
        if planned is not None:
            self._end_continuous_query(planned, entry, query_id)
        is_decided = entry.state is BatchState.PREPARED
        through = entry.batch_id if is_decided else entry.committed_through
        return SinkPlan(
            through,
            entry.query_id,
            entry.started_ms,
            planned_ms,
            planned,
            last.digest,
            self._log_id,
        )

    def hand_over(self, batch_id: int) -> None:
        """Give a batch that was planned and is not decided to a continuous query.

        The log moves on, so that no late driver can decide the batch, and transactions that were
        open before are aborted. A second call only aborts those that were opened since.

        :raises MetadataLogError: if the batch is decided, another query has continued since, or the
            log cannot be used.
        """
        query_id = self._checkpoint.last().query_id
        number, entry = self._newest()
        self._require_own(number, entry, query_id)
        # None is of a later batch, if it turns out afterwards that no other query has continued.
        abandoned = self._abandoned((), query_id)
        if _is_handed_over(entry, batch_id):
            self._checkpoint.require_newest(batch_id)
            self._require_newest(number)
        else:
            self._require_not_after(batch_id, number, entry)
            is_decided = entry.batch_id == batch_id and entry.state is not BatchState.DROPPED
            if is_decided or entry.state is BatchState.PREPARED:
                raise self._decided(entry)
            handed_over = SinkLogEntry(
                batch_id + 1, BatchState.DROPPED, query_id=query_id, started_ms=entry.started_ms
            )
            self._append(number + 1, handed_over)
        self._abort_abandoned(abandoned, ())

    def _decided(self, entry: SinkLogEntry) -> MetadataLogError:
        return MetadataLogError(
            str(self._log),
            f"The transactions of batch {entry.batch_id} are {entry.state.value}, and the "
            "micro-batch query that wrote it has not finished it: its records would be written "
            "twice. Start that query once more, stop it after the batch, and then start this one",
        )

    def _end_continuous_query(
        self, batch_id: int, entry: SinkLogEntry, query_id: str | None
    ) -> None:
        """Keep a continuous query from committing output of the partitions of a batch.

        The query has written the epoch before; or earlier epochs, and then only new partitions
        matter.

        :raises MetadataLogError: if it has committed something after its last epoch, another
            driver has taken over with a later batch, or the batch is an epoch.
        """
        if entry.committed_through < batch_id and self._checkpoint.is_epoch(batch_id):
            raise self._of_continuous_query(batch_id)
        group_id, offsets = self._to_take_over(batch_id, entry, query_id)
        if group_id is None:
            return

        def check(found: Mapping[TopicPartition, GroupOffset]) -> None:
            self._require_last(batch_id, found.values())
            later = {
                partition: each.offset
                for partition, each in found.items()
                if each.offset > offsets[partition] and not GroupSeal.of(each).is_of_batch
            }
            if later:
                raise self._not_logged(batch_id, PartitionOffsets(later), offsets)

        seal = GroupSeal(batch_id=batch_id)
        take_over_group(self._transactions(), group_id, offsets, seal, check)

    def _of_continuous_query(self, batch_id: int) -> MetadataLogError:
        return MetadataLogError(
            str(self._checkpoint),
            f"Batch {batch_id}, the last one in the checkpoint, is an epoch of a continuous query. "
            "No task was fenced. If that query runs, stop it. If it has failed before it finished "
            "the epoch, start the continuous query once more, stop it, and then start this query",
        )

    def _to_take_over(
        self, batch_id: int, entry: SinkLogEntry, query_id: str | None
    ) -> tuple[str | None, Mapping[TopicPartition, int]]:
        """Return the group of a continuous query, and where its partitions end in the log."""
        added: Collection[TopicPartition] = ()
        group_id = self._continuous_group(batch_id, entry, query_id)
        if group_id is None and entry.committed_through < batch_id:
            added = self._checkpoint.added(batch_id)
        ends = self._checkpoint.ends(batch_id) if group_id is not None or added else None
        if ends is None:
            return None, {}
        logged, planned = ends
        group_id = group_id or self._former_group(batch_id, planned.keys(), query_id)
        return group_id, {each: logged.get(each, 0) for each in sorted(added or planned)}

    def _require_last(self, batch_id: int, found: Iterable[GroupOffset]) -> None:
        """Raise if another driver has taken the group over with a later batch."""
        last = max((GroupSeal.of(each).batch_id or 0 for each in found), default=0)
        if last > batch_id:
            raise MetadataLogError(
                str(self._checkpoint),
                f"Another driver has taken over from the continuous query with batch {last}, and "
                f"this query's last batch is {batch_id}. Only one query can use a checkpoint at a "
                "time: stop the other one. If the checkpoint was restored from a backup, restore "
                "a newer one",
            )

    def _former_group(
        self, batch_id: int, partitions: Iterable[TopicPartition], query_id: str | None
    ) -> str | None:
        """Return the group of an exactly-once continuous query that the checkpoint once had.

        Its epochs may be gone from the log; then Kafka knows its transactional ids. An epoch that
        names another group came with a copy of the checkpoint.
        """
        logged, own = self._checkpoint.last_continuous_group(batch_id), self._own_group(query_id)
        if own in (None, logged):
            return logged
        names = [continuous_id(own, *partition) for partition in partitions]
        return own if self._transactions().describe(names) else None

    def _continuous_group(
        self, batch_id: int, entry: SinkLogEntry, query_id: str | None
    ) -> str | None:
        """Return the group of the exactly-once continuous query that wrote the epoch before.

        :raises MetadataLogError: if it had another ``transactionalIdPrefix``.
        """
        own = self._own_group(query_id)
        if own is not None and _is_handed_over(entry, batch_id - 1):
            return own
        if entry.committed_through >= batch_id - 1:
            return None
        logged = self._checkpoint.continuous_group(batch_id - 1)
        if logged is not None and own not in (None, logged):
            raise self._other_prefix(batch_id - 1, logged.removesuffix(f"-{query_id}"))
        return logged

    def _own_group(self, query_id: str | None) -> str | None:
        prefix = self._options.transactional_id_prefix
        return None if query_id is None else f"{prefix}-{query_id}"

    def _other_prefix(self, epoch: int, prefix: str) -> MetadataLogError:
        return MetadataLogError(
            str(self._checkpoint),
            f"Epoch {epoch}, the last one, is of a continuous query whose 'transactionalIdPrefix' "
            f"was {excerpt(prefix)!r}, and this query's is "
            f"{self._options.transactional_id_prefix!r}. No task was fenced. If this is that "
            "query, set the former prefix. If the checkpoint is a copy, start the continuous query "
            "on it once with this query's prefix, stop it, and then start this query",
        )

    def _not_logged(
        self, batch_id: int, later: PartitionOffsets, logged: Mapping[TopicPartition, int]
    ) -> MetadataLogError:
        partition, committed = min(later.items())
        return MetadataLogError(
            str(self._checkpoint),
            f"A continuous query has committed output of {partition} up to offset {committed}, and "
            f"batch {batch_id - 1} of the log ends at offset {logged[partition]}: batch {batch_id} "
            "would write the records between them again. Start the continuous query once more, "
            "stop it, and then start this query. If it cannot run, as where a record fails, write "
            f"'{later.to_json()}' to a file and run 'pyspark-kafka offsets rewrite CHECKPOINT --to "
            "FILE --query-is-stopped': this query then continues at these offsets",
        )

    def commit(
        self,
        batch_id: int,
        query_id: str | None,
        written: Sequence[WriteResult],
        plan: SinkPlan = NO_PLAN,
    ) -> None:
        """Commit a batch: its records become visible exactly once.

        ``plan`` is the plan of its tasks.

        :raises TransactionLostError: if one of the transactions is no longer open, or not for long
            enough; all are aborted then, and the next start writes the batch again.
        :raises MetadataLogError: if the log cannot be used, another driver writes to it, or the
            batch's offsets are others than its tasks read.
        """
        if plan.last_batch not in (None, batch_id):
            raise self._late(batch_id, plan.last_batch)
        opened = _transactions_of(written)
        query_id = query_id or self._checkpoint.last().query_id
        number, entry = self._newest()
        self._require_not_after(batch_id, number, entry)
        self._require_own(number, entry, query_id)
        if entry.state is BatchState.PREPARED:
            entry, lost = self._complete(number, entry)
            number += 1
            if entry.batch_id == batch_id and lost:
                # Its tasks were to skip it.
                raise _dropped(entry, lost)
        if batch_id <= entry.committed_through:
            if entry.batch_id == batch_id > plan.committed_through:
                self._require_offsets(batch_id, plan, entry.offsets)
            # Spark runs a batch again if it failed between this commit and Spark's own. Another
            # driver may be in the next batch, so that nothing else is cleaned up.
            self._abort_all(each for each in opened if each not in entry.transactions)
        elif batch_id <= plan.committed_through:
            raise MetadataLogError(
                str(self._log),
                f"The log listed batch {batch_id} as decided, so that its tasks wrote nothing, and "
                "no longer does: another driver has dropped the batch, or one that has ended, by a "
                "late write, or the log was changed. Make sure that only one driver uses this "
                "checkpoint, and restart the query: it writes the batch",
            )
        else:
            self._decide(
                number, entry, SinkLogEntry(batch_id, BatchState.PREPARED, opened, query_id), plan
            )

    def _late(self, batch_id: int, last: int | None) -> MetadataLogError:
        return MetadataLogError(
            str(self._checkpoint),
            f"Batch {last} was the last one in the checkpoint when the tasks of batch {batch_id} "
            "began: another query uses the checkpoint. Nothing was committed. Only one query can "
            "use a checkpoint at a time: stop the other one",
        )

    def _require_offsets(self, batch_id: int, plan: SinkPlan, offsets: str | None) -> None:
        """Raise if a batch's tasks have not read these offsets."""
        if plan.offsets is not None and offsets not in (None, plan.offsets):
            raise MetadataLogError(
                str(self._checkpoint),
                f"The offsets of batch {batch_id} have changed since its tasks began: the "
                "checkpoint was restored or changed, or another driver uses it. Nothing was "
                "committed. Make sure that only one driver uses this checkpoint, and restart the "
                "query",
            )

    def _decide(
        self, number: int, entry: SinkLogEntry, prepared: SinkLogEntry, plan: SinkPlan
    ) -> None:
        """Log a batch after the newest ``entry``, and commit it."""
        opened, query_id = prepared.transactions, prepared.query_id
        used_until_ms = self._used_until_ms(number, entry, opened, query_id)
        # No driver can be in the next batch yet. So these are of this batch or before it, and
        # nobody will commit them if the number of the next entry is still free.
        abandoned = self._abandoned(opened, query_id)
        described = self._describe(opened)
        is_readable = plan.last_batch is not None or entry.offsets is not None
        offsets = self._checkpoint.digest(prepared.batch_id, is_readable=is_readable)
        self._require_offsets(prepared.batch_id, plan, offsets)
        prepared = replace(
            prepared,
            offsets=offsets,
            started_ms=max([used_until_ms, *(each.started_ms for each in described.values())]),
        )
        self._require_open(number, prepared, described, plan.planned_ms)
        self._append(number + 1, prepared)
        _, lost = self._complete(number + 1, prepared, dict.fromkeys(opened))
        if lost:
            raise _dropped(prepared, lost)
        self._abort_abandoned(abandoned, opened)

    def abort(
        self,
        batch_id: int,
        written: Sequence[WriteResult | None],
        query_id: str | None = None,
    ) -> None:
        """Abort the open transactions of a batch; ``None`` stands for a task that failed.

        Spark calls it after a ``commit`` that failed, too: a batch that is decided by then is
        committed, not aborted.

        :raises MetadataLogError: if the log cannot be read, so that nothing is aborted.
        """
        opened = _transactions_of(written)
        number, entry = self._newest()
        while set(opened).isdisjoint(entry.transactions):
            is_decided = entry.state is BatchState.PREPARED or batch_id <= entry.committed_through
            # Another driver may be at work: its number is taken only if nothing else is safe.
            may_be_logged = not is_decided and None not in written and self._is_any_open(opened)
            if not may_be_logged or self._block(number + 1, entry):
                self._abort_all(opened)
                return
            number, entry = self._newest()
        if entry.state is BatchState.PREPARED:
            self._require_own(number, entry, query_id)
            self._complete(number, entry)

    def _is_any_open(self, transactions: Sequence[Transaction]) -> bool:
        return None in _ends(transactions, self._describe(transactions)).values()

    def _block(self, number: int, entry: SinkLogEntry) -> bool:
        """Take the number of an entry that a failed ``commit`` may still be about to add.

        A storage may write a file after its client has given up. Return whether it is not there.
        """
        nothing = SinkLogEntry(0, BatchState.DROPPED) if entry is _EMPTY_LOG else entry
        return self._log.add(number, nothing.to_bytes())

    def _used_until_ms(
        self,
        number: int,
        entry: SinkLogEntry,
        opened: Sequence[Transaction],
        query_id: str | None,
    ) -> int:
        """Return when the last committed transaction began, by the coordinators' clocks.

        An entry knows when those of its batch and of earlier ones began. If there are later ones,
        the log is an older backup. A log that is new, or was deleted, learns of them here. A run
        that has written the newest entry need not look again.

        :raises MetadataLogError: if Kafka has later batches than the log.
        :raises PysparkKafkaError: as ``Transactions``; nothing is decided then.
        """
        if not opened or query_id is None:
            return entry.started_ms
        run = run_prefix(opened[0].transactional_id)
        if any(each.transactional_id.startswith(run) for each in entry.transactions):
            return entry.started_ms
        prefix = self._options.transactional_id_prefix
        log = log_prefix(prefix, query_id, self._log_id)
        found = self._transactions().find(log, TransactionState.COMPLETE_COMMIT)
        committed = [name for name in found if is_id_of_query(name, prefix, query_id)]
        last = max(committed, key=lambda name: found[name].started_ms, default=None)
        until_ms = -1 if last is None else found[last].started_ms
        if until_ms > entry.started_ms >= 0:
            self._require_newest(number)
            raise MetadataLogError(
                f"{self._log}/{number}",
                f"Kafka has a transaction of this query, '{excerpt(str(last))}', that was "
                f"committed after batch {entry.batch_id}, the last one in the sink's log: the "
                "checkpoint and the log were restored from an older backup. Nothing was committed. "
                "Restore the newest checkpoint and log. Or delete the sink's log: then the batches "
                "since the backup are written again, and their records are in Kafka twice",
            )
        return max(until_ms, entry.started_ms)

    def _require_open(
        self,
        number: int,
        prepared: SinkLogEntry,
        described: Mapping[str, TransactionDescription],
        planned_ms: int | None,
    ) -> None:
        """Abort a batch whose transactions are not all open for long enough to be committed.

        No entry is written: another driver may be about to add the one after ``number``.
        """
        ended = {each: end for each, end in _ends(prepared.transactions, described).items() if end}
        if TransactionEnd.COMMITTED in ended.values():
            self._require_newest(number)
            raise MetadataLogError(
                str(self._log),
                f"Transactions of batch {prepared.batch_id} were committed, but the log does not "
                "say so: it was deleted or restored while the query ran. Restore the log. "
                "Without it, the batch is written again, and its records are in Kafka twice",
            )
        left_ms = ms_left(described.values(), self._now_ms(), planned_ms)
        timeout_ms = self._options.producer.transaction_timeout_ms
        is_late = left_ms is not None and left_ms < min(_MAX_NEEDED_MS, timeout_ms // 4)
        if is_late or ended:
            self._abort_all(prepared.transactions)
            self._require_newest(number)
            raise _dropped(prepared, ended)

    def _abandoned(
        self, opened: Sequence[Transaction], query_id: str | None
    ) -> Mapping[str, TransactionDescription]:
        """Return the query's open transactions that are not of this batch.

        They are of attempts that failed or were not needed. Ids that name no log are of an earlier
        version of this library. While brokers do not answer, none are known, and they time out.
        """
        if query_id is None:
            return {}
        prefix = self._options.transactional_id_prefix
        found: Mapping[str, TransactionDescription] = {}
        with suppress(PysparkKafkaError):
            found = self._transactions().find(
                query_id_prefix(prefix, query_id), TransactionState.ONGOING
            )
        log = log_prefix(prefix, query_id, self._log_id)
        used = {each.transactional_id for each in opened}
        return {
            name: each
            for name, each in found.items()
            if name not in used
            and (name.startswith(log) or is_id_of_earlier_version(name, prefix, query_id))
            and is_id_of_query(name, prefix, query_id)
        }

    def _abort_abandoned(
        self, abandoned: Mapping[str, TransactionDescription], opened: Sequence[Transaction]
    ) -> None:
        """Abort exactly these transactions, whoever uses their ids by now."""
        run = run_prefix(opened[0].transactional_id) if opened else None
        # The batch is committed already, and these time out by themselves.
        with suppress(PysparkKafkaError):
            for name, before in abandoned.items():
                if run is not None and name.startswith(run):
                    # No other driver uses it. This fences an attempt that still writes, too.
                    self._transactions().begin(name)
                else:
                    transaction = Transaction(name, before.producer_id, before.epoch)
                    self._transactions().abort(transaction)

    def _complete(
        self, number: int, prepared: SinkLogEntry, ends: Ends | None = None
    ) -> tuple[SinkLogEntry, Lost]:
        """End all transactions of an entry and log the result; ``ends`` is what is known of them.

        Return the new entry, and what made the batch be dropped.
        """
        transactions = prepared.transactions
        ends = self._ends(prepared) if ends is None else ends
        if not _lost(ends):
            ends = self._commit_open(number, prepared, ends)
        if lost := _lost(ends):
            # Every driver ends the first one first, so that two do not decide differently.
            for decided in (transactions[:1], transactions[1:]):
                self._require_newest(number)
                is_committed = TransactionEnd.COMMITTED in ends.values()
                if is_committed and not _UNCLEAR.issuperset(lost.values()):
                    raise self._partly_lost(number, prepared, lost)
                if is_committed or not _UNCLEAR.isdisjoint(ends.values()):
                    raise self._unknown(number, prepared, ends)
                self._abort_all(decided)
                ends = self._ends(prepared)
        entry = prepared.with_state(BatchState.DROPPED if lost else BatchState.COMMITTED)
        self._append(number + 1, entry)
        purge(number + 2 - MAX_ENTRIES, self._log)
        return entry, lost

    def _commit_open(self, number: int, prepared: SinkLogEntry, ends: Ends) -> Ends:
        """Commit transactions in order; return how all of them ended if one was lost."""
        try:
            for transaction in prepared.transactions:
                if ends[transaction] is None:
                    self._transactions().commit(transaction)
        except TransactionLostError:
            self._require_newest(number)
            ends = self._ends(prepared)
            if None in ends.values() and not _lost(ends):
                raise
        return ends

    def _abort_all(self, transactions: Iterable[Transaction]) -> None:
        for transaction in transactions:
            self._transactions().abort(transaction)

    def _describe(
        self, transactions: Sequence[Transaction]
    ) -> Mapping[str, TransactionDescription]:
        names = [each.transactional_id for each in transactions]
        return self._transactions().describe(names) if names else {}

    def _ends(self, prepared: SinkLogEntry) -> Ends:
        """Return how the transactions of a prepared batch ended."""
        described = self._describe(prepared.transactions)
        ends = _ends(prepared.transactions, described)
        for transaction, end in ends.items():
            if end is TransactionEnd.TIMED_OUT and prepared.started_ms >= 0:
                started_ms = described[transaction.transactional_id].started_ms
                if not 0 <= started_ms <= prepared.started_ms:
                    # Another producer's, which began after the batch had been prepared.
                    ends[transaction] = TransactionEnd.REPLACED
        return ends

    def _partly_lost(self, number: int, prepared: SinkLogEntry, lost: Lost) -> TransactionLostError:
        return TransactionLostError(
            [each.transactional_id for each in lost],
            f"{_described(lost)}, after other transactions of batch {prepared.batch_id} were "
            "committed",
            "A part of the batch is missing in Kafka. Its input is between the committed and the "
            "planned batch that 'pyspark-kafka offsets show CHECKPOINT' shows. Write the missing "
            "records by other means. Then replace 'prepared' by 'committed' in "
            f"'{self._log}/{number}' and start the query: it continues with the next batch.",
        )

    def _unknown(self, number: int, prepared: SinkLogEntry, ends: Ends) -> TransactionLostError:
        """Return the error for a batch that may be committed or not."""
        unclear = [each for each, end in ends.items() if end in _UNCLEAR]
        forgotten = TransactionEnd.FORGOTTEN in ends.values()
        return TransactionLostError(
            [each.transactional_id for each in unclear],
            FORGOTTEN if forgotten else "producers that began later have their transactional ids",
            f"It is unknown whether batch {prepared.batch_id} was committed before. Wait for "
            "'kafka.transaction.timeout.ms', and look for its records with "
            "'isolation.level=read_committed'. If they are in Kafka, replace 'prepared' by "
            f"'committed' in '{self._log}/{number}', or by 'dropped' if none is, and start the "
            "query: it writes a dropped batch again. If only some are, write the others by other "
            "means first.",
            may_be_committed=True,
        )

    def _newest(self) -> tuple[int, SinkLogEntry]:
        self._read_ms = self._now_ms()
        return newest_entry(self._log, SinkLogEntry.from_bytes) or (-1, _EMPTY_LOG)

    def _require_not_after(self, batch_id: int, number: int, entry: SinkLogEntry) -> None:
        """Raise if an entry would let Spark's last batch, and those before it, be skipped."""
        if _is_handed_over(entry, batch_id):
            raise MetadataLogError(
                f"{self._log}/{number}",
                f"A continuous query has taken over batch {batch_id}, and it alone may finish it. "
                "Start the continuous query once more, and stop it after the batch",
            )
        if entry.batch_id > batch_id:
            raise MetadataLogError(
                f"{self._log}/{number}",
                f"The entry of the sink's log is of batch {entry.batch_id}, and the query's last "
                f"batch is {batch_id}. Nothing was written, committed or aborted. If another "
                "driver uses this checkpoint, stop it. If the checkpoint was restored from a "
                "backup, restore the log as it was then; if it is a new one, delete the log of "
                "the old one",
            )

    def _require_own(self, number: int, entry: SinkLogEntry, query_id: str | None) -> None:
        """Raise if an entry is of another query, or names transactions of others.

        Only open transactions need the prefix: it is an option, which an earlier run may have set
        to another value.
        """
        if entry.query_id is not None and query_id not in (None, entry.query_id):
            raise other_query_error(f"{self._log}/{number}", entry.query_id, query_id)
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
                    f"'{prefix or '<prefix>'}-{query_id or '<query id>'}-<log>-<run>-<task>-"
                    "<lane>-<slot>'",
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
            raise self._overtaken(number)
        if self._now_ms() - self._read_ms > _LONG_MS:
            # Another driver may have written so many entries that this number is free again.
            self._require_newest(number)

    def _require_newest(self, number: int) -> None:
        """Raise if an entry is no longer the last one: its ids may have been used since."""
        latest = self._log.latest()
        if latest is not None and latest[0] > number:
            raise self._overtaken(latest[0])

    def _overtaken(self, number: int) -> MetadataLogError:
        return MetadataLogError(
            str(self._log),
            f"Another driver has written entry {number} of the sink's log. Only one query can "
            "use a checkpoint at a time: stop the other one",
        )


def _is_handed_over(entry: SinkLogEntry, batch_id: int) -> bool:
    """Return whether an entry gives a batch to a continuous query: it drops the one after it."""
    is_empty = entry.state is BatchState.DROPPED and not entry.transactions
    return is_empty and entry.offsets is None and entry.batch_id == batch_id + 1


def _ends(
    transactions: Iterable[Transaction], described: Mapping[str, TransactionDescription]
) -> dict[Transaction, TransactionEnd | None]:
    return {each: end_of(each, described.get(each.transactional_id)) for each in transactions}


def _lost(ends: Ends) -> Lost:
    return {each: end for each, end in ends.items() if end is not None and end not in _DONE}


def _dropped(entry: SinkLogEntry, lost: Lost) -> TransactionLostError:
    """Return the error for a batch that is written again; without ``lost``, it took too long."""
    is_late = not lost or TransactionEnd.TIMED_OUT in lost.values()
    advice = (
        "Set 'kafka.transaction.timeout.ms' to more than a batch takes, up to the brokers' "
        "'transaction.max.timeout.ms', or let batches be smaller"
        if is_late
        else "Make sure that only one driver uses this checkpoint"
    )
    what = _described(lost) or "it took nearly as long as 'kafka.transaction.timeout.ms'"
    return TransactionLostError(
        [each.transactional_id for each in lost or entry.transactions],
        f"batch {entry.batch_id} was dropped before a part of it was committed, because {what}",
        f"No record of the batch is visible, and none is lost. {advice}, and restart the query: it "
        "writes the batch again.",
    )


def _described(lost: Lost) -> str:
    """Return how transactions were lost: each way once, with one of them."""
    by_end = {end: each for each, end in lost.items()}
    return ", and ".join(f"'{each.transactional_id}' {end.value}" for end, each in by_end.items())


def _transactions_of(written: Iterable[WriteResult | None]) -> tuple[Transaction, ...]:
    return tuple(one.transaction for one in written if one and one.transaction is not None)
