import pytest

from pyspark_kafka.application.reading.record_tail import RecordTail
from pyspark_kafka.domain.errors import OptionsError, UnknownTopicError
from pyspark_kafka.domain.reading.offset_limits import (
    AtOffset,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnNoMatch,
)
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.subscription import Assign, Subscribe
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import MemoryWorld

A, B = (TopicPartition("t", number) for number in range(2))
TOPIC = Subscribe(("t",))


@pytest.fixture
def world():
    """Yield a topic with records 2 to 4 in one partition, and one record in the other."""
    world = MemoryWorld()
    world.create("t", 2)
    for number in range(5):
        world.cluster.produce("t", b"a%d" % number, timestamp=1_000 * number)
    world.cluster.produce("t", b"b0", partition=1, timestamp=1_000)
    world.cluster.delete_records({A: 2})
    yield world
    world.close()


def tail(world: MemoryWorld) -> RecordTail:
    container = world.container()
    return RecordTail(
        container.offset_fetcher(),
        world.stream_client(None),
        container.range_read(),
        ALL_COLUMNS,
    )


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Earliest(), {A: 2, B: 0}),
        (Latest(), {A: 5, B: 1}),
        (AtOffset(-2), {A: 3, B: 0}),
        (AtOffset(4), {A: 4, B: 1}),
        (GlobalTimestamp(3_000, OnNoMatch.LATEST), {A: 3, B: 1}),
    ],
    ids=str,
)
def test_each_partition_begins_at_an_offset_that_its_leader_holds(world, start, expected):
    assert tail(world).starts(TOPIC, start) == expected


def test_a_partition_can_be_assigned_if_it_exists(world):
    assert tail(world).starts(Assign(frozenset({B})), Earliest()) == {B: 0}
    with pytest.raises(OptionsError, match="no such partition: t-7"):
        tail(world).starts(Assign(frozenset({TopicPartition("t", 7)})), Earliest())


def test_records_up_to_an_end(world):
    made = tail(world)
    starts = made.starts(TOPIC, Earliest())
    ends = made.ends(starts)
    world.cluster.produce("t", b"late")
    values = [
        str(value, "ascii")
        for batch in made.read(starts, ends)
        for value in batch["value"].to_pylist()
        if value is not None
    ]
    assert sorted(values) == ["a2", "a3", "a4", "b0"]
    assert list(made.read(ends, ends)) == []


def test_reading_to_an_end_fails_if_the_topic_is_deleted(world):
    """Otherwise it would wait for another topic of the name."""
    made = tail(world)
    starts = made.starts(TOPIC, Earliest())
    ends = made.ends(starts)
    world.delete_topic("t")
    with pytest.raises(UnknownTopicError):
        list(made.read(starts, ends))


def test_records_as_they_come(world):
    made = tail(world)
    batches = made.follow(made.starts(TOPIC, Latest()))
    for value in (b"x", b"y"):
        world.cluster.produce("t", value)
        assert next(batches)["value"].to_pylist() == [value]
