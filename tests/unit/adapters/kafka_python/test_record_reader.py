"""kafka-python's reader when a broker's log differs from what it has read."""

import socket
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, cast
from unittest.mock import Mock

import pytest
from kafka import errors as kafka_errors

from pyspark_kafka.adapters.fetching import Fetched
from pyspark_kafka.adapters.kafka_python.brokers import Brokers
from pyspark_kafka.adapters.kafka_python.connections import FetchConnection
from pyspark_kafka.adapters.kafka_python.record_reader import RangeFetcher
from pyspark_kafka.adapters.kafka_python.wire import NO_REPLICA, FetchedData
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.reading import near_replicas
from pyspark_kafka.domain.reading.errors import LogTruncatedError
from pyspark_kafka.domain.reading.leader_epochs import EpochEndOffset
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

from ..kafka_format.batches import Batch, Record, log
from ..options import source_of
from .fakes import NODE, FakeConnection, metadata_of

PARTITION: Final = TopicPartition("t", 0)
END: Final = 100
POLL_MS: Final = 1_000
EPOCH_AT: Final = 12


def fetched(epoch: int, *offsets: int) -> FetchedData:
    records = bytearray(log(Batch.of([Record(offset) for offset in offsets])))
    struct.pack_into(">i", records, EPOCH_AT, epoch)
    return FetchedData(kafka_errors.NoError, NO_REPLICA, (), memoryview(bytes(records)))


def diverging(epoch: int, end_offset: int) -> FetchedData:
    return FetchedData(
        kafka_errors.NoError, NO_REPLICA, (), memoryview(b""), EpochEndOffset(epoch, end_offset)
    )


def failed(error: type[kafka_errors.KafkaError]) -> FetchedData:
    return FetchedData(error, NO_REPLICA, (), memoryview(b""))


@dataclass
class Script:
    connection: FakeConnection
    brokers: Brokers
    range: RangeFetcher

    @property
    def invalidated(self) -> int:
        """How often the metadata were taken for old."""
        metadata: Any = self.brokers.metadata
        return int(metadata.invalidate.call_count)


@pytest.fixture
def scripted():
    """Yield a function that makes a range of which brokers answer with what it is given."""
    ours, theirs = socket.socketpair()
    # It is always readable.
    theirs.send(b"x")

    def make(*answers: FetchedData, poll_ms: int = POLL_MS, api_ms: int = 30_000) -> Script:
        connection = FakeConnection(deque(answers), asks_by_id=True, ready=ours)
        options = {"kafka.default.api.timeout.ms": str(api_ms)}
        brokers = Brokers(source_of("kafka-python", options))
        brokers.retry_s = 0.0
        brokers.connections[NODE] = cast("FetchConnection", connection)
        brokers._metadata = metadata_of(lambda _: NODE)
        cursor = brokers.cursor(PARTITION, Projection(("offset",)), 0, END)
        return Script(connection, brokers, RangeFetcher(brokers, cursor, poll_ms))

    with ours, theirs:
        yield make


def offset_after(found: Fetched | None) -> int:
    assert found is not None
    assert [batch for batch in found.batches if not batch.num_rows] == []
    return found.next_offset


def read(fetcher: RangeFetcher, *epochs: int) -> int:
    """Fetch a batch of ten offsets for each epoch, and return the next offset."""
    position = 0
    for _ in epochs:
        position = offset_after(fetcher.fetch(position))
    return position


def test_a_broker_that_is_away_for_longer_than_a_call(scripted):
    """The next records of a range are waited for as long as ``kafkaConsumer.pollTimeoutMs``."""
    script = scripted(fetched(1, 0, 9), fetched(1, 10, 19), poll_ms=60_000, api_ms=100)
    position = read(script.range, 1)
    connection = script.connection
    connection.error = ConnectionResetError()
    connection.in_flight = None
    back = Deadline.after(0.5)
    while not back.has_passed:
        assert offset_after(script.range.fetch(position)) == position
    connection.error = None
    script.brokers.connections[NODE] = cast("FetchConnection", connection)
    until = Deadline.after(bound_s(20))
    while offset_after(script.range.fetch(position)) == position:
        assert not until.has_passed


def test_a_broker_that_does_not_come_back_is_unreachable_for_the_time_of_a_poll(scripted):
    script = scripted(fetched(1, 0, 9), poll_ms=300, api_ms=100)
    position = read(script.range, 1)
    script.connection.error = ConnectionResetError()
    script.connection.in_flight = None
    with pytest.raises(BrokerUnreachableError, match=r"within 0\.3 s"):  # noqa: PT012  # until it has lasted
        while True:
            script.range.fetch(position)


def test_a_leader_is_asked_until_it_has_the_same_records(scripted):
    script = scripted(
        fetched(1, 0, 9),
        fetched(3, 10, 19),
        fetched(5, 20, 29),
        diverging(4, 25),
        diverging(2, 15),
        fetched(1, 5),
    )
    position = read(script.range, 1, 3, 5)
    assert offset_after(script.range.fetch(position)) == position == 30
    assert offset_after(script.range.fetch(position)) == position
    with pytest.raises(LogTruncatedError) as caught:
        script.range.fetch(position)
    assert script.connection.asked == [(0, -1), (10, 1), (20, 3), (30, 5), (20, 3), (10, 1)]
    assert (caught.value.offset, caught.value.diverges_at) == (30, 10)


def test_a_log_that_begins_after_the_difference_was_truncated_too(scripted):
    out_of_range = failed(kafka_errors.OffsetOutOfRangeError)
    script = scripted(fetched(1, 0, 9), diverging(1, 4), out_of_range)
    position = read(script.range, 1)
    script.range.fetch(position)
    with pytest.raises(LogTruncatedError) as caught:
        script.range.fetch(position)
    assert (caught.value.offset, caught.value.diverges_at) == (10, 4)


@pytest.mark.parametrize(
    "error", [kafka_errors.FencedLeaderEpochError, kafka_errors.UnknownLeaderEpochError]
)
def test_a_broker_with_another_epoch_is_left(scripted, error):
    """The metadata are old, or the broker's are: they are asked for again, and the leader too."""
    script = scripted(fetched(1, 0, 9), failed(error), fetched(1, 10, 19))
    position = read(script.range, 1)
    assert offset_after(script.range.fetch(position)) == position
    assert script.invalidated == 1
    assert offset_after(script.range.fetch(position)) == 20


@pytest.mark.parametrize(
    "answer",
    [
        diverging(1, 4),
        failed(kafka_errors.OffsetOutOfRangeError),
        failed(kafka_errors.UnknownError),
    ],
    ids=["diverging", "out of range", "error"],
)
def test_a_replica_that_fails_is_left_for_the_leader(scripted, answer):
    """A request without a rack follows: the leader would name the same replica again."""
    script = scripted(fetched(1, 0, 9), answer, fetched(1, 10, 19))
    position = read(script.range, 1)
    script.brokers.near.prefer(PARTITION, NODE, time.monotonic())
    assert offset_after(script.range.fetch(position)) == position
    assert offset_after(script.range.fetch(position)) == 20
    assert script.connection.racks[:3] == [True, True, False]


def test_a_replica_that_has_nothing_of_a_range_is_left_for_the_leader(scripted, monkeypatch):
    monkeypatch.setattr(near_replicas, "MAX_LAG_S", 0.0)
    nothing = failed(kafka_errors.NoError)
    script = scripted(fetched(1, 0, 9), nothing, nothing, fetched(1, 10, 19))
    position = read(script.range, 1)
    script.brokers.near.prefer(PARTITION, NODE, time.monotonic())
    for _ in range(2):
        assert offset_after(script.range.fetch(position)) == position
    assert offset_after(script.range.fetch(position)) == 20
    assert script.connection.racks[:4] == [True, True, True, False]


def test_a_replica_that_a_leader_names_is_fetched_from(scripted):
    named = FetchedData(kafka_errors.NoError, NODE, (), memoryview(b""))
    script = scripted(named, fetched(1, 0, 9))
    assert offset_after(script.range.fetch(0)) == 0
    assert script.brokers.near.of(PARTITION) == NODE
    assert offset_after(script.range.fetch(0)) == 10


def test_an_answer_that_tells_nothing_moves_no_offset(scripted):
    script = scripted(fetched(2, 0, 9), diverging(-1, -1), fetched(2, 10, 19), fetched(3, 20, 29))
    position = read(script.range, 2)
    assert offset_after(script.range.fetch(position)) == position
    assert offset_after(script.range.fetch(position)) == 20
    assert offset_after(script.range.fetch(20)) == 30
    assert script.connection.asked[1:4] == [(10, 2), (10, -1), (20, 2)]


def test_an_epoch_that_goes_back_after_doubt_is_another_log(scripted):
    script = scripted(fetched(2, 0, 9), fetched(4, 10, 19), diverging(3, 40), fetched(3, 20))
    position = read(script.range, 2, 4)
    assert offset_after(script.range.fetch(position)) == position
    with pytest.raises(LogTruncatedError) as caught:
        script.range.fetch(position)
    assert (caught.value.offset, caught.value.diverges_at) == (20, 10)


def test_closing_a_reader_closes_the_connection_of_a_range_that_is_open(scripted, monkeypatch):
    made = Mock(in_flight=None)
    brokers = scripted().brokers
    monkeypatch.setattr(brokers.metadata, "connect", lambda *_, **__: made)
    connection = brokers.connect(NODE, waits=True)
    brokers.close()
    assert made.close.call_count == 1
    brokers.keep(NODE, connection)
    assert made.close.call_count == 2
    assert brokers.connections == {}
