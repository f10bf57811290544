"""One consumer for all partitions of a task, with librdkafka's mock cluster."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from pyspark_kafka.adapters.confluent import stream_fetcher
from pyspark_kafka.adapters.confluent.consumer_handle import ConsumerHandle
from pyspark_kafka.adapters.confluent.stream_client import WakePipe
from pyspark_kafka.adapters.confluent.stream_fetcher import StreamFetcher
from pyspark_kafka.domain.reading.errors import OversizedRecordError, TopicRecreatedError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

from ....servers.mock_cluster import MockCluster
from ..options import source_of

PARTITIONS: Final = [TopicPartition("t", number) for number in range(100)]
FIRST, SECOND = PARTITIONS[:2]


@pytest.fixture
def cluster():
    with MockCluster() as made:
        made.create_topic(FIRST.topic, len(PARTITIONS))
        yield made


@pytest.fixture
def settings(monkeypatch):
    """Return the settings of each handle that is created."""
    made: list[Mapping[str, str]] = []

    def create(cluster: Any, config: Mapping[str, str]) -> ConsumerHandle:
        made.append(config)
        return ConsumerHandle(cluster, config)

    monkeypatch.setattr(stream_fetcher, "ConsumerHandle", create)
    return made


@pytest.fixture
def consumer(cluster):
    options = {**cluster.options, "maxRecordBytes": "1000"}
    wake = WakePipe()
    made = StreamFetcher(source_of("confluent", options), wake.file)
    yield made
    made.close()
    wake.close()


def produce(cluster: MockCluster, partition: TopicPartition, *values: bytes) -> None:
    servers = cluster.options["kafka.bootstrap.servers"]
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1_000})
    for value in values:
        producer.produce(partition.topic, value, partition=partition.partition)
    assert not producer.flush(30)


def read_to(consumer: StreamFetcher, ends: Mapping[TopicPartition, int]) -> list[bytes]:
    """Poll until the next offsets are these, and return the values."""
    passed: dict[TopicPartition, int] = {}
    values: list[bytes] = []

    def has_passed() -> bool:
        for polled in consumer.poll():
            passed[polled.partition] = polled.next_offset
            values.extend(row["value"] for row in polled.records.to_pylist())  # type: ignore[union-attr]
        return passed == ends

    await_until(has_passed)
    return values


def test_all_queues_have_a_limit_together_however_partitions_are_assigned(consumer, settings):
    assigned = 0
    for count in (1, 16, 33, 50):
        some = PARTITIONS[assigned : assigned + count]
        consumer.assign(dict.fromkeys(some, 0))
        assigned += count
        consumer.poll()
        total = assigned * int(settings[-1]["queued.max.messages.kbytes"])
        assert min(16 * assigned, 64) * 1_024 <= total <= 128 * 1_024
    assert assigned == len(PARTITIONS)


def test_partitions_assigned_one_after_the_other_have_one_consumer(consumer, settings):
    for partition in PARTITIONS:
        consumer.assign({partition: 0})
    for _ in range(2):
        consumer.poll()
    assert len(settings) == 2


def test_reading_goes_on_with_another_consumer(cluster, consumer, settings):
    produce(cluster, FIRST, b"0", b"1")
    produce(cluster, SECOND, b"a")
    consumer.assign({FIRST: 0})
    assert read_to(consumer, {FIRST: 2}) == [b"0", b"1"]
    consumer.assign(dict.fromkeys(PARTITIONS[1:], 0))
    assert read_to(consumer, {SECOND: 1}) == [b"a"]
    produce(cluster, FIRST, b"2")
    assert read_to(consumer, {FIRST: 3}) == [b"2"]
    assert len(settings) == 2


LEAVE: Final[Mapping[str, Callable[[StreamFetcher], object]]] = {
    "revoked": lambda consumer: consumer.revoke([FIRST]),
    "assigned elsewhere": lambda consumer: consumer.assign({FIRST: 2}),
}


@pytest.mark.parametrize("leave", LEAVE)
def test_an_error_is_forgotten_with_its_partition(cluster, consumer, leave):
    produce(cluster, FIRST, b"0", bytes(2_000), b"2")
    consumer.assign({FIRST: 0})
    assert read_to(consumer, {FIRST: 1}) == [b"0"]
    assert not consumer.poll()
    LEAVE[leave](consumer)
    produce(cluster, SECOND, b"a")
    consumer.assign({SECOND: 0})
    ends = {SECOND: 1} if leave == "revoked" else {SECOND: 1, FIRST: 3}
    assert sorted(read_to(consumer, ends)) == [b"2", b"a"][-len(ends) :]


def test_errors_of_two_partitions_are_raised_one_after_the_other(cluster, consumer):
    for partition in (FIRST, SECOND):
        produce(cluster, partition, b"0", bytes(2_000))
    consumer.assign({FIRST: 0, SECOND: 0})
    failed: list[TopicPartition] = []

    def have_failed() -> bool:
        try:
            consumer.poll()
        except OversizedRecordError as error:
            failed.append(next(each for each in (FIRST, SECOND) if str(each) in str(error)))
            consumer.revoke([failed[-1]])
        return len(failed) == 2

    await_until(have_failed)
    assert sorted(failed) == [FIRST, SECOND]
    assert not consumer.poll()


def test_what_a_recreated_topic_takes_back_was_not_passed(cluster, consumer, monkeypatch):
    handle_events = ConsumerHandle.handle_events

    def recreated(handle: ConsumerHandle, read_line: Callable[[str], object]) -> None:
        handle_events(handle, read_line)
        if consumer._fetches[FIRST].position > 2:
            read_line(f"Topic {FIRST.topic} changed id from b2xk to bmV3")

    produce(cluster, FIRST, b"0", b"1")
    consumer.assign({FIRST: 0})
    read_to(consumer, {FIRST: 2})
    monkeypatch.setattr(ConsumerHandle, "handle_events", recreated)
    produce(cluster, FIRST, b"2")
    with pytest.raises(TopicRecreatedError) as caught:
        await_until(lambda: consumer.poll() != [])
    assert (caught.value.partition, caught.value.offset) == (FIRST, 2)


def test_a_topic_is_left_with_its_last_partition(consumer):
    """A task whose partitions come and go does not ask for the metadata of ever more topics."""
    consumer.assign({FIRST: 0, SECOND: 0})
    consumer.poll()
    handle = consumer._handle
    assert handle is not None
    consumer.revoke([FIRST])
    assert FIRST.topic in handle.handle.topics
    consumer.revoke([SECOND])
    assert FIRST.topic not in handle.handle.topics
