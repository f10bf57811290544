"""The thread of a continuous query with kafka-python: what it serves, and for how long it waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pytest
from kafka import KafkaConsumer

from pyspark_kafka.adapters import call_deadline
from pyspark_kafka.adapters.kafka_format.column_buffers import MAX_ROWS
from pyspark_kafka.adapters.kafka_python.fetch_client import FetchClient
from pyspark_kafka.adapters.kafka_python.settings import client_settings
from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.adapters.kafka_python.stream_fetcher import StreamFetcher, _Fetched, _Leader
from pyspark_kafka.adapters.kafka_python.stream_transactions import _TransactionalWriter
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.record_limits import OversizedRecords, RecordLimits
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import Transaction
from pyspark_kafka.ports.continuous import PolledRecords
from pyspark_kafka.testing import await_until
from tests.servers.hostile_broker import Lie, Line, framed, hostile_broker
from tests.servers.silent_listeners import silent_listener

from .conftest import CloseError, broken_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.adapters.kafka_python.cluster_metadata import ClusterMetadata
    from pyspark_kafka.adapters.kafka_python.connections import FetchConnection

FIRST, SECOND = (TopicPartition("t", number) for number in (0, 1))
EXACTLY_ONCE: Final = {"deliveryGuarantee": "exactly-once", "checkpointLocation": "memory://r"}
LONG_S: Final = 20.0
"""A time-out of the client that no call may take."""


@dataclass
class Metadata:
    """Is a ``ClusterMetadata`` that knows leaders, and cannot connect to them now."""

    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    connection_delay = staticmethod(lambda _node: 0.1)
    refresh_topics = check_right = staticmethod(lambda _topics: None)
    topic_id = staticmethod(lambda _topic: None)
    leader_epoch = staticmethod(lambda _partition: -1)
    invalidate = staticmethod(lambda _partition: None)

    def known_leader(self, partition: TopicPartition) -> int | None:
        return self.leaders.get(partition)


@dataclass
class Connection:
    """Is a ``FetchConnection`` of a broker that takes ids."""

    in_flight: object = None
    is_closed: bool = False
    asks_by_id: bool = False
    takes_ids = compares_epochs = True
    is_overdue = is_stale = False

    def send(self, positions: object) -> None:
        self.in_flight = positions

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def metadata() -> Metadata:
    """Return the metadata of a cluster."""
    return Metadata()


@pytest.fixture
def fetcher(metadata: Metadata) -> StreamFetcher:
    """Return a fetcher of two partitions, which connects to nothing."""
    config, errors = client_settings({"bootstrap.servers": "127.0.0.1:1"})
    made = StreamFetcher(
        {**KafkaConsumer.DEFAULT_CONFIG, **config},
        errors,
        cast("Any", None),
        cast("ClusterMetadata", metadata),
        ALL_COLUMNS,
        cast("Any", None),
        oversized=OversizedRecords(RecordLimits()),
    )
    made.assign({FIRST: 0, SECOND: 0})
    return made


def test_a_broker_with_a_backlog_does_not_keep_others_waiting(fetcher: StreamFetcher) -> None:
    """Its next response may be there whenever its last one is taken."""

    def fetched(partition: TopicPartition) -> _Fetched:
        position = fetcher._positions[partition]
        return _Fetched(position, iter([pa.record_batch({"v": pa.nulls(MAX_ROWS)})]), 0, 0)

    fetcher._leaders = {1: _Leader(1), 2: _Leader(2)}
    fetcher._leaders[2].fetched.append(fetched(SECOND))
    served: list[TopicPartition] = []
    for _ in range(3):
        fetcher._leaders[1].fetched.append(fetched(FIRST))
        served += [polled.partition for polled in fetcher.take()]
    assert served == [FIRST, SECOND, FIRST]


def test_the_connection_to_a_broker_that_leads_nothing_any_more_is_closed(
    fetcher: StreamFetcher, metadata: Metadata
) -> None:
    """A task that lives for long does not keep a socket and a buffer for each broker ever seen."""
    left, stays = Connection(), Connection()
    for partition, node, connection in ((FIRST, 1, left), (SECOND, 2, stays)):
        fetcher._follow(fetcher._positions[partition], node)
        fetcher._leaders[node].connection = cast("FetchConnection", connection)
    metadata.leaders[FIRST] = 3
    fetcher._lose_leader(fetcher._leaders[1], fetcher._positions[FIRST])
    fetcher.send()
    assert (left.is_closed, stays.is_closed) == (True, False)
    assert 1 not in fetcher._leaders
    fetcher.revoke([SECOND])
    assert stays.is_closed
    assert 2 not in fetcher._leaders


def test_the_pause_that_a_broker_asked_for_is_kept(fetcher: StreamFetcher) -> None:
    """It is asked nothing before its end, though it leads nothing meanwhile (KIP-219)."""
    fetcher._leaders = {1: _Leader(1, not_before=time.monotonic() + 100)}
    fetcher.revoke([FIRST])
    assert 1 in fetcher._leaders


@pytest.mark.parametrize("asks_by_id", [True, False])
def test_a_topic_is_fetched_by_id_if_its_request_had_ids(
    fetcher: StreamFetcher, *, asks_by_id: bool
) -> None:
    """Not if the broker would take ids, and another topic of the request has none."""
    position = fetcher._positions[FIRST]
    fetcher._follow(position, 1)
    connection = Connection(asks_by_id=asks_by_id)
    fetcher._leaders[1].connection = cast("FetchConnection", connection)
    fetcher.send()
    assert connection.in_flight
    assert position.topic.is_fetched_by_id is asks_by_id


@pytest.mark.parametrize("replica", [None, 2])
def test_a_partition_that_failed_closes_the_connection_to_its_broker_only(
    metadata: Metadata, replica: int | None
) -> None:
    """With TLS and SASL, each new connection pays another login."""
    config, errors = client_settings({"bootstrap.servers": "127.0.0.1:1"})
    client = FetchClient({**KafkaConsumer.DEFAULT_CONFIG, **config}, errors, cast("Any", None))
    connections = {node: Connection() for node in (1, 2, 3)}
    client._connections = cast("dict[int, FetchConnection]", dict(connections))
    client._metadata = cast("ClusterMetadata", metadata)
    metadata.leaders[FIRST] = 1
    if replica is not None:
        client._replicas[FIRST] = replica, time.monotonic() + 100
    client.invalidate(FIRST)
    failed = replica or 1
    assert {node for node, each in connections.items() if each.is_closed} == {failed}
    assert client._connections.keys() == {1, 2, 3} - {failed}


def client_of(address: str, sink: dict[str, str] | None = None) -> KafkaPythonStreamClient:
    options = {
        "client": "kafka-python",
        "kafka.bootstrap.servers": address,
        "kafka.default.api.timeout.ms": str(round(1_000 * LONG_S)),
    }
    source = parse_source_options({**options, "subscribe": "t"}, QueryKind.STREAM)
    written = sink and parse_sink_options({**options, **sink}, QueryKind.STREAM)
    return KafkaPythonStreamClient(source, written or None, ContinuousSettings("group"))


@contextmanager
def short_call() -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < LONG_S / 2


def test_a_silent_broker_does_not_keep_a_poll() -> None:
    """The driver takes a task for lost that does not report."""
    with silent_listener() as listener, closing(client_of(listener.address)) as client:
        client.assign(PartitionOffsets({FIRST: 0}))
        with short_call():
            assert not client.poll(0.01)


def _silent(line: Line, _frame: bytes) -> None:
    line.closing.wait()


@pytest.mark.parametrize(
    ("api", "sink"),
    [("InitProducerId", {}), ("Metadata", {}), ("FindCoordinator", EXACTLY_ONCE)],
)
def test_a_sinks_silent_broker_does_not_keep_a_poll(
    monkeypatch: pytest.MonkeyPatch, api: str, sink: dict[str, str]
) -> None:
    """What was written is sent with the polls that follow."""
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.1)
    with (
        hostile_broker() as broker,
        closing(client_of(broker.bootstrap_servers, {"topic": "t", **sink})) as client,
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
        sink._factory.metadata._stale.add(FIRST)


def test_a_broker_that_lists_no_offsets_does_not_keep_a_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task asks for them where the broker does not hold its offset."""
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.1)
    with hostile_broker(Lie("ListOffsets", send=_silent)) as broker:
        broker.cluster.append(FIRST, [b"x"], 1)
        with closing(client_of(broker.bootstrap_servers)) as client:
            client.assign(PartitionOffsets({FIRST: 5}))
            while broker.answered["ListOffsets"] < 2:
                with short_call():
                    assert not client.poll(0.1)


def test_a_broker_that_needs_longer_than_an_attempt_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt that ran out of time is followed by a longer one."""
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


def test_a_broker_that_never_gives_a_producer_id_is_an_error_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attempts are repeated for as long as the client's time-out says."""
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.05)
    with (
        hostile_broker(Lie("InitProducerId", send=_silent)) as broker,
        closing(client_of(broker.bootstrap_servers, {"topic": "t"})) as client,
    ):
        client.assign(PartitionOffsets({FIRST: 0}))
        client.write(PolledRecords(FIRST, None, 1), [pa.record_batch({"value": [b"x"]})])
        producer: Any = client._sink._client  # type: ignore[attr-defined]
        producer._producer_failing_since -= LONG_S
        with pytest.raises(BrokerUnreachableError):
            client.poll(5.0)


def test_a_transaction_is_not_aborted_while_a_request_of_it_is_on_its_way() -> None:
    """Handled after the abort, it would keep the group's offset pending for ever."""
    with hostile_broker(Lie("TxnOffsetCommit", send=_silent)) as broker:
        client = client_of(broker.bootstrap_servers, {"topic": "t", **EXACTLY_ONCE})
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
        ({}, lambda client: client, ["_fetcher", "_sink", "_metadata"]),
        ({}, lambda client: client._sink, ["_client", "_factory"]),
        (EXACTLY_ONCE, writer_of, ["_producer", "_coordinator", "_group"]),
    ],
    ids=["client", "sink", "writer"],
)
def test_an_error_of_a_close_leaves_nothing_open(
    sink: dict[str, str], owner_of: Callable[[Any], Any], parts: list[str]
) -> None:
    """The other parts are closed as well."""
    with closing(client_of("127.0.0.1:1", {"topic": "t", **sink})) as client:
        owner = owner_of(client)
        with broken_parts(owner, *parts) as closed, pytest.raises(CloseError):
            owner.close()
        assert closed == parts


def test_an_error_of_a_writers_close_leaves_no_other_open() -> None:
    """Nor what all of them use."""
    with closing(client_of("127.0.0.1:1", {"topic": "t", **EXACTLY_ONCE})) as client:
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
