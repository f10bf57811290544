"""The part of ``StreamClient``'s contract suite that writes, with either guarantee."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pytest

from ..domain.topic_partition import TopicPartition
from ..ports.clock import Deadline
from .stream_task import LONG_S, SOON_S, Function, StreamTask, echo, stream_sink
from .world import COMMITTED, Capability, World, await_until, numbered
from .writing_contract import Write, WritingContract, batch_of

OpenTask: TypeAlias = Callable[..., StreamTask]
"""Takes the sink's topic or ``None``, and the function of a task."""


class StreamWritingContract(WritingContract):
    """Writing with a ``StreamClient``."""

    @pytest.fixture
    def partition(self, world: World) -> TopicPartition:
        """Return the second of two partitions, so that mixing them up fails."""
        world.require(Capability.CONTINUOUS)
        return TopicPartition(world.topic(2), 1)

    @pytest.fixture(params=["at-least-once", "exactly-once"])
    def open_task(self, request: pytest.FixtureRequest, world: World) -> OpenTask:
        """Return a function that opens tasks with each delivery guarantee in turn."""
        world.require(Capability.CONTINUOUS)
        exactly_once = request.param == "exactly-once"
        if exactly_once:
            world.require(Capability.CONTINUOUS_TRANSACTIONS)

        def opened(topic: str | None, function: Function) -> StreamTask:
            sink = stream_sink(world, topic, exactly_once=exactly_once)
            return StreamTask(world.stream_client(sink, world.fresh_name()), function)

        return opened

    @pytest.fixture
    def echoing(self, open_task: OpenTask, partition: TopicPartition, target: str) -> StreamTask:
        """Return a task that passes the records of a partition on, from the first one."""
        task = open_task(target, echo)
        task.assign({partition: 0})
        return task

    @pytest.fixture
    def write(self, world: World, open_task: OpenTask) -> Write:
        """Return a function with which a new task writes a batch for one record of its input."""

        def process(topic: str | None, batch: pa.RecordBatch) -> None:
            source = TopicPartition(world.topic(), 0)
            _process_one(world, open_task(topic, lambda _records: [batch]), source)

        return process

    def test_outputs_are_written_in_order_and_once(
        self, world: World, echoing: StreamTask, partition: TopicPartition, target: str
    ) -> None:
        """The outputs of one partition keep their order in a partition of the sink."""
        world.produce(partition, numbered(0, 12_000))
        echoing.read_to({partition: 12_000})
        for start in range(12_000, 12_030, 3):
            world.produce(partition, numbered(start, start + 3))
            echoing.read_to({partition: start + 3})
        echoing.settle()
        written = [row["value"] for row in world.records(TopicPartition(target, 1))]
        assert written == [b"v%d" % number for number in range(12_030)]
        assert world.records(TopicPartition(target, 0)) == []

    def test_partitions_are_written_at_once(
        self, world: World, open_task: OpenTask, target: str
    ) -> None:
        """The outputs of several partitions are all written, each in order."""
        topic = world.topic(2)
        partitions = [TopicPartition(topic, number) for number in range(2)]
        task = open_task(target, echo)
        task.assign(dict.fromkeys(partitions, 0))
        for start in range(0, 50, 10):
            for partition in partitions:
                world.produce(partition, numbered(start, start + 10))
        task.process_to(dict.fromkeys(partitions, 50))
        for partition in partitions:
            rows = world.records(TopicPartition(target, partition.partition))
            assert [row["value"] for row in rows] == task.values(partition)

    def test_several_batches_of_outputs_are_written(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """A function may return batches with other columns each, empty ones, and slices."""
        outputs = [
            batch_of(value=[b"a", b"b"], partition=[0, 0]),
            batch_of(value=[]),
            batch_of(key=[b"k"], value=[b"c"], partition=[0]),
            batch_of(value=[b"-", b"d", b"e", b"-"], partition=[1, 0, 0, 1]).slice(1, 2),
        ]
        _process_one(world, open_task(target, lambda _records: outputs), partition)
        rows = world.records(TopicPartition(target, 0))
        assert [(row["key"], row["value"]) for row in rows] == [
            *((None, b"a"), (None, b"b"), (b"k", b"c"), (None, b"d"), (None, b"e"))
        ]

    def test_an_offset_is_acknowledged_after_all_outputs_before_it(
        self, world: World, echoing: StreamTask, partition: TopicPartition, target: str
    ) -> None:
        """When an offset is acknowledged, the outputs of all records before it are written."""
        output = TopicPartition(target, partition.partition)
        for start in range(0, 30, 3):
            world.produce(partition, numbered(start, start + 3))
            echoing.write(echoing.poll())
            written = len(world.records(output))
            # The offset that was acknowledged before the output was read.
            assert echoing.acknowledged.get(partition, 0) <= written
        echoing.process_to({partition: 30})
        assert echoing.acknowledged == {partition: 30}

    def test_records_without_outputs_are_acknowledged(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """Records without outputs are acknowledged after the earlier ones."""
        outputs = iter(([batch_of(value=[b"v"], partition=[0])], [], []))
        task = open_task(target, lambda _records: next(outputs))
        task.assign({partition: 0})
        for number in range(3):
            world.produce(partition, numbered(number, number + 1))
            task.write(task.poll())
        task.settle()
        assert task.acknowledged == {partition: 3}
        assert len(world.records(TopicPartition(target, 0))) == 1

    def test_a_change_is_returned_once(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """A second call returns only offsets that have changed since the first."""
        other = TopicPartition(world.topic(2), 0)
        task = open_task(target, echo)
        task.assign({partition: 0, other: 0})
        for changed, end in ((partition, 2), (other, 2), (partition, 4)):
            world.produce(changed, numbered(end - 2, end))
            task.process_to({changed: end})
            assert task.client.acknowledged() == {}

    def test_an_acknowledgement_ends_a_poll(
        self, world: World, echoing: StreamTask, partition: TopicPartition
    ) -> None:
        """A poll that has no records returns when something is acknowledged."""
        world.produce(partition, numbered(0, 10))
        echoing.read_to({partition: 10})
        started = time.monotonic()
        while not echoing.client.is_settled():
            assert not echoing.client.poll(LONG_S)
        assert time.monotonic() - started < SOON_S

    def test_records_wait_while_a_caller_takes_none(
        self, world: World, echoing: StreamTask, partition: TopicPartition
    ) -> None:
        """Acknowledgements still come, and no record is lost by the wait."""
        world.produce(partition, numbered(0, 3))
        echoing.write(echoing.poll())
        world.produce(partition, numbered(3, 6))
        deadline = Deadline.after(LONG_S)
        while not echoing.client.is_settled() or not echoing.acknowledged:
            assert not deadline.has_passed
            assert not echoing.client.poll(0.1, takes_records=False)
            echoing.write(())
        echoing.process_to({partition: 6})
        assert echoing.values(partition) == [b"v%d" % number for number in range(6)]

    def test_a_client_is_settled_when_all_outputs_are_acknowledged(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """A client is settled before the first record, and after the last output."""
        task = open_task(target, echo)
        assert task.client.is_settled()
        task.assign({partition: 0})
        assert task.client.is_settled()
        world.produce(partition, numbered(0, 100))
        task.process_to({partition: 100})
        assert len(world.records(TopicPartition(target, partition.partition))) == 100
        assert task.client.is_settled()

    def test_outputs_of_revoked_partitions_are_acknowledged(
        self, world: World, echoing: StreamTask, partition: TopicPartition, target: str
    ) -> None:
        """Outputs written before a revocation are delivered and visible under read_committed."""
        world.produce(partition, numbered(0, 10))
        echoing.read_to({partition: 10})
        echoing.client.revoke([partition])
        echoing.settle()
        assert echoing.acknowledged == {partition: 10}
        output = TopicPartition(target, partition.partition)
        # Brokers respond before a transaction has ended.
        await_until(lambda: len(world.records(output, **COMMITTED)) >= 10)
        rows = world.records(output, **COMMITTED)
        assert [row["value"] for row in rows] == echoing.values(partition)

    def test_a_moved_partition_is_acknowledged_from_its_new_offset_on(
        self, world: World, echoing: StreamTask, partition: TopicPartition
    ) -> None:
        """Acknowledgements of records read before a partition was moved are not returned."""
        world.produce(partition, numbered(0, 10))
        for polled in echoing.poll():
            assert polled.records is not None
            echoing.client.write(polled, echo(polled.records))
        echoing.assign({partition: 5})
        assert echoing.client.acknowledged() == {}
        echoing.process_to({partition: 10})

    def test_records_that_were_polled_before_a_move_are_forgotten(
        self, world: World, echoing: StreamTask, partition: TopicPartition, target: str
    ) -> None:
        """Records that were polled and not written keep nothing from being acknowledged."""
        world.produce(partition, numbered(0, 10))
        echoing.poll()
        assert echoing.client.acknowledged() == {}
        echoing.assign({partition: 5})
        echoing.process_to({partition: 10})
        rows = world.records(TopicPartition(target, partition.partition))
        assert [row["value"] for row in rows] == [b"v%d" % number for number in range(5, 10)]

    def test_records_are_acknowledged_without_a_sink(
        self, world: World, partition: TopicPartition
    ) -> None:
        """A function that returns nothing needs no sink."""
        world.produce(partition, numbered(0, 10))
        task = StreamTask(world.stream_client(None))
        task.assign({partition: 0})
        task.process_to({partition: 10})
        assert task.acknowledged == {partition: 10}

    def test_a_client_can_be_closed_before_it_is_settled(
        self, world: World, echoing: StreamTask, partition: TopicPartition
    ) -> None:
        """Outputs that were written and not acknowledged do not keep a client from closing."""
        world.produce(partition, numbered(0, 1_000))
        echoing.write(echoing.poll())
        started = time.monotonic()
        for _ in range(2):
            echoing.client.close()
        assert time.monotonic() - started < SOON_S


def _process_one(world: World, task: StreamTask, partition: TopicPartition) -> None:
    """Process one record, and wait for its outputs."""
    world.produce(partition, numbered(0, 1))
    task.assign({partition: 0})
    task.process_to({partition: 1})
    assert task.acknowledged == {partition: 1}
