"""The cluster in memory apart from topics and records: waiting, ids, transactions."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import ProducerFencedError
from pyspark_kafka.testing import MemoryWorld, await_until, numbered
from tests.slowness import bound_s

PARTITION: Final = TopicPartition("t", 0)
LONG_S: Final = bound_s(30)

CHANGES: Final[dict[str, Callable[[MemoryCluster, int], object]]] = {
    "a record is produced": lambda cluster, _: cluster.produce("t", b"v"),
    "a transaction ends": lambda cluster, number: cluster.end_transaction(number, commit=True),
    "a topic is created": lambda cluster, _: cluster.create_topic("other"),
    "a topic is deleted": lambda cluster, _: cluster.delete_topic("t"),
    "partitions are added": lambda cluster, _: cluster.add_partitions("t", 2),
    "records are deleted": lambda cluster, _: cluster.delete_records({PARTITION: 1}),
}


@pytest.fixture
def cluster():
    """Return a cluster with a topic."""
    made = MemoryCluster()
    made.create_topic("t")
    return made


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_wakes_those_who_wait(cluster, change):
    transaction = cluster.begin_transaction()
    cluster.produce("t", b"v", transaction=transaction)
    asked: list[bool] = []

    def is_changed() -> bool:
        asked.append(len(asked) > 0)
        return asked[-1]

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cluster.wait_for, is_changed, LONG_S)
        await_until(lambda: len(asked) == 1)
        started = time.monotonic()
        CHANGES[change](cluster, transaction)
        assert waiting.result() is True
        assert time.monotonic() - started < LONG_S / 2


def test_waiting_ends_in_time(cluster):
    assert cluster.wait_for(lambda: 0, 0.01) == 0
    assert cluster.wait_for(lambda: 0, 0) == 0
    assert cluster.wait_for(lambda: "found", LONG_S) == "found"


def test_a_recreated_topic_has_another_id(cluster):
    first = cluster.topic_id("t")
    cluster.delete_topic("t")
    assert cluster.topic_id("t") is None
    cluster.create_topic("t")
    assert first is not None
    assert cluster.topic_id("t") not in (None, first)


def test_an_aborted_transaction_is_not_committed_again(cluster):
    transaction = cluster.open_transaction("id")
    cluster.close_transaction(transaction, commit=False)
    with pytest.raises(ProducerFencedError):
        cluster.commit_and_begin(transaction, "group", {PARTITION: 7})


def test_compaction_keeps_what_is_committed(cluster):
    """An aborted record replaces none, and from an open transaction on nothing is cleaned."""
    cluster.produce("t", b"old", key=b"k")
    cluster.produce("t", b"committed", key=b"k")
    aborted, still_open = cluster.begin_transaction(), cluster.begin_transaction()
    cluster.produce("t", b"aborted", key=b"k", transaction=aborted)
    cluster.end_transaction(aborted, commit=False)
    cluster.produce("t", b"open", key=b"k", transaction=still_open)
    cluster.produce("t", b"later", key=b"k")
    cluster.compact(PARTITION)
    found = cluster.fetch(PARTITION, 0, 10, committed_only=False, max_records=10)
    assert [each.value for each in found] == [b"committed", b"open", b"later"]
    cluster.end_transaction(still_open, commit=True)
    cluster.compact(PARTITION)
    found = cluster.fetch(PARTITION, 0, 10, committed_only=False, max_records=10)
    assert [each.value for each in found] == [b"later"]


def test_many_threads_share_a_cluster():
    world = MemoryWorld()
    source, target = world.topic(4), world.topic(4)

    def run(number: int) -> None:
        partition = TopicPartition(source, number)
        sink = world.sink_options(
            topic=target, deliveryGuarantee="exactly-once", metadataPath="memory://transactions"
        )
        client = world.stream_client(sink, "group")
        client.assign(PartitionOffsets({partition: 0}))
        done = 0
        while done < 500:
            for polled in client.poll(LONG_S):
                assert polled.records is not None
                client.write(polled, [polled.records.select(["value", "partition"])])
            done = client.acknowledged().get(partition, done)

    with ThreadPoolExecutor(5) as pool:
        tasks = [pool.submit(run, number) for number in range(4)]
        for start in range(0, 500, 5):
            for number in range(4):
                world.produce(TopicPartition(source, number), numbered(start, start + 5))
        for task in tasks:
            task.result(LONG_S)
    for number in range(4):
        rows = world.records(
            TopicPartition(target, number), kafka__isolation__level="read_committed"
        )
        assert [row["value"] for row in rows] == [record.value for record in numbered(0, 500)]
    world.close()
