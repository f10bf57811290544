"""Continuous reading and writing with kafka-python while brokers go and come."""

import time

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record, await_until, numbered
from pyspark_kafka.testing.stream_task import StreamTask, echo, stream_sink
from pyspark_kafka.testing.world import COMMITTED

GUARANTEES = pytest.mark.parametrize("exactly_once", [False, True], ids=["at-least", "exactly"])

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def own_kafka():
    with KafkaCluster(config={"log.retention.ms": "-1"}) as cluster:
        yield cluster


@pytest.fixture
def own_world(fresh_name, own_kafka):
    made = KafkaWorld("kafka-python", fresh_name, own_kafka)
    yield made
    made.close()


@GUARANTEES
def test_a_restart_of_the_broker_is_ridden_through(own_world, own_kafka, exactly_once):
    world = own_world
    source, target = TopicPartition(world.topic(), 0), TopicPartition(world.topic(), 0)
    sink = stream_sink(world, target.topic, exactly_once=exactly_once)
    task = StreamTask(world.stream_client(sink, world.fresh_name()), echo)
    task.assign({source: 0})
    world.produce(source, numbered(0, 10))
    task.read_to({source: 10})
    task.settle()
    world.produce(source, numbered(10, 20))
    # What is in flight when the broker ends is the middle of a transaction.
    task.write(task.poll())
    own_kafka.kill_broker(0)
    for _ in range(3):
        task.write(task.client.poll(0.1))
    own_kafka.start_broker(0)
    world.produce(source, numbered(20, 30))
    task.read_to({source: 30})
    task.settle()
    expected = [record.value for record in numbered(0, 30)]
    await_until(lambda: len(world.records(target, **COMMITTED)) >= len(expected))
    assert [row["value"] for row in world.records(target, **COMMITTED)] == expected


def test_a_partition_is_not_assigned_again_before_its_outputs_are_committed(own_world, own_kafka):
    """Without a broker, the wait ends in time; the next task writes what was not committed."""
    world, group_id = own_world, own_world.fresh_name()
    source, target = TopicPartition(world.topic(), 0), TopicPartition(world.topic(), 0)
    sink = world.sink_options(
        topic=target.topic,
        deliveryGuarantee="exactly-once",
        checkpointLocation=f"memory://{target.topic}",
        kafka__default__api__timeout__ms="2000",
    )
    task = StreamTask(world.stream_client(sink, group_id), echo)
    task.assign({source: 0})
    world.produce(source, numbered(0, 10))
    task.write(task.poll())
    own_kafka.kill_broker(0)
    begun = time.monotonic()
    reason = f"transaction of {source} has not ended|Connection refused"
    with pytest.raises(BrokerUnreachableError, match=reason):
        task.assign({source: 10})
    assert time.monotonic() - begun < 25
    own_kafka.start_broker(0)
    later = StreamTask(world.stream_client(sink, group_id), echo)
    later.assign({source: 0})
    later.read_to({source: 10})
    later.settle()
    expected = [record.value for record in numbered(0, 10)]
    await_until(lambda: len(world.records(target, **COMMITTED)) >= len(expected))
    assert [row["value"] for row in world.records(target, **COMMITTED)] == expected


@GUARANTEES
def test_large_inputs_are_written_in_order(fresh_name, kafka, exactly_once):
    world = KafkaWorld("kafka-python", fresh_name, kafka)
    count, size = 20_000, 300
    partitions = [TopicPartition(world.topic(3), number) for number in range(3)]
    target = world.topic(3)
    for partition in partitions:
        world.produce(partition, [_large(number, size) for number in range(count)])
    guarantee = "exactly-once" if exactly_once else "at-least-once"
    sink = world.sink_options(
        topic=target,
        deliveryGuarantee=guarantee,
        checkpointLocation=f"memory://{target}",
        kafka__buffer__memory="1000000",
    )
    task = StreamTask(world.stream_client(sink, world.fresh_name()), echo)
    task.assign(dict.fromkeys(partitions, 0))
    task.read_to(dict.fromkeys(partitions, count))
    task.settle()
    expected = [_large(number, size).value for number in range(count)]
    for number in range(3):
        written = TopicPartition(target, number)
        await_until(lambda: len(world.records(written, **COMMITTED)) >= count)  # noqa: B023
        assert [row["value"] for row in world.records(written, **COMMITTED)] == expected
    world.close()


def _large(number: int, size: int) -> Record:
    return Record(b"%d" % number + b"x" * size)
