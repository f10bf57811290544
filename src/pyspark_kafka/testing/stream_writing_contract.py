"""The part of ``StreamClient``'s contract suite that writes, with either guarantee."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import TypeAlias

import pytest

from ..domain.errors import (
    InvalidRecordError,
    NullTopicError,
    RecordDeliveryError,
    RecordTooLargeError,
    UnknownTopicError,
)
from ..domain.topic_partition import TopicPartition
from ..ports.deadline import Deadline
from .outputs import KEYS, MIXED_HEADERS, batch_of, keys_of_partition
from .stream_task import LONG_S, SOON_S, Function, StreamTask, echo, stream_sink
from .world import COMMITTED, Capability, World, WorldContract, await_until, numbered

OpenTask: TypeAlias = Callable[..., StreamTask]
"""Takes the sink's topic or ``None``, and the function of a task."""


class StreamWritingContract(WorldContract):
    """Writing with a ``StreamClient``."""

    @pytest.fixture
    def partition(self, world: World) -> TopicPartition:
        """Return the second of two partitions, so that mixing them up fails."""
        world.require(Capability.CONTINUOUS)
        return TopicPartition(world.topic(2), 1)

    @pytest.fixture
    def target(self, world: World) -> str:
        """Return the sink's topic, of two partitions."""
        return world.topic(2)

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

    def test_outputs_are_written_in_order_and_once(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """The outputs of one partition keep their order in a partition of the sink."""
        world.produce(partition, numbered(0, 12_000))
        task = open_task(target, echo)
        task.assign({partition: 0})
        task.read_to({partition: 12_000})
        for start in range(12_000, 12_030, 3):
            world.produce(partition, numbered(start, start + 3))
            task.read_to({partition: start + 3})
        task.settle()
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
        task.read_to(dict.fromkeys(partitions, 50))
        task.settle()
        for partition in partitions:
            rows = world.records(TopicPartition(target, partition.partition))
            assert [row["value"] for row in rows] == task.values(partition)

    def test_every_column_is_written(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """They are written unchanged; without a timestamp, a record gets the current time."""
        when = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
        later = when + dt.timedelta(milliseconds=1)
        output = batch_of(
            key=[b"k", None, b""],
            value=[None, b"", b"v"],
            topic=[target, target, target],
            partition=[1, 1, 1],
            headers=[MIXED_HEADERS, None, MIXED_HEADERS[1:]],
            timestamp=[when, later, None],
        )
        _process_one(world, open_task(None, lambda _records: [output]), partition)
        rows = world.records(TopicPartition(target, 1))
        assert [(row["key"], row["value"], row["headers"]) for row in rows] == [
            (b"k", None, MIXED_HEADERS),
            (None, b"", None),
            (b"", b"v", MIXED_HEADERS[1:]),
        ]
        *given, current = [row["timestamp"].timestamp() for row in rows]
        assert given == [when.timestamp(), later.timestamp()]
        assert abs(dt.datetime.now(dt.UTC).timestamp() - current) < 60

    def test_keys_decide_as_in_java(
        self, world: World, open_task: OpenTask, partition: TopicPartition
    ) -> None:
        """A key's hash chooses the partition, where the row does not name one."""
        target = world.topic(5)
        keys = list(KEYS)
        outputs = [
            batch_of(key=keys, value=keys),
            batch_of(key=[b"k", b"k"], value=[b"null", b"named"], partition=[None, 4]),
        ]
        _process_one(world, open_task(target, lambda _records: outputs), partition)
        further = {2: [b"null"], 4: [b"named"]}
        for number in range(5):
            rows = world.records(TopicPartition(target, number))
            expected = keys_of_partition(number, 5) + further.get(number, [])
            assert [row["value"] for row in rows] == expected

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

    def test_each_row_may_name_its_topic_and_partition(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """Rows of one batch go to the topics and partitions that they name, in their order."""
        other = world.topic()
        output = batch_of(
            value=[b"1", b"2", b"3", b"4"],
            topic=[target, other, target, target],
            partition=[0, 0, 1, 0],
        )
        _process_one(world, open_task(None, lambda _records: [output]), partition)
        found = {
            place: [row["value"] for row in world.records(TopicPartition(*place))]
            for place in ((target, 0), (target, 1), (other, 0))
        }
        assert found == {(target, 0): [b"1", b"4"], (target, 1): [b"3"], (other, 0): [b"2"]}

    def test_the_sinks_topic_overrides_the_column(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """With the option `topic`, all records go there, and the column is ignored."""
        output = batch_of(value=[b"1", b"2"], topic=[world.fresh_name(), None], partition=[0, 0])
        _process_one(world, open_task(target, lambda _records: [output]), partition)
        assert [row["value"] for row in world.records(TopicPartition(target, 0))] == [b"1", b"2"]

    @pytest.mark.parametrize("has_column", [True, False])
    def test_a_record_needs_a_topic(
        self,
        world: World,
        open_task: OpenTask,
        partition: TopicPartition,
        target: str,
        *,
        has_column: bool,
    ) -> None:
        """Without the option `topic`, a row without a topic is an error."""
        columns = {"topic": [target, None]} if has_column else {}
        output = batch_of(value=[b"v", b"w"], partition=[0, 0], **columns)
        with pytest.raises(NullTopicError):
            _process_one(world, open_task(None, lambda _records: [output]), partition)

    def test_the_topic_has_to_exist(
        self, world: World, open_task: OpenTask, partition: TopicPartition
    ) -> None:
        """The error names a topic that does not exist, at the latest when it is waited for."""
        unknown = world.fresh_name()
        with pytest.raises(UnknownTopicError, match=f"'{unknown}'"):
            _process_one(world, open_task(unknown, echo), partition)

    def test_the_partition_has_to_exist(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """The error is of the first output whose partition does not exist."""
        output = batch_of(value=[b"v", b"secret", b"w"], partition=[0, 2, 7])
        with pytest.raises(RecordDeliveryError) as caught:
            _process_one(world, open_task(target, lambda _records: [output]), partition)
        assert (caught.value.topic, caught.value.partition, caught.value.size) == (target, 2, 6)
        assert "secret" not in str(caught.value)

    def test_a_header_needs_a_key(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """A row that cannot become a record is an error."""
        output = batch_of(value=[b"v"], headers=[[{"key": None, "value": b"1"}]])
        with pytest.raises(InvalidRecordError):
            _process_one(world, open_task(target, lambda _records: [output]), partition)

    def test_an_output_that_is_too_large_for_its_topic_is_an_error(
        self, world: World, open_task: OpenTask, partition: TopicPartition
    ) -> None:
        """It is not acknowledged; without an error, the output is there."""
        target = world.topic(2, max__message__bytes="2000")
        output = batch_of(key=[b"key"], value=[b"secret" * 1_000], partition=[1])
        try:
            _process_one(world, open_task(target, lambda _records: [output]), partition)
        except RecordTooLargeError as error:
            refused = error
        else:
            [row] = world.records(TopicPartition(target, 1))
            assert row["value"] == b"secret" * 1_000
            return
        assert (refused.topic, refused.partition, refused.size) == (target, 1, 6_003)
        assert "secret" not in str(refused)

    def test_an_offset_is_acknowledged_after_all_outputs_before_it(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """When an offset is acknowledged, the outputs of all records before it are written."""
        output = TopicPartition(target, partition.partition)
        task = open_task(target, echo)
        task.assign({partition: 0})
        for start in range(0, 30, 3):
            world.produce(partition, numbered(start, start + 3))
            task.write(task.poll())
            written = len(world.records(output))
            # What was acknowledged before the output was looked at.
            assert task.acknowledged.get(partition, 0) <= written
        task.read_to({partition: 30})
        task.settle()
        assert task.acknowledged == {partition: 30}

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
            task.read_to({changed: end})
            task.settle()
            assert task.client.acknowledged() == {}

    def test_an_acknowledgement_ends_a_poll(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """A poll that has no records returns when something is acknowledged."""
        world.produce(partition, numbered(0, 10))
        task = open_task(target, echo)
        task.assign({partition: 0})
        task.read_to({partition: 10})
        started = time.monotonic()
        while not task.client.is_settled():
            assert not task.client.poll(LONG_S)
        assert time.monotonic() - started < SOON_S

    def test_records_wait_while_a_caller_takes_none(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """Acknowledgements still come, and no record is lost by the wait."""
        task = open_task(target, echo)
        task.assign({partition: 0})
        world.produce(partition, numbered(0, 3))
        task.write(task.poll())
        world.produce(partition, numbered(3, 6))
        deadline = Deadline.after(LONG_S)
        while not task.client.is_settled() or not task.acknowledged:
            assert not deadline.has_passed
            assert not task.client.poll(0.1, takes_records=False)
            task.write(())
        task.read_to({partition: 6})
        task.settle()
        assert task.values(partition) == [b"v%d" % number for number in range(6)]

    def test_a_client_is_settled_when_all_outputs_are_acknowledged(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """It is settled before the first record and after the last, and its outputs are there."""
        task = open_task(target, echo)
        assert task.client.is_settled()
        task.assign({partition: 0})
        assert task.client.is_settled()
        world.produce(partition, numbered(0, 100))
        task.read_to({partition: 100})
        task.settle()
        assert len(world.records(TopicPartition(target, partition.partition))) == 100
        assert task.client.is_settled()

    def test_outputs_of_revoked_partitions_are_acknowledged(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """What was written before a revocation is delivered, and readers of committed see it."""
        world.produce(partition, numbered(0, 10))
        task = open_task(target, echo)
        task.assign({partition: 0})
        task.read_to({partition: 10})
        task.client.revoke([partition])
        task.settle()
        assert task.acknowledged == {partition: 10}
        output = TopicPartition(target, partition.partition)
        # Brokers respond before a transaction has ended.
        await_until(lambda: len(world.records(output, **COMMITTED)) >= 10)
        rows = world.records(output, **COMMITTED)
        assert [row["value"] for row in rows] == task.values(partition)

    def test_a_moved_partition_is_acknowledged_from_its_new_offset_on(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """Acknowledgements of what was read before a partition was moved are not returned."""
        world.produce(partition, numbered(0, 10))
        task = open_task(target, echo)
        task.assign({partition: 0})
        for polled in task.poll():
            assert polled.records is not None
            task.client.write(polled, echo(polled.records))
        task.assign({partition: 5})
        assert task.client.acknowledged() == {}
        task.read_to({partition: 10})
        task.settle()

    def test_records_that_were_polled_before_a_move_are_forgotten(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """What was polled and not written keeps nothing from being acknowledged."""
        world.produce(partition, numbered(0, 10))
        task = open_task(target, echo)
        task.assign({partition: 0})
        task.poll()
        assert task.client.acknowledged() == {}
        task.assign({partition: 5})
        task.read_to({partition: 10})
        task.settle()
        rows = world.records(TopicPartition(target, partition.partition))
        assert [row["value"] for row in rows] == [b"v%d" % number for number in range(5, 10)]

    def test_records_are_acknowledged_without_a_sink(
        self, world: World, partition: TopicPartition
    ) -> None:
        """A function that returns nothing needs no sink."""
        world.produce(partition, numbered(0, 10))
        task = StreamTask(world.stream_client(None))
        task.assign({partition: 0})
        task.read_to({partition: 10})
        task.settle()
        assert task.acknowledged == {partition: 10}

    def test_a_client_can_be_closed_before_it_is_settled(
        self, world: World, open_task: OpenTask, partition: TopicPartition, target: str
    ) -> None:
        """What was written and not acknowledged does not keep a client from closing."""
        world.produce(partition, numbered(0, 1_000))
        task = open_task(target, echo)
        task.assign({partition: 0})
        task.write(task.poll())
        started = time.monotonic()
        for _ in range(2):
            task.client.close()
        assert time.monotonic() - started < SOON_S


def _process_one(world: World, task: StreamTask, partition: TopicPartition) -> None:
    """Process one record, and wait for its outputs."""
    world.produce(partition, numbered(0, 1))
    task.assign({partition: 0})
    task.read_to({partition: 1})
    task.settle()
    assert task.acknowledged == {partition: 1}
