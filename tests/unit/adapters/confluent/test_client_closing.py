"""Closing a client of librdkafka's has a deadline, also if librdkafka's threads never end."""

import _thread
import ctypes
import gc
import os
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, cast, final

import pytest

from pyspark_kafka.adapters.confluent import (
    admin,
    client_closing,
    cluster,
    group_committer,
    offset_fetcher,
)
from pyspark_kafka.adapters.confluent.client_closing import close_in_time
from pyspark_kafka.adapters.confluent.cluster import Cluster, check_login
from pyspark_kafka.adapters.confluent.consumer_handle import ConsumerHandle
from pyspark_kafka.adapters.confluent.group_committer import GroupCommitter
from pyspark_kafka.adapters.confluent.handle import Handle
from pyspark_kafka.adapters.confluent.librdkafka import load
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.adapters.confluent.producer_handle import ProducerHandle
from pyspark_kafka.adapters.confluent.record_reader import RangeConsumers
from pyspark_kafka.adapters.confluent.stream_client import ConfluentStreamClient
from pyspark_kafka.adapters.confluent.stream_fetcher import StreamFetcher
from pyspark_kafka.adapters.fetching import FetchedPartition, Watermarks
from pyspark_kafka.domain.reading.near_replicas import NearReplicas
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.record_limits import OversizedRecords
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until

from ..conftest import CloseError, broken_parts
from ..options import sink_of, source_of

SERVERS: Final = {"bootstrap.servers": "127.0.0.1:1"}
OPTIONS: Final = source_of("confluent")
PARTITION: Final = TopicPartition("t", 0)


@pytest.fixture
def unreached():
    return Cluster(OPTIONS)


@pytest.fixture
def stuck(monkeypatch):
    """Yield a client whose threads last until the end of the test, beyond the deadline."""
    monkeypatch.setattr(client_closing, "MAX_CLOSE_S", 0.05)
    stuck = Stuck()
    yield stuck
    stuck.is_free.set()
    await_until(lambda: stuck.ended == stuck.closed)


@pytest.fixture
def stuck_fetches(stuck, unreached):
    """Have librdkafka end no fetch, nor its client, until the end of the test."""

    def consume_stop(*fetch: int) -> None:
        stuck.close()
        load().rd_kafka_consume_stop(*fetch)

    stuck.rd_kafka_consume_stop = consume_stop
    unreached.library = cast("ctypes.CDLL", stuck)
    return stuck


@final
class Stuck:
    """Is librdkafka, or a client of confluent-kafka, whose threads do not end until it is free."""

    def __init__(self, *_: object, **__: object) -> None:
        self._library = load()
        self.is_free = threading.Event()
        self.closed = self.ended = 0
        self.notified: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def __exit__(self, *_: object) -> None:
        self.close()

    def rd_kafka_destroy(self, client: int) -> None:
        """Destroy a handle once it is free."""
        self.close()
        self._library.rd_kafka_destroy(client)

    def rd_kafka_queue_io_event_enable(self, queue: int, file: int, *payload: Any) -> None:
        """Remember the file that is notified."""
        self.notified[queue] = file
        self._library.rd_kafka_queue_io_event_enable(queue, file, *payload)

    def close(self) -> None:
        """Wait until it is free."""
        self.closed += 1
        self.is_free.wait()
        self.ended += 1

    def poll(self, *_: object) -> None:
        """Return no event."""


def consumer_handle(unreached: Cluster) -> Callable[[], None]:
    handle = ConsumerHandle(unreached, SERVERS)
    handle.start(PARTITION, 0)
    return handle.close


def collected_consumer(unreached: Cluster) -> Callable[[], None]:
    handles = [ConsumerHandle(unreached, SERVERS)]

    def collect() -> None:
        handles.clear()
        gc.collect()

    return collect


def producer_handle(unreached: Cluster) -> Callable[[], None]:
    return ProducerHandle(unreached, SERVERS, 0).close


def committer(unreached: Cluster) -> Callable[[], None]:
    stuck = unreached.library
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_committer, "Consumer", lambda *_, **__: stuck)
        return GroupCommitter(unreached, "g").close


def admin_client(unreached: Cluster) -> Callable[[], None]:
    fetcher, stuck = ConfluentOffsetFetcher(OPTIONS), unreached.library
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin, "OffsetsAdmin", lambda *_, **__: stuck)
        fetcher._session.client()
    return fetcher.close


def group_reader(unreached: Cluster) -> Callable[[], None]:
    fetcher, stuck = ConfluentOffsetFetcher(OPTIONS), unreached.library

    def read_group() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(offset_fetcher, "Consumer", lambda *_, **__: stuck)
            patch.setattr(stuck, "committed", lambda partitions, **_: partitions, raising=False)
            fetcher._committed("g", [PARTITION])

    return read_group


@pytest.mark.parametrize(
    "client",
    [consumer_handle, collected_consumer, producer_handle, committer, admin_client, group_reader],
)
def test_a_client_that_does_not_end_is_left_to_itself(client, stuck, unreached, caplog):
    unreached.library = cast("ctypes.CDLL", stuck)
    client(unreached)()
    await_until(lambda: stuck.closed == 1)
    assert stuck.ended == 0
    [line] = caplog.messages
    assert line.startswith("A client of librdkafka is not closed after ")


@pytest.fixture
def range_consumers(unreached):
    def partition(number: int) -> FetchedPartition:
        offsets = OffsetRange(TopicPartition("t", number), 0, 10)
        return consumers.partition(offsets, OPTIONS.projection)

    watermarks = Watermarks(lambda: ConfluentOffsetFetcher(OPTIONS), OPTIONS)
    oversized = OversizedRecords(OPTIONS.record_limits)
    consumers = RangeConsumers(unreached, SERVERS, watermarks, oversized, NearReplicas(1.0))
    with closing(consumers):
        yield partition


def assert_given_up(caplog: pytest.LogCaptureFixture) -> None:
    [line] = [each.message for each in caplog.records if each.name == client_closing.__name__]
    assert line.startswith("A client of librdkafka did not end a fetch within ")


def test_a_range_is_left_whose_fetch_does_not_end(stuck_fetches, range_consumers, caplog):
    left = range_consumers(0)
    left._start(0)
    left.leave()
    assert (stuck_fetches.closed, stuck_fetches.ended) == (1, 0)
    assert_given_up(caplog)
    with pytest.raises(RuntimeError, match="the reader is closed"):
        left._start(0)
    next_range = range_consumers(1)
    next_range._start(0)
    assert next_range._consumer.serves(next_range)


def test_partitions_are_revoked_whose_fetches_do_not_end(stuck_fetches, unreached, caplog):
    """The others are read on from where they were, by another client."""
    reading, writing = os.pipe()
    partitions = [TopicPartition(topic, 0) for topic in "abc"]
    with closing(StreamFetcher(OPTIONS, writing)) as fetcher:
        fetcher._cluster = unreached
        fetcher.assign(dict.fromkeys(partitions, 5))
        fetcher.poll()
        given_up = fetcher._handle
        fetcher.revoke(partitions[:2])
        assert (stuck_fetches.closed, stuck_fetches.ended) == (1, 0)
        assert_given_up(caplog)
        assert fetcher._starts == {partitions[2]: 5}
        fetcher.poll()
        assert fetcher._handle is not None
        assert fetcher._handle is not given_up
        assert list(fetcher._handle.handle.topics) == ["c"]
    os.close(reading)
    os.close(writing)


def test_a_login_check_that_does_not_end_is_left_to_itself(stuck, unreached):
    library = cast("ctypes.CDLL", stuck)
    unreached.settings.timeout_s = 0.4
    assert not check_login(library, unreached.settings, unreached.errors)
    await_until(lambda: stuck.closed == 1)
    assert stuck.ended == 0


def test_a_login_check_tries_no_empty_part_of_the_servers(monkeypatch):
    """Such a client would wait until the deadline, and no time would be left for the servers."""
    tried = []

    def new_handle(*given: Any) -> Handle:
        tried.append(given[-1]["bootstrap.servers"])
        return Handle(*given)

    monkeypatch.setattr(cluster, "Handle", new_handle)
    parts = Cluster(source_of("confluent", {"kafka.bootstrap.servers": "127.0.0.1:1, ,,"}))
    assert not check_login(parts.library, parts.settings, parts.errors)
    assert tried == ["127.0.0.1:1"]


def test_a_client_that_ends_is_waited_for(caplog):
    closed: list[int] = []
    close_in_time(lambda: closed.append(threading.get_ident()))
    assert closed
    assert threading.get_ident() not in closed
    assert not caplog.messages


def test_a_call_without_time_leaves_its_client_to_the_background(stuck, monkeypatch, caplog):
    monkeypatch.setattr(client_closing, "MAX_CLOSE_S", 600.0)
    close_in_time(stuck.close, max_s=0.01)
    await_until(lambda: stuck.closed == 1)
    assert stuck.ended == 0
    assert not caplog.messages


@pytest.mark.parametrize("is_collected", [False, True])
def test_the_error_of_a_client_is_raised(is_collected):
    with pytest.raises(ZeroDivisionError):
        close_in_time(lambda: 1 // 0, is_collected=is_collected)


@pytest.mark.parametrize(
    ("make", "owner_of", "parts"),
    [
        (
            lambda: ConfluentStreamClient(OPTIONS, sink_of("confluent")),
            lambda client: client,
            ["_consumer", "_sink", "_wake"],
        ),
        (
            lambda: ConfluentOffsetFetcher(OPTIONS),
            lambda fetcher: fetcher._session,
            ["_admin", "_committer"],
        ),
    ],
    ids=["client", "fetcher"],
)
def test_an_error_of_a_close_leaves_nothing_open(make, owner_of, parts):
    with closing(make()) as made:
        owner = owner_of(made)
        with broken_parts(owner, *parts) as closed, pytest.raises(CloseError):
            owner.close()
        assert closed == parts


def test_what_closing_logs_leaves_no_thread():
    before = set(threading.enumerate())
    close_in_time(lambda: client_closing.log.warning("closed"))
    await_until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("is_collected", [False, True])
def test_a_client_is_closed_where_no_thread_can_start(is_collected, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(_thread, "start_new_thread", fail)
    monkeypatch.setattr(threading, "_start_new_thread", fail)
    closed: list[int] = []
    close_in_time(lambda: closed.append(threading.get_ident()), is_collected=is_collected)
    assert closed == [threading.get_ident()]


def test_no_file_is_notified_after_closing(stuck, unreached):
    """Threads that have not ended write to no file, whose number may be another's by then."""
    reading, writing = os.pipe()
    unreached.library = cast("ctypes.CDLL", stuck)
    consumer = ConsumerHandle(unreached, SERVERS)
    producer = ProducerHandle(unreached, SERVERS, 0)
    for queue in (consumer.start(PARTITION, 0), consumer.handle, producer):
        queue.notify(writing)
    assert list(stuck.notified.values()) == [writing] * 3
    consumer.close()
    producer.close()
    assert list(stuck.notified.values()) == [-1] * 3
    os.close(reading)
    os.close(writing)
