"""The thread of a continuous query with kafka-python: what it serves, and for how long it waits."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import Mock, call
from uuid import UUID

import pyarrow as pa
import pytest
from kafka import errors as kafka_errors

from pyspark_kafka.adapters import call_deadline
from pyspark_kafka.adapters.kafka_format.column_buffers import MAX_ROWS
from pyspark_kafka.adapters.kafka_python import fetcher as fetching
from pyspark_kafka.adapters.kafka_python.brokers import Brokers, FetchedBatches, PartitionCursor
from pyspark_kafka.adapters.kafka_python.connections import FetchConnection
from pyspark_kafka.adapters.kafka_python.fetcher import Fetcher, _Node
from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.adapters.kafka_python.stream_sinks import _TransactionalWriter
from pyspark_kafka.adapters.kafka_python.wire import NO_REPLICA, FetchedData
from pyspark_kafka.domain.cluster.cluster_view import Leadership
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import TopicRecreatedError
from pyspark_kafka.domain.reading.leader_epochs import EpochEndOffset
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import Transaction
from pyspark_kafka.ports.continuous import PolledRecords
from pyspark_kafka.testing import await_until
from tests.servers.hostile_broker import Lie, Line, framed, hostile_broker
from tests.servers.silent_listeners import silent_listener
from tests.slowness import bound_s

from ..conftest import CloseError, broken_parts
from ..options import EXACTLY_ONCE, sink_of, source_of
from .fakes import FakeConnection, metadata_of

FIRST, SECOND = (TopicPartition("t", number) for number in (0, 1))
NOTHING: Final = memoryview(b"")
LONG_S: Final = bound_s(20)
"""A time-out of the client that no call may take."""


@pytest.fixture
def leaders():
    """Return the leaders that the metadata know."""
    return {}


@pytest.fixture
def brokers(leaders):
    made = Brokers(source_of("kafka-python"))
    made._metadata = metadata_of(leaders.get)
    return made


@pytest.fixture
def fetcher(brokers):
    """Return a fetcher of two partitions, which connects to nothing."""
    made = Fetcher(brokers, is_continuous=True)
    made.assign([brokers.cursor(each, ALL_COLUMNS, 0) for each in (FIRST, SECOND)])
    return made


def test_a_broker_with_a_backlog_does_not_keep_others_waiting(fetcher):
    """The next response may be there whenever the last one is taken."""

    def fetched(partition: TopicPartition) -> FetchedBatches:
        position = fetcher._cursors[partition]
        return FetchedBatches(position, iter([pa.record_batch({"v": pa.nulls(MAX_ROWS)})]), 0, 0)

    fetcher._nodes = {1: _Node(1), 2: _Node(2)}
    fetcher._nodes[2].fetched.append(fetched(SECOND))
    served: list[TopicPartition] = []
    for _ in range(3):
        fetcher._nodes[1].fetched.append(fetched(FIRST))
        served += [polled.partition for polled in fetcher.take()]
    assert served == [FIRST, SECOND, FIRST]


def test_the_connection_to_a_broker_that_leads_nothing_any_more_is_closed(fetcher, leaders):
    """A task that lives for long does not keep a socket and a buffer for each broker ever seen."""
    left, stays = FakeConnection(), FakeConnection()
    for partition, node, connection in ((FIRST, 1, left), (SECOND, 2, stays)):
        fetcher._follow(fetcher._cursors[partition], node)
        fetcher._nodes[node].connection = cast("FetchConnection", connection)
    leaders[FIRST] = 3
    fetcher._lose_leader(fetcher._nodes[1], fetcher._cursors[FIRST])
    fetcher.send()
    assert (left.is_closed, stays.is_closed) == (True, False)
    assert 1 not in fetcher._nodes
    fetcher.revoke([SECOND])
    assert stays.is_closed
    assert 2 not in fetcher._nodes


def test_a_partition_without_a_leader_is_not_asked_of_the_same_broker_forever(fetcher, brokers):
    """The broker may be cut off from the cluster, and know of no later election."""
    fetcher.send()
    invalidated = [each.args[0] for each in brokers.metadata.invalidate.call_args_list]
    assert sorted(invalidated) == [FIRST, SECOND]


def test_a_former_leader_is_not_followed_with_the_epoch_of_its_successor(brokers, leaders):
    """It would answer as a follower, which may lag, and be taken for the leader for as long."""
    epochs = [2]
    brokers._metadata = metadata_of(leaders.get, lambda _: UUID(int=1))
    brokers.metadata.view.leadership = lambda each: Leadership(leaders.get(each), epochs[-1])
    cursor = brokers.cursor(FIRST, ALL_COLUMNS, 0)
    cursor.see_metadata(brokers.metadata)
    fetcher = Fetcher(brokers, is_continuous=True)
    fetcher.assign([cursor])
    leaders[FIRST] = 1
    epochs.append(1)
    fetcher.begin()
    fetcher.send()
    assert not fetcher._nodes
    brokers.metadata.invalidate.assert_called_once_with(FIRST)
    # The brokers that can be reached are all cut off.
    cursor.retry_at = 0.0
    cursor.failing_since -= 1 + fetcher._errors.timeout_ms / 1_000
    with pytest.raises(kafka_errors.KafkaConnectionError, match=f"former leader of {FIRST} only"):
        fetcher.send()


def fetching_by_id(
    brokers: Brokers, replica: int
) -> tuple[Fetcher, PartitionCursor, FakeConnection]:
    """Return a fetcher whose request by id is about to be answered without records."""
    connection = FakeConnection(asks_by_id=True)
    connection.answers.append(FetchedData(kafka_errors.NoError, replica, (), NOTHING))
    fetcher = Fetcher(brokers, is_continuous=True)
    cursor = brokers.cursor(FIRST, ALL_COLUMNS, 0)
    fetcher.assign([cursor])
    fetcher._follow(cursor, 1)
    fetcher._nodes[1].connection = cast("FetchConnection", connection)
    cursor.see_metadata(brokers.metadata)
    fetcher.send()
    return fetcher, cursor, connection


def test_a_leader_that_names_a_replica_says_nothing_of_the_topic(brokers, leaders, monkeypatch):
    """It has not looked at its log: a leader that is cut off may know an older topic."""
    ids = [UUID(int=1)]
    monkeypatch.setattr(brokers, "_metadata", metadata_of(leaders.get, lambda _: ids[-1]))
    fetcher, cursor, _ = fetching_by_id(brokers, replica=2)
    fetcher._receive(fetcher._nodes[1])
    ids.append(UUID(int=2))
    cursor.see_metadata(brokers.metadata)
    assert cursor.topic.topic_id == ids[-1]


def test_the_pause_that_a_broker_asked_for_is_kept(fetcher, brokers):
    """A broker is asked nothing before the end, though it leads nothing meanwhile (KIP-219)."""
    brokers.not_before[1] = time.monotonic() + 100
    for _ in range(2):
        connection = FakeConnection()
        fetcher._follow(fetcher._cursors[FIRST], 1)
        fetcher._nodes[1].connection = cast("FetchConnection", connection)
        fetcher.send()
        assert not connection.in_flight
        fetcher.assign([brokers.cursor(FIRST, ALL_COLUMNS, 0)])


@pytest.fixture
def recreation(brokers, leaders):
    """Return a fetcher, and what makes a cursor whose topic is created again when it is called."""
    ids = [UUID(int=1)]
    brokers._metadata = metadata_of(leaders.get, lambda _: ids[-1])
    brokers.watermarks = Mock(attempt=lambda _: (0, 0))
    fetcher = Fetcher(brokers, is_continuous=True)

    def cursor_at(offset: int) -> tuple[PartitionCursor, Callable[[], None]]:
        cursor = brokers.cursor(FIRST, ALL_COLUMNS, offset)
        cursor.see_metadata(brokers.metadata)
        cursor.topic.accept(1)
        fetcher.assign([cursor])

        def recreate() -> None:
            cursor.topic.refuse(1, 0.0)
            ids.append(UUID(int=2))

        return cursor, recreate

    return fetcher, cursor_at


def test_a_topic_that_was_created_again_is_reported_after_the_records_of_the_old_one(recreation):
    """The report begins where the records that were delivered end."""
    fetcher, cursor_at = recreation
    cursor, recreate = cursor_at(0)
    records = iter([pa.record_batch({"v": pa.nulls(MAX_ROWS)})])
    fetcher._nodes = {1: _Node(1)}
    fetcher._nodes[1].add_fetched(FetchedBatches(cursor, records, 0, 0))
    recreate()
    cursor.retry_at = 0.0
    fetcher._find_leaders(time.monotonic())
    [polled] = fetcher.take()
    assert polled.partition == FIRST
    fetcher.take()
    fetcher._find_leaders(time.monotonic())
    with pytest.raises(TopicRecreatedError):
        fetcher.take()


def test_a_topic_is_created_again_after_its_log_was_truncated(brokers, recreation):
    """The records before the report were delivered, also those that the truncated log had."""
    fetcher, cursor_at = recreation
    cursor, recreate = cursor_at(59)
    cursor.epochs.append(0, 0)
    assert cursor.compare(EpochEndOffset(0, 11))
    recreate()
    fetcher._find_leaders(time.monotonic())
    with pytest.raises(TopicRecreatedError) as raised:
        fetcher.take()
    assert raised.value.offset == 59
    brokers.metadata.note_deleted.assert_called_once_with(UUID(int=1))


def test_an_answer_of_a_topic_that_was_created_again_meanwhile_is_not_taken(
    brokers, leaders, monkeypatch
):
    """Its records would be taken for those of the new topic, and be continued by them."""
    ids = [UUID(int=1)]
    monkeypatch.setattr(brokers, "_metadata", metadata_of(leaders.get, lambda _: ids[-1]))
    fetcher, cursor, connection = fetching_by_id(brokers, replica=NO_REPLICA)
    asked = connection.in_flight
    assert asked is not None
    ids.append(UUID(int=2))
    cursor.see_metadata(brokers.metadata)
    fetcher._receive(fetcher._nodes[1])
    ids.append(UUID(int=3))
    cursor.see_metadata(brokers.metadata)
    assert asked[FIRST].topic_id == UUID(int=1)
    assert cursor.topic.topic_id == UUID(int=3), "no topic has answered yet"


def test_a_connection_that_is_found_closed_is_tried_again_first(brokers, leaders):
    """The call took its time with other brokers: this one may be back by now."""
    leaders[FIRST] = 1
    fetcher = Fetcher(brokers, is_continuous=True)
    cursor = brokers.cursor(FIRST, ALL_COLUMNS, 0)
    fetcher.assign([cursor])
    fetcher._follow(cursor, 1)
    fetcher._begun = time.monotonic() - 100
    fetcher._disconnect(fetcher._nodes[1], ConnectionResetError("closed"))
    fetcher._follow(cursor, 1)
    with pytest.raises(kafka_errors.KafkaConnectionError, match="silent"):
        fetcher._disconnect(fetcher._nodes[1], kafka_errors.KafkaConnectionError("silent"))


def test_a_session_that_ends_while_logs_are_compared_is_not_used(brokers, leaders, monkeypatch):
    """Brokers before Kafka 2.7 need a separate request for this, which may take long."""
    before, after = FakeConnection(), FakeConnection()
    before.compares_epochs = False

    def compare(*_: object) -> None:
        before.is_stale = True

    monkeypatch.setattr(fetching, "find_other_log", compare)
    monkeypatch.setattr(brokers, "connect", lambda *_, **__: after)
    leaders[FIRST] = 1
    fetcher = Fetcher(brokers)
    fetcher.assign([brokers.cursor(FIRST, ALL_COLUMNS, 0)])
    fetcher._follow(fetcher._cursors[FIRST], 1)
    fetcher._nodes[1].connection = cast("FetchConnection", before)
    fetcher.send()
    assert after.in_flight
    assert not before.in_flight


def test_an_answer_of_a_former_leader_is_not_taken(brokers):
    """Its successor was asked whether the logs are the same up to here, and not beyond."""
    cursor = brokers.cursor(FIRST, ALL_COLUMNS, 5)
    before = cursor.position
    assert cursor.asks_for(before)
    cursor.follow(1)
    assert not cursor.asks_for(before)
    assert cursor.asks_for(cursor.position)


@pytest.mark.parametrize("is_continuous", [True, False])
def test_a_broker_that_lets_a_request_for_newer_metadata_wait_keeps_no_fetch_waiting(
    brokers, leaders, is_continuous
):
    """Fetches have what is left of the call's time."""
    limits: list[float] = []

    def wait(_: object) -> None:
        with brokers.errors.one_deadline() as deadline:
            limits.append(deadline.remaining)
        raise kafka_errors.KafkaTimeoutError

    connection = FakeConnection()
    brokers.connections = cast("dict[int, FetchConnection]", {1: connection})
    leaders[FIRST] = 1
    fetcher = Fetcher(brokers, is_continuous=is_continuous)
    fetcher.assign([brokers.cursor(FIRST, ALL_COLUMNS, 0, 9)])
    fetcher._follow(fetcher._cursors[FIRST], 1)
    fetcher._nodes[1].connection = cast("FetchConnection", connection)
    brokers.metadata.is_outdated = True
    brokers.metadata.refresh = wait
    fetcher.send()
    assert connection.in_flight
    [limit] = limits
    assert limit <= call_deadline.MIN_ATTEMPT_S


@pytest.mark.parametrize("asks_by_id", [True, False])
def test_a_topic_is_fetched_by_id_if_its_request_had_ids(fetcher, *, asks_by_id):
    """Not if the broker would take ids, and another topic of the request has none."""
    position = fetcher._cursors[FIRST]
    fetcher._follow(position, 1)
    connection = FakeConnection(asks_by_id=asks_by_id)
    fetcher._nodes[1].connection = cast("FetchConnection", connection)
    fetcher.send()
    assert connection.in_flight
    assert position.topic.is_fetched_by_id is asks_by_id


@pytest.mark.parametrize("replica", [None, 2])
def test_a_partition_that_failed_closes_the_connection_to_its_broker_only(
    brokers, leaders, replica
):
    connections = {node: FakeConnection(error=ConnectionResetError()) for node in (1, 2, 3)}
    brokers.connections = cast("dict[int, FetchConnection]", dict(connections))
    leaders[FIRST] = 1
    if replica is not None:
        brokers.near.prefer(FIRST, replica, time.monotonic())
    fetcher = Fetcher(brokers)
    fetcher.assign([brokers.cursor(FIRST, ALL_COLUMNS, 0, 9)])
    fetcher.begin()
    fetcher.send()
    failed = replica or 1
    assert {node for node, each in connections.items() if each.is_closed} == {failed}
    assert brokers.connections.keys() == {1, 2, 3} - {failed}
    assert brokers.near.of(FIRST) is None
    metadata: Any = brokers.metadata
    assert metadata.ask_others_first.call_args_list == [call(failed)]
    # The leader is known, and asking for it again could take all of the time.
    assert metadata.invalidate.call_count == (replica is None)


def test_a_replica_is_left_for_the_leader_when_the_metadata_expire(brokers, leaders, monkeypatch):
    """The leader may name a nearer one (KIP-392)."""
    leader, replica = FakeConnection(), FakeConnection()
    brokers.connections = cast("dict[int, FetchConnection]", {1: leader, 2: replica})
    leaders[FIRST] = 1
    brokers.near.prefer(FIRST, 2, time.monotonic())
    fetcher = Fetcher(brokers)
    fetcher.assign([brokers.cursor(FIRST, ALL_COLUMNS, 0, 9)])
    fetcher.send()
    assert replica.in_flight
    replica.in_flight = None
    now = time.monotonic() + 1_000
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert fetcher.send() == 0
    fetcher.send()
    assert leader.in_flight
    assert not replica.in_flight


def test_a_healthy_broker_does_not_hide_a_silent_one(brokers, leaders, monkeypatch):
    """The partitions of the silent one would wait for as long as others are read."""
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("pyspark_kafka.adapters.kafka_python.fetcher.time", clock)
    fetcher = Fetcher(brokers, is_continuous=True)
    fetcher.assign([brokers.cursor(each, ALL_COLUMNS, 0) for each in (FIRST, SECOND)])
    leaders.update({FIRST: 1, SECOND: 2})
    healthy, silent = FakeConnection(), FakeConnection(error=TimeoutError("silent"))

    def fetch_for(seconds: float) -> None:
        until = now[0] + seconds
        while now[0] < until:
            now[0] += 1
            for node, connection in ((1, healthy), (2, silent)):
                brokers.connections[node] = cast("FetchConnection", connection)
            healthy.answers.append(FetchedData(kafka_errors.NoError, NO_REPLICA, (), NOTHING))
            fetcher.begin()
            fetcher.send()
            for _, receive in fetcher.awaited():
                receive()

    timeout_s = brokers.errors.timeout_ms / 1_000
    fetch_for(timeout_s)
    with pytest.raises(kafka_errors.KafkaConnectionError, match="silent"):
        fetch_for(timeout_s)
    assert len(healthy.asked) >= timeout_s


def client_of(address: str, sink: dict[str, str] | None = None) -> KafkaPythonStreamClient:
    timeout_ms = str(round(1_000 * LONG_S))
    options = {"kafka.bootstrap.servers": address, "kafka.default.api.timeout.ms": timeout_ms}
    written = None if sink is None else sink_of("kafka-python", {**options, **sink})
    source = source_of("kafka-python", options)
    return KafkaPythonStreamClient(source, written, ContinuousSettings("group"))


@contextmanager
def short_call() -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < LONG_S / 2


def test_a_silent_broker_does_not_keep_a_poll():
    with silent_listener() as listener, closing(client_of(listener.address)) as client:
        client.assign(PartitionOffsets({FIRST: 0}))
        with short_call():
            assert not client.poll(0.01)


def _silent(line: Line, _frame: bytes) -> None:
    line.closing.wait()


@pytest.mark.parametrize(
    ("api", "sink"), [("InitProducerId", {}), ("Metadata", {}), ("FindCoordinator", EXACTLY_ONCE)]
)
def test_a_sinks_silent_broker_does_not_keep_a_poll(monkeypatch, api, sink):
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.1)
    with (
        hostile_broker() as broker,
        closing(client_of(broker.bootstrap_servers, sink)) as client,
    ):
        client.assign(PartitionOffsets({FIRST: 0}))
        broker.lies = (Lie(api, send=_silent),)
        if api != "InitProducerId":
            _forget_connections(client)
        polled = PolledRecords(FIRST, None, 1)
        rows = pa.record_batch({"value": pa.array([b"x"]), "partition": pa.array([0], pa.int32())})
        with short_call():
            client.write(polled, [rows])
        for _ in range(2):
            with short_call():
                client.poll(0.01)
        assert broker.answered[api]
        assert not client.is_settled()


def _forget_connections(client: KafkaPythonStreamClient) -> None:
    """Have the sink look for leaders and coordinators again."""
    sink: Any = client._sink
    for writer in getattr(sink, "_writers", {}).values():
        writer._coordinator._disconnect(ConnectionResetError())
    if hasattr(sink, "_client"):
        for node in list(sink._client._connections):
            sink._client._connections.pop(node).close()
        sink._factory.metadata.invalidate(FIRST)


def test_a_broker_that_lists_no_offsets_does_not_keep_a_poll(monkeypatch):
    """A task asks for them where the broker does not hold its offset."""
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.1)
    with hostile_broker(Lie("ListOffsets", send=_silent)) as broker:
        broker.cluster.append(FIRST, [b"x"], 1)
        with closing(client_of(broker.bootstrap_servers)) as client:
            client.assign(PartitionOffsets({FIRST: 5}))
            while broker.answered["ListOffsets"] < 2:
                with short_call():
                    assert not client.poll(0.1)


def test_a_broker_that_needs_longer_than_an_attempt_is_reached(monkeypatch):
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.02)

    def late(line: Line, frame: bytes) -> None:
        line.closing.wait(0.05)
        with suppress(OSError):
            line.send(framed(frame))

    with hostile_broker(Lie("ApiVersions", send=late), Lie("Metadata", send=late)) as broker:
        broker.cluster.append(FIRST, [b"x"], 1)
        with closing(client_of(broker.bootstrap_servers)) as client:
            client.assign(PartitionOffsets({FIRST: 0}))
            await_until(lambda: client.poll(0.1) != [])


def test_a_broker_that_never_gives_a_producer_id_is_an_error_in_time(monkeypatch):
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.05)
    with (
        hostile_broker(Lie("InitProducerId", send=_silent)) as broker,
        closing(client_of(broker.bootstrap_servers, {})) as client,
    ):
        client.assign(PartitionOffsets({FIRST: 0}))
        client.write(PolledRecords(FIRST, None, 1), [pa.record_batch({"value": [b"x"]})])
        producer: Any = client._sink._client  # type: ignore[attr-defined]
        producer._producer_failing_since -= LONG_S
        with pytest.raises(BrokerUnreachableError):
            client.poll(5.0)


def test_a_transaction_is_not_aborted_while_a_request_of_it_is_on_its_way():
    """Handled after the abort, it would keep the group's offset pending for ever."""
    with hostile_broker(Lie("TxnOffsetCommit", send=_silent)) as broker:
        client = client_of(broker.bootstrap_servers, EXACTLY_ONCE)
        client.assign(PartitionOffsets({FIRST: 0}))
        client.write(PolledRecords(FIRST, None, 1), [])

        def is_on_its_way() -> bool:
            client.poll(0.01)
            return broker.answered["TxnOffsetCommit"] > 0

        await_until(is_on_its_way)
        client.close()
        assert not broker.cluster.ended


def writer_of(client: Any) -> _TransactionalWriter:
    sink = client._sink
    transaction = Transaction("id", 1, 0)
    made = _TransactionalWriter(FIRST, transaction, "group", sink._factory, sink._requests)
    sink._writers[FIRST] = made
    return made


@pytest.mark.parametrize(
    ("sink", "owner_of", "parts"),
    [
        ({}, lambda client: client, ["_fetcher", "_sink", "_brokers"]),
        ({}, lambda client: client._sink, ["_client", "_factory"]),
        (EXACTLY_ONCE, writer_of, ["_producer", "_coordinator", "_group"]),
    ],
    ids=["client", "sink", "writer"],
)
def test_an_error_of_a_close_leaves_nothing_open(sink, owner_of, parts):
    with closing(client_of("127.0.0.1:1", sink)) as client:
        owner = owner_of(client)
        with broken_parts(owner, *parts) as closed, pytest.raises(CloseError):
            owner.close()
        assert closed == parts


def test_an_error_of_a_writers_close_leaves_no_other_open():
    with closing(client_of("127.0.0.1:1", EXACTLY_ONCE)) as client:
        sink: Any = client._sink
        both = SimpleNamespace(first=None, second=None)
        with (
            broken_parts(both, "second", "first") as writers,
            broken_parts(sink, "_factory") as shared,
        ):
            sink._writers = {FIRST: both.first, SECOND: both.second}
            with pytest.raises(CloseError):
                sink.close()
        assert (writers, shared) == (["second", "first"], ["_factory"])
