"""How large a response librdkafka accepts, and what it fetches of ranges before they are read."""

from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.consumer_handle import FORCED, TUNED, response_limit
from pyspark_kafka.adapters.confluent.librdkafka import CONSUMER
from pyspark_kafka.adapters.confluent.log_lines import TopicIds
from pyspark_kafka.adapters.confluent.range_consumer import (
    AHEAD_BYTES,
    MAX_AHEAD,
    FetchesAhead,
    settings_ahead,
)
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.reading.leader_epochs import NO_EPOCH
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..options import source_of

RECREATED = "Topic t0 changed id from b2xk to bmV3"


def tp(number: int) -> TopicPartition:
    """Return the partition of a topic of its own."""
    return TopicPartition(f"t{number}", 0)


class Handle:
    """Is a ``ConsumerHandle`` whose fetches are names."""

    def __init__(self) -> None:
        self.running: list[str] = []

    def start(self, partition: TopicPartition, offset: int) -> str:
        fetch = f"{partition.topic} from {offset}"
        self.running.append(fetch)
        return fetch

    def stop(self, fetch: str) -> None:
        self.running.remove(fetch)


@pytest.fixture
def handle():
    return Handle()


@pytest.fixture
def topic_ids():
    return TopicIds()


@pytest.fixture
def ahead(handle, topic_ids):
    """Return the fetches of three ranges, after the one of another partition."""
    made = FetchesAhead(handle, topic_ids)
    made.start(tp(9))
    made.expect([OffsetRange(tp(number), 7, 9) for number in range(3)])
    made.start(tp(9))
    return made


def test_a_fetch_is_taken_by_its_reader(ahead, handle):
    taken: Any = ahead.take(tp(1), 7, NO_EPOCH)
    assert taken == "t1 from 7"
    assert handle.running == ["t1 from 7", "t2 from 7"]
    assert ahead.topics == {"t2"}


@pytest.mark.parametrize(("offset", "epoch"), [(8, NO_EPOCH), (7, 3)])
def test_a_fetch_from_elsewhere_is_stopped(ahead, handle, offset, epoch):
    assert ahead.take(tp(0), offset, epoch) is None
    assert handle.running == ["t1 from 7", "t2 from 7"]


def test_a_fetch_of_a_recreated_topic_is_stopped(ahead, handle, topic_ids):
    """Its messages may be of both topics."""
    topic_ids.read_line(RECREATED)
    assert ahead.take(tp(0), 7, NO_EPOCH) is None
    assert handle.running == ["t1 from 7", "t2 from 7"]


def test_the_partition_that_is_read_is_not_fetched_ahead(ahead, handle):
    ahead.expect([OffsetRange(tp(0), 0, 5), OffsetRange(tp(0), 5, 9), OffsetRange(tp(1), 0, 1)])
    assert handle.running == []
    assert ahead.take(tp(0), 0, NO_EPOCH) is None
    ahead.start(tp(0))
    assert handle.running == ["t1 from 0"]


def test_few_fetches_run_ahead_until_records_are_known_to_be_small(ahead, handle):
    ranges = [OffsetRange(tp(number), 0, 1) for number in range(10 * MAX_AHEAD)]
    running = []
    for _ in range(5):
        ahead.expect(ranges)
        ahead.start(tp(10 * MAX_AHEAD))
        running.append(len(handle.running))
    assert running == [8, 16, MAX_AHEAD, MAX_AHEAD, MAX_AHEAD]


def test_large_records_let_fewer_fetches_run_ahead(ahead, handle):
    """Each fetch holds one record at least."""
    ranges = [OffsetRange(tp(number), 0, 1) for number in range(10 * MAX_AHEAD)]
    running = []
    for size in (AHEAD_BYTES // 3, 1, 1, 2 * AHEAD_BYTES):
        ahead.see(pa.RecordBatch.from_pydict({"value": [bytes(size)]}))
        ahead.expect(ranges)
        ahead.start(tp(10 * MAX_AHEAD))
        running.append(len(handle.running))
    assert running == [2, 4, 8, 1]


@pytest.mark.parametrize(
    ("given", "bytes_", "kilobytes", "milliseconds"),
    [
        ({}, "65536", "64", "2"),
        ({"fetch.message.max.bytes": "2097152", "fetch.wait.max.ms": "10"}, "65536", "64", "2"),
        ({"max.partition.fetch.bytes": "100", "fetch.wait.max.ms": "1"}, "100", "64", "1"),
        ({"fetch.message.max.bytes": "9", "queued.max.messages.kbytes": "8"}, "9", "8", "2"),
    ],
)
def test_a_fetch_ahead_takes_little(given, bytes_, kilobytes, milliseconds):
    assert settings_ahead({"client.id": "me", **given}) == {
        "client.id": "me",
        "fetch.message.max.bytes": bytes_,
        "max.partition.fetch.bytes": bytes_,
        "queued.max.messages.kbytes": kilobytes,
        "fetch.wait.max.ms": milliseconds,
    }


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, (50 + 64) * MIB),
        ({"maxRecordBytes": str(200 * MIB)}, (50 + 200) * MIB),
        ({"maxRecordBytes": "1"}, 50 * MIB + 512),
        ({"kafka.fetch.max.bytes": str(200 * MIB)}, (200 + 64) * MIB),
        ({"kafka.message.max.bytes": str(200 * MIB)}, (200 + 64) * MIB),
        ({"kafka.fetch.max.bytes": "2147483135"}, 2**31 - 1),
    ],
)
def test_a_response_may_hold_a_fetch_and_a_record(given, limit):
    options = source_of("confluent", given)
    cluster = Cluster(options)
    setting = response_limit(options.record_limits, cluster.settings.fetch_max_bytes)
    assert setting == {"receive.message.max.bytes": str(limit)}
    config = cluster.settings.config(FORCED, {**TUNED, **setting})
    cluster.new_handle(CONSUMER, config).close()


def test_a_size_that_is_not_a_number_is_refused_by_the_client():
    cluster = Cluster(source_of("confluent", {"kafka.message.max.bytes": "soon"}))
    with pytest.raises(OptionsError, match=r"message\.max\.bytes"):
        cluster.new_handle(CONSUMER, cluster.settings.config(FORCED, TUNED))
