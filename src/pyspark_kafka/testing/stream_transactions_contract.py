"""The part of ``StreamClient``'s contract suite about exactly-once delivery."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import pytest

from ..domain.continuous.settings import ContinuousSettings
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..domain.writing.errors import ProducerFencedError, QueryReplacedError
from ..domain.writing.group_seal import GroupOffset, GroupSeal
from ..ports.continuous import PolledRecords
from ..ports.reading import OffsetFetcher
from .stream_task import Function, StreamTask, echo, no_outputs, stream_sink
from .world import COMMITTED, Capability, World, WorldContract, await_until, numbered


@final
@dataclass(frozen=True, slots=True)
class _Query:
    """A query from one topic to another, of two partitions each, and its group."""

    world: World
    group_id: str
    source: str
    target: str
    group: OffsetFetcher

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions of the input."""
        return [TopicPartition(self.source, number) for number in range(2)]

    def produce(self, partition: TopicPartition, start: int, end: int) -> None:
        """Append numbered records to a partition of the input."""
        self.world.produce(partition, numbered(start, end))

    def task(self, function: Function = echo, /, **options: str) -> StreamTask:
        """Return a new task, as another process would have."""
        sink = stream_sink(self.world, self.target, exactly_once=True)
        return StreamTask(self.world.stream_client(sink, self.group_id, **options), function)

    def task_of(self, run_id: str, first_epoch: int) -> StreamTask:
        """Return a new task of a run that began with an epoch."""
        sink = stream_sink(self.world, self.target, exactly_once=True)
        client = self.world.stream_client(sink, self.group_id, run_id, first_epoch)
        return StreamTask(client, echo)

    def seal(self, partition: TopicPartition, offset: int, seal: GroupSeal) -> None:
        """Take the group of a partition over."""
        transactions = self.world.sink_container().transactions()
        begun = transactions.begin(self.transactional_id(partition))
        sealed = GroupOffset(offset, str(seal))
        transactions.commit_offset(begun, self.group_id, partition, sealed)

    def reading(self, *partitions: TopicPartition, function: Function = echo) -> StreamTask:
        """Return a new task that reads partitions for which the group has no offsets."""
        task = self.task(function)
        begin = dict.fromkeys(partitions, 0)
        assert task.assign(begin) == begin
        return task

    def pass_on(self, task: StreamTask, partition: TopicPartition, start: int, end: int) -> None:
        """Produce records, and let a task write and commit their outputs."""
        self.produce(partition, start, end)
        task.process_to({partition: end})

    def transactional_id(self, partition: TopicPartition) -> str:
        """Return the transactional id of a partition of the input."""
        settings = ContinuousSettings(self.group_id)
        return settings.transactional_id(partition.topic, partition.partition)

    def visible(self, number: int) -> list[bytes]:
        """Return the values of an output partition that a reader of committed records sees."""
        rows = self.world.records(TopicPartition(self.target, number), **COMMITTED)
        return [row["value"] for row in rows]

    def await_visible(self, number: int, records: int) -> None:
        """Wait until the outputs of so many records are visible, each once and in order.

        Brokers respond before a transaction has ended.
        """
        expected = [record.value for record in numbered(0, records)]
        await_until(lambda: len(self.visible(number)) >= records)
        assert self.visible(number) == expected

    def committed(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the group's offsets."""
        return self.group.committed(self.group_id, partitions)

    def await_committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Wait until the group has these offsets."""
        await_until(lambda: self.committed(offsets.keys()) == offsets)


class StreamTransactionsContract(WorldContract):
    """Exactly-once delivery with a ``StreamClient``."""

    @pytest.fixture
    def query(self, world: World) -> _Query:
        """Return a query without records."""
        world.require(Capability.CONTINUOUS_TRANSACTIONS, Capability.GROUPS)
        group = world.container().offset_fetcher()
        return _Query(world, world.fresh_name(), world.topic(2), world.topic(2), group)

    def test_acknowledged_outputs_are_visible(self, query: _Query) -> None:
        """A reader of committed records sees them, and the group has the acknowledged offset."""
        partition = query.partitions[1]
        task = query.reading(partition)
        for end in (10, 15, 30):
            query.pass_on(task, partition, task.written.get(partition, 0), end)
            query.await_committed(task.acknowledged)
            query.await_visible(1, end)

    def test_outputs_are_written_in_transactions(self, query: _Query) -> None:
        """Control records stand between the outputs: none is written outside of transactions."""
        partition = query.partitions[0]
        query.pass_on(query.reading(partition), partition, 0, 10)
        query.await_visible(0, 10)
        target = TopicPartition(query.target, 0)
        assert query.group.latest([target])[target] > 10

    def test_the_outputs_of_a_poll_become_visible_together(self, query: _Query) -> None:
        """A reader sees all outputs of polled records, or none."""
        partition = query.partitions[0]
        task = query.reading(partition)
        ends = {0}
        for start in range(0, 50, 10):
            query.produce(partition, start, start + 10)
            for polled in task.poll():
                task.write([polled])
                ends.add(polled.next_offset)
                assert len(query.visible(0)) in ends
        task.settle()
        query.await_visible(0, task.written[partition])

    def test_what_is_not_committed_is_never_visible(self, query: _Query) -> None:
        """Outputs of a closed client are committed with the group's offset, or written again."""
        partition = query.partitions[0]
        query.produce(partition, 0, 10)
        closed = query.reading(partition)
        polled = closed.poll()
        closed.write(polled)
        closed.client.close()
        task = query.task()
        [resumed] = task.assign({partition: 0}).values()
        assert resumed in {0, *(each.next_offset for each in polled)}
        task.process_to({partition: 10})
        query.await_visible(0, 10)

    def test_records_without_outputs_advance_the_group(self, query: _Query) -> None:
        """The group's offset is the input's, even if it has no outputs."""
        partition = query.partitions[0]
        query.pass_on(query.reading(partition, function=no_outputs), partition, 0, 10)
        query.await_committed({partition: 10})

    def test_offsets_without_records_advance_the_group(self, world: World, query: _Query) -> None:
        """The group's offset passes aborted and control records."""
        world.require(Capability.TRANSACTIONS)
        partition = query.partitions[0]
        with world.transaction(commit=False) as write:
            write(partition, numbered(0, 3))
        task = query.task(**COMMITTED)
        task.assign({partition: 0})
        task.process_to({partition: 4})
        query.await_committed({partition: 4})

    @pytest.mark.parametrize(("given", "start"), [(2, 5), (5, 5), (7, 7)])
    def test_reading_starts_at_the_greater_offset(
        self, query: _Query, given: int, start: int
    ) -> None:
        """A partition is read from the group's offset, or from the given one if that is greater."""
        partition, other = query.partitions
        query.produce(partition, 0, 10)
        query.group.commit(query.group_id, PartitionOffsets({partition: 5}))
        task = query.task()
        assert task.assign({partition: given, other: 0}) == {partition: start, other: 0}
        task.read_to({partition: 10})
        assert task.values(partition) == [record.value for record in numbered(start, 10)]

    def test_a_task_may_change_its_offset(self, query: _Query) -> None:
        """Where a partition is assigned again, the given offset replaces the group's."""
        partition, other = query.partitions
        query.produce(partition, 0, 3)
        query.group.commit(query.group_id, PartitionOffsets({partition: 5}))
        task = query.task()
        task.assign({partition: 0, other: 0})
        assert task.assign({partition: 3}) == {partition: 3}
        task.run_until(task.client.is_settled)
        query.await_committed({partition: 3})
        later = query.task()
        assert later.assign({partition: 0}) == {partition: 3}

    def test_another_task_continues_after_what_was_committed(self, query: _Query) -> None:
        """A later task of the partition writes each output that is missing, once."""
        partition = query.partitions[0]
        query.pass_on(query.reading(partition), partition, 0, 10)
        later = query.task()
        assert later.assign({partition: 0}) == {partition: 10}
        query.pass_on(later, partition, 10, 20)
        query.await_visible(0, 20)

    def test_a_task_whose_partition_was_taken_over_is_fenced(self, query: _Query) -> None:
        """Records that it has polled and not written are written by the later task alone."""
        partition = query.partitions[0]
        query.produce(partition, 0, 10)
        zombie = query.reading(partition)
        polled = zombie.poll()
        later = query.reading(partition)
        with pytest.raises(ProducerFencedError, match=query.transactional_id(partition)):
            _write_and_settle(zombie, polled)
        later.process_to({partition: 10})
        query.await_visible(0, 10)

    def test_a_task_is_fenced_with_uncommitted_outputs(self, query: _Query) -> None:
        """Outputs that a task has written are committed before it is fenced, or never."""
        partition = query.partitions[0]
        query.produce(partition, 0, 10)
        zombie = query.reading(partition)
        zombie.write(zombie.poll())
        later = query.task()
        later.assign({partition: 0})
        query.produce(partition, 10, 20)
        with pytest.raises(ProducerFencedError, match=query.transactional_id(partition)):
            _write_and_settle(zombie, zombie.poll())
        later.process_to({partition: 20})
        query.await_visible(0, 20)

    def test_another_client_fences_by_the_transactional_id(
        self, world: World, query: _Query
    ) -> None:
        """Whichever client begins a transaction under a partition's id takes it over."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        partition = query.partitions[0]
        query.produce(partition, 0, 10)
        zombie = query.reading(partition)
        polled = zombie.poll()
        world.sink_container().transactions().begin(query.transactional_id(partition))
        with pytest.raises(ProducerFencedError, match=query.transactional_id(partition)):
            _write_and_settle(zombie, polled)
        assert query.visible(0) == []

    @pytest.mark.parametrize(
        ("seal", "others"),
        [(GroupSeal(batch_id=7), ("other", 7)), (GroupSeal(run_id="run"), ("other", 2))],
        ids=["of a batch", "of a run"],
    )
    def test_a_sealed_group_refuses_the_runs_that_it_excludes(
        self, world: World, query: _Query, seal: GroupSeal, others: tuple[str, int]
    ) -> None:
        """A late task commits nothing, and other runs continue at the group's offset."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        partition = query.partitions[0]
        query.produce(partition, 0, 10)
        zombie = query.task_of("run", 6)
        zombie.assign({partition: 0})
        zombie.poll()
        query.seal(partition, 4, seal)
        for late in (zombie, query.task_of("run", 6)):
            with pytest.raises(QueryReplacedError):
                late.assign({partition: 0})
        assert query.visible(0) == []
        later = query.task_of(*others)
        assert later.assign({partition: 0}) == {partition: 4}
        later.process_to({partition: 10})
        later.client.close()
        # The offsets that it has committed have no seal.
        assert query.task_of(*others).assign({partition: 0}) == {partition: 10}

    def test_a_seal_of_one_partition_is_one_of_the_group(self, world: World, query: _Query) -> None:
        """A late task does not begin a partition that was added after the group was sealed."""
        world.require(Capability.TRANSACTIONAL_WRITES)
        sealed, added = query.partitions
        query.seal(sealed, 4, GroupSeal(batch_id=7))
        # Brokers respond before the offset is committed, and a task does not wait for others'.
        query.await_committed({sealed: 4})
        with pytest.raises(QueryReplacedError):
            query.task_of("run", 6).assign({added: 0})
        assert query.task_of("other", 7).assign({added: 0}) == {added: 0}

    def test_partitions_are_committed_independently(self, query: _Query) -> None:
        """The offset of one input partition does not wait for the outputs of another."""
        first, second = query.partitions
        task = query.reading(first, second)
        query.pass_on(task, first, 0, 10)
        query.await_committed({first: 10})
        assert query.committed([second]) == {}
        query.pass_on(task, second, 0, 5)
        query.await_committed({first: 10, second: 5})
        query.await_visible(0, 10)
        query.await_visible(1, 5)

    def test_a_revoked_partition_is_taken_over_without_fencing_others(self, query: _Query) -> None:
        """A task that gives a partition away continues with the rest."""
        kept, revoked = query.partitions
        for partition in query.partitions:
            query.produce(partition, 0, 10)
        giver, taker = query.reading(kept, revoked), query.task()
        giver.read_to({kept: 10, revoked: 10})
        giver.client.revoke([revoked])
        giver.settle()
        assert taker.assign({revoked: 0}) == {revoked: 10}
        for partition, task in ((kept, giver), (revoked, taker)):
            query.pass_on(task, partition, 10, 20)
        query.await_visible(0, 20)
        query.await_visible(1, 20)

    def test_an_assigned_partition_can_be_assigned_again(self, query: _Query) -> None:
        """A task does not fence itself."""
        partition = query.partitions[0]
        task = query.reading(partition)
        query.pass_on(task, partition, 0, 10)
        assert task.assign({partition: 10}) == {partition: 10}
        query.pass_on(task, partition, 10, 20)
        query.await_visible(0, 20)

    def test_what_is_written_is_committed_before_an_offset_changes(self, query: _Query) -> None:
        """Outputs that are not committed yet are not lost where a task changes the offset."""
        partition = query.partitions[0]
        task = query.reading(partition)
        for end in (5, 10):
            query.produce(partition, end - 5, end)
            task.read_to({partition: end})
        query.produce(partition, 10, 20)
        assert task.assign({partition: 20}) == {partition: 20}
        task.run_until(task.client.is_settled)
        query.await_committed({partition: 20})
        query.await_visible(0, 10)
        query.produce(partition, 10, 15)
        task.process_to({partition: 25})
        query.await_visible(0, 15)

    def test_what_is_written_is_committed_before_a_revoked_partition_returns(
        self, query: _Query
    ) -> None:
        """Outputs of a revoked partition are committed before it is assigned again."""
        partition = query.partitions[0]
        query.produce(partition, 0, 10)
        task = query.reading(partition)
        task.read_to({partition: 10})
        task.client.revoke([partition])
        assert task.assign({partition: 0}) == {partition: 10}
        query.pass_on(task, partition, 10, 20)
        query.await_visible(0, 20)


def _write_and_settle(task: StreamTask, polled: Sequence[PolledRecords]) -> None:
    task.write(polled)
    task.settle()
