"""What every ``Transactions`` owes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ..domain.errors import ProducerFencedError, TransactionLostError
from ..domain.offset_range import OffsetRange
from ..domain.projection import ALL_COLUMNS
from ..domain.topic_partition import TopicPartition
from .waiting import await_until
from .world_contract import COMMITTED, WorldContract

if TYPE_CHECKING:
    from ..domain.transaction import Transaction
    from ..ports.record_writer import RecordWriter
    from ..ports.transactions import Transactions
    from .world import World


def _write(writer: RecordWriter, transaction: Transaction, topic: str, value: bytes) -> None:
    writer.enlist(transaction)
    writer.write(pa.RecordBatch.from_pydict({"value": [value]}), topic)
    writer.flush()


def _visible(world: World, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    container = world.container(**COMMITTED)
    latest = container.offset_fetcher().latest([partition])[partition]
    batches = container.record_reader().read(OffsetRange(partition, 0, latest), ALL_COLUMNS)
    return [value for batch in batches for value in batch["value"].to_pylist()]


class TransactionsContract(WorldContract):
    """Holds a ``Transactions``, and the writer of the same client, to its contract.

    A subclass gives in the fixture ``world`` the cluster, and the client.
    """

    @pytest.fixture
    def transactions(self, world: World) -> Transactions:
        """Give what is held to the contract."""
        made: Transactions = world.sink_container().transactions()
        return made

    @pytest.fixture
    def elsewhere(self, world: World) -> Transactions:
        """Give another one, which knows nothing of what the first has begun."""
        made: Transactions = world.sink_container().transactions()
        return made

    @pytest.fixture
    def writer(self, world: World) -> RecordWriter:
        """Give the client's writer."""
        made: RecordWriter = world.sink_container().record_writer()
        return made

    @pytest.fixture
    def topic(self, world: World) -> str:
        """Give a topic of one partition."""
        return world.topic()

    def test_records_are_seen_once_another_process_commits(
        self,
        world: World,
        transactions: Transactions,
        elsewhere: Transactions,
        writer: RecordWriter,
        topic: str,
    ) -> None:
        """What is open cannot be seen, and whoever holds a transaction can commit it."""
        opened = transactions.begin(world.fresh_name())
        _write(writer, opened, topic, b"v")
        assert _visible(world, topic) == []
        elsewhere.commit(opened)
        await_until(lambda: _visible(world, topic) == [b"v"])

    def test_committing_again_changes_nothing(
        self,
        world: World,
        transactions: Transactions,
        elsewhere: Transactions,
        writer: RecordWriter,
        topic: str,
    ) -> None:
        """Who does not know whether a commit arrived asks for it once more."""
        opened = transactions.begin(world.fresh_name())
        _write(writer, opened, topic, b"v")
        for one in (transactions, elsewhere, transactions):
            one.commit(opened)
        elsewhere.abort(opened)
        await_until(lambda: _visible(world, topic) == [b"v"])

    def test_what_is_aborted_is_never_seen(
        self,
        world: World,
        transactions: Transactions,
        elsewhere: Transactions,
        writer: RecordWriter,
        topic: str,
    ) -> None:
        """Aborting twice is no error, and committing afterwards is one."""
        opened = transactions.begin(world.fresh_name())
        _write(writer, opened, topic, b"aborted")
        for _ in range(2):
            elsewhere.abort(opened)
        with pytest.raises(TransactionLostError):
            transactions.commit(opened)
        after = transactions.begin(world.fresh_name())
        _write(writer, after, topic, b"v")
        transactions.commit(after)
        await_until(lambda: _visible(world, topic) == [b"v"])

    def test_a_later_begin_shuts_the_earlier_one_out(
        self,
        world: World,
        transactions: Transactions,
        elsewhere: Transactions,
        writer: RecordWriter,
        topic: str,
    ) -> None:
        """The earlier transaction of an id is aborted, and neither written to nor committed."""
        name = world.fresh_name()
        earlier = transactions.begin(name)
        _write(writer, earlier, topic, b"earlier")
        later = elsewhere.begin(name)
        assert later != earlier
        with pytest.raises(TransactionLostError):
            transactions.commit(earlier)
        transactions.abort(earlier)
        _write(writer, later, topic, b"later")
        transactions.commit(later)
        await_until(lambda: _visible(world, topic) == [b"later"])

    def test_a_writer_that_is_shut_out_is_told(
        self, world: World, transactions: Transactions, writer: RecordWriter, topic: str
    ) -> None:
        """The transactional id is named."""
        name = world.fresh_name()
        earlier = transactions.begin(name)
        transactions.begin(name)
        with pytest.raises(ProducerFencedError, match=name):
            _write(writer, earlier, topic, b"v")

    def test_an_empty_transaction_can_be_ended(
        self, world: World, transactions: Transactions
    ) -> None:
        """A transaction to which nothing was written ends either way."""
        transactions.abort(transactions.begin(world.fresh_name()))

    def test_what_was_abandoned_is_aborted(
        self,
        world: World,
        transactions: Transactions,
        elsewhere: Transactions,
        writer: RecordWriter,
        topic: str,
    ) -> None:
        """Open transactions whose ids begin so are shut out, and no others."""
        prefix = world.fresh_name()
        abandoned = transactions.begin(f"{prefix}-1")
        _write(writer, abandoned, topic, b"abandoned")
        other = transactions.begin(world.fresh_name())
        _write(writer, other, topic, b"other")
        elsewhere.abort_abandoned(f"{prefix}-")
        transactions.commit(other)
        await_until(lambda: _visible(world, topic) == [b"other"])
        with pytest.raises(TransactionLostError):
            transactions.commit(abandoned)

    def test_closing_twice_does_no_harm(self, transactions: Transactions) -> None:
        """The second call of close does nothing."""
        transactions.close()
        transactions.close()
