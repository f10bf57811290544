"""Transactions, and a writer to them, that break a promise of ``Transactions``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.writing.errors import ProducerFencedError, TransactionLostError
from pyspark_kafka.domain.writing.transaction import (
    Transaction,
    TransactionDescription,
    TransactionState,
)
from pyspark_kafka.ports.writing import Transactions
from pyspark_kafka.testing import TransactionsContract

from . import record_writer
from .adapted_world import AdaptedWorld
from .adapter import PortFaults, suite_with, wrong_with

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.adapters.memory.writing import MemoryTransactions


class Passing(Transactions):
    """Passes every call to other transactions, and keeps what was begun."""

    def __init__(self, transactions: MemoryTransactions) -> None:
        self.transactions = transactions
        self.cluster = transactions._cluster
        self.begun: list[Transaction] = []

    def begin(self, transactional_id: str) -> Transaction:
        self.begun.append(self.transactions.begin(transactional_id))
        return self.begun[-1]

    def commit(self, transaction: Transaction) -> None:
        self.transactions.commit(transaction)

    def abort(self, transaction: Transaction) -> None:
        self.transactions.abort(transaction)

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        return self.transactions.describe(transactional_ids)

    def open_ids(self, prefix: str) -> Sequence[str]:
        return self.transactions.open_ids(prefix)

    def close(self) -> None:
        self.transactions.close()


class OtherIds(Passing):
    """Begins each transaction under an id of its own, and so fences none."""

    def begin(self, transactional_id: str) -> Transaction:
        return super().begin(f"{transactional_id}-{id(self)}-{len(self.begun)}")


class SameEpoch(Passing):
    """Returns an open transaction of an id again."""

    def begin(self, transactional_id: str) -> Transaction:
        newest = self.cluster._transactional_ids.get(transactional_id)
        if newest is not None and newest.is_open:
            return newest.transaction
        return super().begin(transactional_id)


class CommitsTheEarlier(Passing):
    """Commits an open transaction when another one of its id begins."""

    def begin(self, transactional_id: str) -> Transaction:
        newest = self.cluster._transactional_ids.get(transactional_id)
        if newest is not None and newest.is_open:
            self.commit(newest.transaction)
        return super().begin(transactional_id)


class BeginsOnce(Passing):
    """Refuses an id whose transaction has ended."""

    def begin(self, transactional_id: str) -> Transaction:
        newest = self.cluster._transactional_ids.get(transactional_id)
        if newest is not None and not newest.is_open:
            raise ProducerFencedError(transactional_id)
        return super().begin(transactional_id)


class CommitAborts(Passing):
    """Aborts what it is to commit."""

    def commit(self, transaction: Transaction) -> None:
        self.transactions.abort(transaction)


class AbortCommits(Passing):
    """Commits what it is to abort."""

    def abort(self, transaction: Transaction) -> None:
        self.transactions.commit(transaction)


class AbortDoesNothing(Passing):
    """Leaves aborted transactions open."""

    def abort(self, transaction: Transaction) -> None:
        pass


class CommitsOnce(Passing):
    """Takes a transaction that is committed already for one that is lost."""

    def commit(self, transaction: Transaction) -> None:
        self.cluster_number(transaction)
        self.transactions.commit(transaction)

    def cluster_number(self, transaction: Transaction) -> None:
        """Raise unless the transaction is open."""
        try:
            self.cluster.number_of(transaction)
        except ProducerFencedError as error:
            name = transaction.transactional_id
            raise TransactionLostError([name], "it has ended", "Write it again.") from error


class AbortsOnce(CommitsOnce):
    """Fails to abort a transaction that has ended."""

    def commit(self, transaction: Transaction) -> None:
        self.transactions.commit(transaction)

    def abort(self, transaction: Transaction) -> None:
        self.cluster_number(transaction)
        self.transactions.abort(transaction)


class OwnOnly(Passing):
    """Ends only transactions that it has begun."""

    def commit(self, transaction: Transaction) -> None:
        if transaction in self.begun:
            self.transactions.commit(transaction)


class NewestOnly(Passing):
    """Ends the transaction that was begun last, whichever it is given."""

    def abort(self, _transaction: Transaction) -> None:
        self.transactions.abort(self.begun[-1])


class SwallowsLosses(Passing):
    """Does not say that a transaction was aborted before its commit."""

    def commit(self, transaction: Transaction) -> None:
        try:
            self.transactions.commit(transaction)
        except TransactionLostError:
            return


class FirstPartitionOnly(Passing):
    """Commits only one of a transaction's partitions."""

    def commit(self, transaction: Transaction) -> None:
        number = self.cluster.number_of(transaction)
        written = [
            log
            for topic in self.cluster._topics.values()
            for log in topic.logs
            if number in log.open_transactions
        ]
        written[0].end_transaction(number, commit=True)


class RefusesEmpty(Passing):
    """Takes a transaction without records for one that was aborted."""

    def commit(self, transaction: Transaction) -> None:
        number = self.cluster._transactional_ids[transaction.transactional_id].number
        logs = (log for topic in self.cluster._topics.values() for log in topic.logs)
        if not any(record.transaction == number for log in logs for record in log.records):
            raise TransactionLostError([transaction.transactional_id], "it is empty", "Write.")
        self.transactions.commit(transaction)


class ListsNothing(Passing):
    """Knows of no open transaction."""

    def open_ids(self, prefix: str) -> Sequence[str]:
        return []


class ListsOne(Passing):
    """Lists only one of several open transactions."""

    def open_ids(self, prefix: str) -> Sequence[str]:
        return self.transactions.open_ids(prefix)[:1]


class ListsContaining(Passing):
    """Lists open transactions that have the prefix anywhere in their ids."""

    def open_ids(self, prefix: str) -> Sequence[str]:
        return [name for name in self.transactions.open_ids("") if prefix in name]


class ListsAll(Passing):
    """Lists ids whose transactions are not open, too."""

    def open_ids(self, prefix: str) -> Sequence[str]:
        return [name for name in self.cluster._transactional_ids if name.startswith(prefix)]


class _Describes(Passing):
    """Changes each description."""

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        found = self.transactions.describe(transactional_ids)
        return {name: self.changed(described) for name, described in found.items()}

    def changed(self, described: TransactionDescription) -> TransactionDescription:
        """Return another description."""
        raise NotImplementedError


class DescribesUnknown(Passing):
    """Describes ids that no producer has had."""

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        nothing = TransactionDescription(-1, -1, TransactionState.EMPTY, -1, 0)
        found = self.transactions.describe(transactional_ids)
        return dict.fromkeys(transactional_ids, nothing) | dict(found)


class DescribesNoStart(_Describes):
    """Does not say when a transaction began."""

    def changed(self, described: TransactionDescription) -> TransactionDescription:
        return replace(described, started_ms=-1)


class DescribesEndsAsCommits(_Describes):
    """Takes an aborted transaction for a committed one."""

    def changed(self, described: TransactionDescription) -> TransactionDescription:
        if described.state is TransactionState.COMPLETE_ABORT:
            return replace(described, state=TransactionState.COMPLETE_COMMIT)
        return described


class RaisesEpochsByOne(Passing):
    """Raises the epoch as if an earlier transaction had ended before it was fenced."""

    def begin(self, transactional_id: str) -> Transaction:
        before = self.cluster._transactional_ids.get(transactional_id)
        begun = super().begin(transactional_id)
        if before is not None:
            newest = self.cluster._transactional_ids[transactional_id]
            newest.transaction = begun = replace(begun, epoch=before.transaction.epoch + 1)
        return begun


class CloseAborts(Passing):
    """Aborts on closing what it has begun."""

    def close(self) -> None:
        for transaction in self.begun:
            self.transactions.abort(transaction)


class CloseCommits(Passing):
    """Commits on closing what it has begun."""

    def close(self) -> None:
        for transaction in self.begun:
            self.transactions.commit(transaction)


class ClosesOnce(Passing):
    """Fails when it is closed again."""

    is_closed = False

    def close(self) -> None:
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True


class IgnoresFencing(record_writer.Passing):
    """Drops the records of a writer that is fenced."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        try:
            self.writer.write(batch, topic)
        except ProducerFencedError:
            return


def _suite(adapter: type[Passing]) -> type:
    return suite_with(
        TransactionsContract,
        world=lambda: AdaptedWorld("transactions", lambda made, _: adapter(made)),
    )


def _suite_of_writer(adapter: type[record_writer.Passing]) -> type:
    return suite_with(
        TransactionsContract,
        world=lambda: AdaptedWorld("record_writer", lambda made, _: adapter(made)),
    )


_wrong: Final = wrong_with(_suite)
_wrong_writer: Final = wrong_with(_suite_of_writer)


_Suite = TransactionsContract

_WRONG: Final = (
    *_wrong(_Suite.test_records_are_visible_after_another_process_commits, OwnOnly),
    *_wrong(_Suite.test_all_partitions_are_committed, FirstPartitionOnly),
    *_wrong(_Suite.test_transactions_of_several_ids_end_independently, NewestOnly),
    *_wrong(_Suite.test_committing_again_has_no_effect, CommitsOnce, AbortsOnce, CommitAborts),
    *_wrong(
        _Suite.test_aborted_records_are_never_visible,
        *(AbortCommits, AbortDoesNothing, SwallowsLosses),
    ),
    *_wrong(
        _Suite.test_a_later_begin_fences_the_earlier_transaction,
        *(OtherIds, SameEpoch, CommitsTheEarlier),
    ),
    *_wrong(_Suite.test_an_id_is_begun_again_after_each_end, BeginsOnce),
    *_wrong(_Suite.test_an_empty_transaction_can_be_ended, RefusesEmpty),
    *_wrong(
        _Suite.test_open_transactions_are_listed,
        *(ListsNothing, ListsOne, ListsContaining, ListsAll),
    ),
    *_wrong(_Suite.test_an_open_transaction_is_described, DescribesUnknown, DescribesNoStart),
    *_wrong(_Suite.test_an_end_is_described, DescribesEndsAsCommits),
    *_wrong(_Suite.test_a_fenced_transaction_is_described, RaisesEpochsByOne),
    *_wrong(_Suite.test_a_transaction_stays_open_after_close, CloseAborts, CloseCommits),
    *_wrong(_Suite.test_closing_twice_is_allowed, ClosesOnce),
    *_wrong_writer(_Suite.test_a_fenced_writer_raises, IgnoresFencing),
)
FAULTS: Final = PortFaults(_suite(Passing), _WRONG)
