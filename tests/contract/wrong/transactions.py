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
from .adapter import Faults, suite_with

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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


_Suite = TransactionsContract

wrong: Final = Faults(Passing, _suite)
wrong_writer: Final = Faults(record_writer.Passing, _suite_of_writer)


@wrong(_Suite.test_a_later_begin_fences_the_earlier_transaction, "begin")
def begins_each_transaction_under_an_id_of_its_own_and_so_fences_none(self, transactional_id):
    return Passing.begin(self, f"{transactional_id}-{id(self)}-{len(self.begun)}")


@wrong(_Suite.test_an_id_is_begun_again_after_each_end, "begin")
def refuses_an_id_whose_transaction_has_ended(self, transactional_id):
    newest = self.cluster._transactional_ids.get(transactional_id)
    if newest is not None and not newest.is_open:
        raise ProducerFencedError(transactional_id)
    return Passing.begin(self, transactional_id)


@wrong(_Suite.test_committing_again_has_no_effect, "commit")
def aborts_what_it_is_to_commit(self, transaction):
    self.transactions.abort(transaction)


@wrong(_Suite.test_aborted_records_are_never_visible, "abort")
def commits_what_it_is_to_abort(self, transaction):
    self.transactions.commit(transaction)


@wrong(_Suite.test_committing_again_has_no_effect)
class CommitsOnce(Passing):
    """Takes a transaction that is committed already for one that is lost."""

    def commit(self, transaction):
        self.cluster_number(transaction)
        self.transactions.commit(transaction)

    def cluster_number(self, transaction):
        """Raise unless the transaction is open."""
        try:
            self.cluster.number_of(transaction)
        except ProducerFencedError as error:
            name = transaction.transactional_id
            raise TransactionLostError([name], "it has ended", "Write it again.") from error


@wrong(_Suite.test_records_are_visible_after_another_process_commits, "commit")
def ends_only_transactions_that_it_has_begun(self, transaction):
    if transaction in self.begun:
        self.transactions.commit(transaction)


@wrong(_Suite.test_transactions_of_several_ids_end_independently, "abort")
def ends_the_transaction_that_was_begun_last_whichever_it_is_given(self, _transaction):
    self.transactions.abort(self.begun[-1])


@wrong(_Suite.test_all_partitions_are_committed, "commit")
def commits_only_one_of_a_transactions_partitions(self, transaction):
    number = self.cluster.number_of(transaction)
    written = [
        log
        for topic in self.cluster._topics.values()
        for log in topic.logs
        if number in log.open_transactions
    ]
    written[0].end_transaction(number, commit=True)


@wrong(_Suite.test_an_empty_transaction_can_be_ended, "commit")
def takes_a_transaction_without_records_for_one_that_was_aborted(self, transaction):
    number = self.cluster._transactional_ids[transaction.transactional_id].number
    logs = (log for topic in self.cluster._topics.values() for log in topic.logs)
    if not any(record.transaction == number for log in logs for record in log.records):
        raise TransactionLostError([transaction.transactional_id], "it is empty", "Write.")
    self.transactions.commit(transaction)


@wrong(_Suite.test_open_transactions_are_listed, "open_ids")
def knows_of_no_open_transaction(self, prefix):
    return []


class _Describes(Passing):
    """Changes each description."""

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        found = self.transactions.describe(transactional_ids)
        return {name: self.changed(described) for name, described in found.items()}

    def changed(self, described: TransactionDescription) -> TransactionDescription:
        """Return another description."""
        raise NotImplementedError


@wrong(_Suite.test_an_open_transaction_is_described, "describe")
def describes_ids_that_no_producer_has_had(self, transactional_ids):
    nothing = TransactionDescription(-1, -1, TransactionState.EMPTY, -1, 0)
    found = self.transactions.describe(transactional_ids)
    return dict.fromkeys(transactional_ids, nothing) | dict(found)


@wrong(_Suite.test_an_end_is_described)
class DescribesEndsAsCommits(_Describes):
    """Takes an aborted transaction for a committed one."""

    def changed(self, described):
        if described.state is TransactionState.COMPLETE_ABORT:
            return replace(described, state=TransactionState.COMPLETE_COMMIT)
        return described


@wrong(_Suite.test_a_fenced_transaction_is_described, "begin")
def raises_epochs_by_one(self, transactional_id):
    """Raises the epoch as if an earlier transaction had ended before it was fenced."""
    before = self.cluster._transactional_ids.get(transactional_id)
    begun = Passing.begin(self, transactional_id)
    if before is not None:
        newest = self.cluster._transactional_ids[transactional_id]
        newest.transaction = begun = replace(begun, epoch=before.transaction.epoch + 1)
    return begun


@wrong(_Suite.test_a_transaction_stays_open_after_close, "close")
def aborts_on_closing_what_it_has_begun(self):
    for transaction in self.begun:
        self.transactions.abort(transaction)


@wrong(_Suite.test_closing_twice_is_allowed)
class ClosesOnce(Passing):
    """Fails when it is closed again."""

    is_closed = False

    def close(self):
        if self.is_closed:
            raise RuntimeError("it is closed")
        self.is_closed = True


@wrong_writer(_Suite.test_a_fenced_writer_raises, "write")
def drops_the_records_of_a_writer_that_is_fenced(self, batch, topic=None):
    try:
        self.writer.write(batch, topic)
    except ProducerFencedError:
        return
