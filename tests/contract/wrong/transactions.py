from dataclasses import replace
from typing import Final
from uuid import uuid4

from pyspark_kafka.domain.writing.errors import ProducerFencedError, TransactionLostError
from pyspark_kafka.domain.writing.group_seal import GroupOffset
from pyspark_kafka.domain.writing.transaction import TransactionDescription, TransactionState
from pyspark_kafka.ports.writing import Transactions
from pyspark_kafka.testing import TransactionsContract

from . import record_writer
from .adapted_world import AdaptedWorld
from .adapter import Faults, PassesOn, suite_with


class Passing(PassesOn, Transactions):
    """Passes every call to other transactions."""

    @property
    def cluster(self):
        return self.world.cluster


def _suite(adapter: type[Passing]) -> type:
    return suite_with(TransactionsContract, world=lambda: AdaptedWorld("transactions", adapter))


def _suite_of_writer(adapter: type[record_writer.Passing]) -> type:
    return suite_with(TransactionsContract, world=lambda: AdaptedWorld("record_writer", adapter))


_Suite = TransactionsContract

wrong: Final = Faults(Passing, _suite)
wrong_writer: Final = Faults(record_writer.Passing, _suite_of_writer)


@wrong(_Suite.test_a_later_begin_fences_the_earlier_transaction, "begin")
def begins_each_transaction_under_an_id_of_its_own_and_so_fences_none(self, transactional_id):
    return self.inner.begin(f"{transactional_id}-{uuid4()}")


@wrong(_Suite.test_an_id_is_begun_again_after_each_end, "begin")
def refuses_an_id_whose_transaction_has_ended(self, transactional_id):
    newest = self.cluster._transactional_ids.get(transactional_id)
    if newest is not None and not newest.is_open:
        raise ProducerFencedError(transactional_id)
    return self.inner.begin(transactional_id)


@wrong(_Suite.test_a_groups_offset_is_committed_with_its_text, "committed")
def knows_no_text_of_a_groups_offset(self, group_id, partitions, **given):
    found = self.inner.committed(group_id, partitions, **given)
    return {partition: GroupOffset(each.offset) for partition, each in found.items()}


@wrong(_Suite.test_a_groups_offset_is_read_without_waiting, "committed")
def finds_no_offset_without_waiting(self, group_id, partitions, *, is_stable=True):
    return self.inner.committed(group_id, partitions) if is_stable else {}


@wrong(_Suite.test_a_fenced_transaction_commits_no_groups_offset, "commit_offset")
def commits_a_groups_offset_outside_of_the_transaction(
    self, _transaction, group_id, partition, offset
):
    self.cluster.commit(group_id, {partition: offset.offset}, offset.metadata)


@wrong(_Suite.test_committing_again_has_no_effect, "commit")
def aborts_what_it_is_to_commit(self, transaction):
    self.inner.abort(transaction)


@wrong(_Suite.test_aborted_records_are_never_visible, "abort")
def commits_what_it_is_to_abort(self, transaction):
    self.inner.commit(transaction)


@wrong(_Suite.test_committing_again_has_no_effect, "commit")
def takes_a_transaction_that_is_committed_already_for_one_that_is_lost(self, transaction):
    try:
        self.cluster.number_of(transaction)
    except ProducerFencedError as error:
        name = transaction.transactional_id
        raise TransactionLostError([name], "it has ended", "Write it again.") from error
    self.inner.commit(transaction)


@wrong(_Suite.test_records_are_visible_after_another_process_commits)
class EndsItsOwn(Passing):
    """Ends only transactions that it has begun."""

    def begin(self, transactional_id):
        begun = self.inner.begin(transactional_id)
        self.seen[begun] = None
        return begun

    def commit(self, transaction):
        if transaction in self.seen:
            self.inner.commit(transaction)


@wrong(_Suite.test_transactions_of_several_ids_end_independently)
class EndsTheLast(EndsItsOwn):
    """Ends the transaction that was begun last, whichever it is given."""

    def abort(self, _transaction):
        self.inner.abort(list(self.seen)[-1])


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
    self.inner.commit(transaction)


@wrong(_Suite.test_transactions_are_found_by_their_state, "find")
def finds_transactions_in_any_state(self, prefix, state):
    states = (state, TransactionState.EMPTY)
    return {name: each for one in states for name, each in self.inner.find(prefix, one).items()}


@wrong(_Suite.test_an_open_transaction_is_described, "describe")
def describes_ids_that_no_producer_has_had(self, transactional_ids):
    nothing = TransactionDescription(-1, -1, TransactionState.EMPTY, -1, 0)
    found = self.inner.describe(transactional_ids)
    return dict.fromkeys(transactional_ids, nothing) | dict(found)


@wrong(_Suite.test_an_end_is_described, "describe")
def takes_an_aborted_transaction_for_a_committed_one(self, transactional_ids):
    committed = TransactionState.COMPLETE_COMMIT
    return {
        name: replace(each, state=committed)
        if each.state is TransactionState.COMPLETE_ABORT
        else each
        for name, each in self.inner.describe(transactional_ids).items()
    }


@wrong(_Suite.test_a_fenced_transaction_is_described, "begin")
def raises_epochs_by_one(self, transactional_id):
    """Raises the epoch as if an earlier transaction had ended before it was fenced."""
    before = self.cluster._transactional_ids.get(transactional_id)
    begun = self.inner.begin(transactional_id)
    if before is not None:
        newest = self.cluster._transactional_ids[transactional_id]
        newest.transaction = begun = replace(begun, epoch=before.transaction.epoch + 1)
    return begun


@wrong(_Suite.test_a_transaction_stays_open_after_close)
class AbortsOnClose(EndsItsOwn):
    """Aborts on closing what it has begun."""

    def close(self):
        for transaction in self.seen:
            self.inner.abort(transaction)


wrong.fails_when_closed_twice(_Suite.test_closing_twice_is_allowed)
wrong_writer.drops_error(_Suite.test_a_fenced_writer_raises, "write", ProducerFencedError)
