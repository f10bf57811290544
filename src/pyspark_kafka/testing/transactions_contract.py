"""The contract suite of ``Transactions``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import pyarrow as pa
import pytest

from ..domain.topic_partition import TopicPartition
from ..domain.writing.errors import ProducerFencedError, TransactionLostError
from ..domain.writing.group_seal import GroupOffset
from ..domain.writing.transaction import Transaction, TransactionEnd, TransactionState, end_of
from ..ports.clock import epoch_ms
from ..ports.writing import RecordWriter, Transactions
from .world import COMMITTED, Capability, World, WorldContract, await_until


@final
@dataclass(frozen=True, slots=True)
class _Sides:
    """Two processes that exchange their transactions, and a topic."""

    world: World
    transactions: Transactions
    elsewhere: Transactions
    writer: RecordWriter
    topic: str

    def write(self, transaction: Transaction, value: bytes) -> None:
        """Write a record into a transaction."""
        self.writer.join_transaction(transaction)
        self.writer.write(pa.RecordBatch.from_pydict({"value": [value]}), self.topic)
        self.writer.flush()

    def visible(self) -> list[bytes]:
        """Return the values that a reader under ``read_committed`` sees."""
        rows = self.world.records(TopicPartition(self.topic, 0), **COMMITTED)
        return [row["value"] for row in rows]

    def await_visible(self, *values: bytes) -> None:
        """Wait until exactly these are visible: brokers respond before a transaction has ended."""
        await_until(lambda: self.visible() == list(values))


class TransactionsContract(WorldContract):
    """The contract of ``Transactions`` and the same client's writer.

    A subclass overrides the fixture ``world``.
    """

    @pytest.fixture
    def transactions(self, world: World) -> Transactions:
        """Return the transactions under test."""
        made: Transactions = world.sink_container().transactions()
        return made

    @pytest.fixture
    def sides(self, world: World, transactions: Transactions) -> _Sides:
        """Return two processes, and the client's writer to a topic of one partition."""
        return _Sides(
            world,
            transactions,
            world.sink_container().transactions(),
            world.sink_container().record_writer(),
            world.topic(),
        )

    def test_records_are_visible_after_another_process_commits(self, sides: _Sides) -> None:
        """Open transactions are invisible, and any process can commit them."""
        opened = sides.transactions.begin(sides.world.fresh_name())
        sides.write(opened, b"v")
        assert sides.visible() == []
        sides.elsewhere.commit(opened)
        sides.await_visible(b"v")

    def test_all_partitions_are_committed(self, sides: _Sides) -> None:
        """The records of a transaction in several topics and partitions become visible."""
        topics = [sides.topic, sides.world.topic(2)]
        partitions = [TopicPartition(topics[0], 0), *(TopicPartition(topics[1], n) for n in (0, 1))]
        opened = sides.transactions.begin(sides.world.fresh_name())
        sides.writer.join_transaction(opened)
        for each in partitions:
            batch = pa.RecordBatch.from_pydict({"value": [b"v"], "partition": [each.partition]})
            sides.writer.write(batch, each.topic)
        sides.writer.flush()
        sides.elsewhere.commit(opened)
        await_until(
            lambda: all(len(sides.world.records(each, **COMMITTED)) == 1 for each in partitions)
        )

    def test_transactions_of_several_ids_end_independently(self, sides: _Sides) -> None:
        """Each call ends the transaction that it is given, also if others began since."""
        first, second, third = (
            sides.transactions.begin(sides.world.fresh_name()) for _ in range(3)
        )
        for number, transaction in enumerate((first, second, third)):
            sides.write(transaction, b"%d" % number)
        sides.transactions.abort(first)
        sides.transactions.commit(third)
        sides.elsewhere.commit(second)
        sides.await_visible(b"1", b"2")

    def test_committing_again_has_no_effect(self, sides: _Sides) -> None:
        """A commit can be repeated if its first response was lost."""
        opened = sides.transactions.begin(sides.world.fresh_name())
        sides.write(opened, b"v")
        for one in (sides.transactions, sides.elsewhere, sides.transactions):
            one.commit(opened)
        sides.elsewhere.abort(opened)
        sides.await_visible(b"v")

    def test_aborted_records_are_never_visible(self, sides: _Sides) -> None:
        """Aborting twice is allowed, and committing afterwards is an error."""
        opened = sides.transactions.begin(sides.world.fresh_name())
        sides.write(opened, b"aborted")
        for _ in range(2):
            sides.elsewhere.abort(opened)
        with pytest.raises(TransactionLostError):
            sides.transactions.commit(opened)
        after = sides.transactions.begin(sides.world.fresh_name())
        sides.write(after, b"v")
        sides.transactions.commit(after)
        sides.await_visible(b"v")

    def test_a_later_begin_fences_the_earlier_transaction(self, sides: _Sides) -> None:
        """The earlier transaction of an id is aborted, and refuses writes and commits."""
        name = sides.world.fresh_name()
        earlier = sides.transactions.begin(name)
        sides.write(earlier, b"earlier")
        later = sides.elsewhere.begin(name)
        assert later != earlier
        with pytest.raises(TransactionLostError):
            sides.transactions.commit(earlier)
        sides.transactions.abort(earlier)
        sides.write(later, b"later")
        sides.transactions.commit(later)
        sides.await_visible(b"later")

    def test_a_fenced_writer_raises(self, sides: _Sides) -> None:
        """The error names the transactional id."""
        name = sides.world.fresh_name()
        earlier = sides.transactions.begin(name)
        sides.transactions.begin(name)
        with pytest.raises(ProducerFencedError, match=name):
            sides.write(earlier, b"v")

    def test_an_id_is_begun_again_after_each_end(self, sides: _Sides) -> None:
        """A committed transaction stays visible, and an aborted one invisible."""
        name = sides.world.fresh_name()
        for number in range(4):
            opened = sides.transactions.begin(name)
            sides.write(opened, b"%d" % number)
            end = sides.transactions.abort if number % 2 else sides.transactions.commit
            end(opened)
        sides.await_visible(b"0", b"2")

    @pytest.mark.parametrize("commit", [True, False])
    def test_an_empty_transaction_can_be_ended(self, sides: _Sides, *, commit: bool) -> None:
        """A transaction without records can be committed and aborted, also again."""
        if commit:
            sides.world.require(Capability.DESCRIBED_TRANSACTIONS)
        name = sides.world.fresh_name()
        opened = sides.transactions.begin(name)
        for one in (sides.transactions, sides.elsewhere):
            (one.commit if commit else one.abort)(opened)
        later = sides.transactions.begin(name)
        sides.write(later, b"v")
        sides.transactions.commit(later)
        sides.await_visible(b"v")

    def test_transactions_are_found_by_their_state(self, sides: _Sides) -> None:
        """The result has the transactions whose ids have the prefix, described, and no others."""
        sides.world.require(Capability.DESCRIBED_TRANSACTIONS)
        prefix = sides.world.fresh_name()
        names = f"{prefix}-committed", f"{prefix}-1", f"{prefix}-2", f"other-{prefix}-3", prefix
        committed, *others = (sides.transactions.begin(name) for name in names)
        sides.transactions.begin(f"{prefix}-empty")
        for transaction in (committed, *others):
            sides.write(transaction, transaction.transactional_id.encode())
        sides.transactions.commit(committed)
        sides.await_visible(names[0].encode())
        opened = sides.elsewhere.find(f"{prefix}-", TransactionState.ONGOING)
        assert opened == sides.transactions.describe(names[1:3])
        ended = sides.elsewhere.find(f"{prefix}-", TransactionState.COMPLETE_COMMIT)
        assert ended == sides.transactions.describe(names[:1])

    def test_an_open_transaction_is_described(self, sides: _Sides) -> None:
        """The description has the producer, state, time-out and, after a record, the start time."""
        sides.world.require(Capability.DESCRIBED_TRANSACTIONS)
        name, unknown = sides.world.fresh_name(), sides.world.fresh_name()
        assert sides.transactions.describe([name, unknown]) == {}
        opened = sides.transactions.begin(name)
        [(described, empty)] = sides.elsewhere.describe([name, unknown]).items()
        assert (described, empty.state, empty.started_ms) == (name, TransactionState.EMPTY, -1)
        assert (empty.producer_id, empty.epoch) == (opened.producer_id, opened.epoch)
        assert end_of(opened, empty) is None
        before_ms = epoch_ms()
        sides.write(opened, b"v")
        ongoing = sides.elsewhere.describe([name])[name]
        assert end_of(opened, ongoing) is None
        assert (ongoing.state, ongoing.is_open) == (TransactionState.ONGOING, True)
        assert before_ms <= ongoing.started_ms <= epoch_ms()
        assert ongoing.timeout_ms > 0

    @pytest.mark.parametrize("commit", [True, False])
    def test_an_end_is_described(self, sides: _Sides, *, commit: bool) -> None:
        """The description has the start time; a later transaction replaces the end."""
        sides.world.require(Capability.DESCRIBED_TRANSACTIONS)
        name = sides.world.fresh_name()
        opened = sides.transactions.begin(name)
        sides.write(opened, b"v")
        began_ms = sides.transactions.describe([name])[name].started_ms
        (sides.transactions.commit if commit else sides.transactions.abort)(opened)
        await_until(lambda: not sides.transactions.describe([name])[name].is_open)
        ended = sides.transactions.describe([name])[name]
        expected = TransactionEnd.COMMITTED if commit else TransactionEnd.ABORTED
        assert (end_of(opened, ended), ended.started_ms) == (expected, began_ms)
        later = sides.elsewhere.begin(name)
        replaced = sides.transactions.describe([name])[name]
        assert end_of(opened, replaced) is TransactionEnd.REPLACED
        assert (end_of(later, replaced), replaced.started_ms) == (None, -1)

    def test_a_fenced_transaction_is_described(self, sides: _Sides) -> None:
        """A fenced transaction differs from one that had ended before its id was taken."""
        sides.world.require(Capability.DESCRIBED_TRANSACTIONS)
        name = sides.world.fresh_name()
        opened = sides.transactions.begin(name)
        sides.write(opened, b"v")
        later = sides.elsewhere.begin(name)
        described = sides.transactions.describe([name])[name]
        assert end_of(opened, described) is TransactionEnd.FENCED
        assert end_of(later, described) is None
        with pytest.raises(ProducerFencedError, match=name):
            sides.write(opened, b"too late")
        with pytest.raises(TransactionLostError):
            sides.transactions.commit(opened)

    def test_a_groups_offset_is_committed_with_its_text(self, sides: _Sides) -> None:
        """Another process reads both; partitions without an offset are missing."""
        sides.world.require(Capability.GROUPS)
        group, name = sides.world.fresh_name(), sides.world.fresh_name()
        partition, other = TopicPartition(sides.topic, 0), TopicPartition(sides.world.topic(), 0)
        assert sides.elsewhere.committed(group, [partition, other]) == {}
        for offset in (GroupOffset(7, "first"), GroupOffset(9), GroupOffset(3, "third")):
            begun = sides.transactions.begin(name)
            sides.transactions.commit_offset(begun, group, partition, offset)
            assert sides.elsewhere.committed(group, [partition, other]) == {partition: offset}

    def test_a_groups_offset_is_read_without_waiting(self, sides: _Sides) -> None:
        """Several calls have one deadline, and an offset may be read that is about to change."""
        sides.world.require(Capability.GROUPS)
        group, name = sides.world.fresh_name(), sides.world.fresh_name()
        partition, offset = TopicPartition(sides.topic, 0), GroupOffset(7, "text")
        with sides.transactions.one_deadline():
            begun = sides.transactions.begin(name)
            sides.transactions.commit_offset(begun, group, partition, offset)
            assert sides.transactions.committed(group, [partition]) == {partition: offset}
        found = sides.elsewhere.committed(group, [partition], is_stable=False)
        assert found == {partition: offset}

    def test_a_fenced_transaction_commits_no_groups_offset(self, sides: _Sides) -> None:
        """A later transaction of the id has taken the partition over."""
        sides.world.require(Capability.GROUPS)
        group, name = sides.world.fresh_name(), sides.world.fresh_name()
        partition = TopicPartition(sides.topic, 0)
        earlier = sides.transactions.begin(name)
        later = sides.elsewhere.begin(name)
        with pytest.raises(ProducerFencedError, match=name):
            sides.transactions.commit_offset(earlier, group, partition, GroupOffset(7))
        assert sides.elsewhere.committed(group, [partition]) == {}
        sides.elsewhere.commit_offset(later, group, partition, GroupOffset(8))
        assert sides.transactions.committed(group, [partition]) == {partition: GroupOffset(8)}

    def test_a_transaction_stays_open_after_close(self, sides: _Sides) -> None:
        """Closing neither commits nor aborts a transaction that another process is to end."""
        opened = sides.transactions.begin(sides.world.fresh_name())
        sides.write(opened, b"v")
        sides.transactions.close()
        assert sides.visible() == []
        sides.elsewhere.commit(opened)
        sides.await_visible(b"v")

    def test_closing_twice_is_allowed(self, transactions: Transactions) -> None:
        """A second call of close has no effect."""
        transactions.close()
        transactions.close()
