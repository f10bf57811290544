import resource
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import EndTxnRequest

from pyspark_kafka.adapters.kafka_python.brokers import Brokers
from pyspark_kafka.adapters.kafka_python.connections import (
    BrokerConnection,
    EncodedRequest,
    FetchConnection,
    FrameTooLargeError,
    ReceiveBuffer,
    receive_ready,
)
from pyspark_kafka.adapters.kafka_python.record_reader import RangeFetcher
from pyspark_kafka.adapters.kafka_python.sockets import encrypted
from pyspark_kafka.adapters.kafka_python.transactions import end_request
from pyspark_kafka.adapters.kafka_python.wire import (
    BY_ID_VERSION,
    MAX_FETCH_VERSION,
    NO_TAGS,
    FetchPosition,
    FetchSettings,
)
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import Transaction
from pyspark_kafka.ports.clock import Deadline
from tests.servers.certificates import Authority
from tests.slowness import bound_s

from ..kafka_format.batches import Batch, Record, log
from ..options import source_of
from .fakes import NODE, metadata_of, opened

TIMEOUT_S = 0.3
LONG_S = bound_s(20)
PARTITION = TopicPartition("t", 0)
SETTINGS = FetchSettings(
    client_id="c",
    rack="",
    isolation_level=0,
    min_bytes=1,
    max_bytes=1_000,
    partition_bytes=1_000,
    max_wait_ms=100,
    max_batch_bytes=500_000_000,
)
MIB = 1024 * 1024
ANNOUNCED_BYTES = 400 * MIB
BATCH = log(Batch.of([Record(0)]))


@pytest.fixture(params=["here", "windows"])
def sockets(request, monkeypatch):
    """Yield the client's end of a connection, and the broker's."""
    if request.param == "windows":
        monkeypatch.delattr(select, "poll")
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def connection_of(ours: socket.socket, timeout_s: float = TIMEOUT_S) -> FetchConnection:
    return FetchConnection(opened(ours), SETTINGS, round(1_000 * timeout_s))


def received_by(connection: FetchConnection, deadline: Deadline) -> memoryview:
    return connection._receive_frame(ReceiveBuffer().view, deadline)


def test_a_response_that_comes_a_byte_at_a_time(sockets):
    """The time-out is the one of the whole response: each byte comes well within it."""
    ours, theirs = sockets
    has_ended = threading.Event()

    def trickle() -> None:
        theirs.sendall(struct.pack(">i", 1_000))
        while not has_ended.wait(TIMEOUT_S / 10):
            theirs.sendall(b"\0")

    connection = connection_of(ours)
    connection.send({PARTITION: FetchPosition(0)})
    buffer = ReceiveBuffer()
    sending = threading.Thread(target=trickle)
    sending.start()
    try:
        begun = time.monotonic()
        while not connection.is_overdue:
            receive_ready([(connection, lambda: connection.receive(buffer) is not None)], LONG_S)
        assert time.monotonic() - begun < LONG_S
        with pytest.raises(TimeoutError, match="broker 7 at host:9092 did not answer in time"):
            received_by(connection, Deadline.after(0))
    finally:
        has_ended.set()
        sending.join()


def test_a_slow_response_keeps_no_other_connection_waiting(sockets):
    """A broker's bytes are received as they come, while another broker answers."""
    slow, other = sockets[0], socket.socketpair()
    slow_connection, buffer = connection_of(slow, LONG_S), ReceiveBuffer()
    slow_connection.send({PARTITION: FetchPosition(0)})
    sockets[1].sendall(struct.pack(">i", 1_000) + b"\0")
    with other[0] as ours, other[1] as theirs:
        ours.setblocking(False)
        quick = connection_of(ours, LONG_S)
        quick.send({PARTITION: FetchPosition(0)})
        theirs.sendall(struct.pack(">i", 5) + b"quick")
        frames: list[memoryview | None] = []

        def receive() -> bool:
            frames.append(quick._poll_frame(lambda size: memoryview(bytearray(size))))
            return frames[-1] is not None

        awaited = [
            (slow_connection, lambda: slow_connection.receive(buffer) is not None),
            (quick, receive),
        ]
        receive_ready(awaited, LONG_S)
    assert bytes(frames[-1] or b"") == b"quick"
    assert not slow_connection.is_overdue


def test_a_broker_that_reads_nothing(sockets):
    connection = connection_of(sockets[0])
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match="broker 7 at host:9092 did not take a request in time"):
        connection._send(bytes(100 * MIB))
    assert time.monotonic() - begun < LONG_S


def test_a_request_that_does_not_fit_into_the_sockets_buffers_is_sent_in_parts(sockets):
    ours, theirs = sockets
    request = bytes(range(256)) * 40_000
    received = bytearray()

    def read() -> None:
        while len(received) < len(request):
            received.extend(theirs.recv(100_000))

    reading = threading.Thread(target=read)
    reading.start()
    connection_of(ours, LONG_S)._send(request)
    reading.join()
    assert received == request


def test_a_response_that_is_larger_than_what_was_asked_for(sockets):
    ours, theirs = sockets
    theirs.sendall(struct.pack(">i", 2**31 - 1))
    buffer = Mock()
    with pytest.raises(FrameTooLargeError, match=r"broker 7 at host:9092 announces .* 2147483647"):
        connection_of(ours).receive(buffer)
    buffer.view.assert_not_called()


def test_memory_is_taken_as_bytes_come(sockets):
    ours, theirs = sockets
    theirs.sendall(struct.pack(">i", ANNOUNCED_BYTES) + bytes(1_000))
    taken: list[memoryview] = []

    def allocate(size: int) -> memoryview:
        before = _resident_bytes()
        taken.append(ReceiveBuffer().view(size))
        assert _resident_bytes() - before < ANNOUNCED_BYTES // 4
        return taken[0]

    with pytest.raises(TimeoutError):
        connection_of(ours)._receive_frame(allocate, Deadline.after(TIMEOUT_S))
    assert len(taken[0]) == ANNOUNCED_BYTES


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_a_response_that_came_while_the_caller_was_busy(sockets):
    ours, theirs = sockets
    connection = connection_of(ours)
    connection.send({PARTITION: FetchPosition(0)})
    time.sleep(1.2 * TIMEOUT_S)
    was_overdue = connection.is_overdue
    theirs.sendall(struct.pack(">i", 4) + b"l")
    assert (was_overdue, connection.is_overdue) == (True, False)
    assert connection.receive(ReceiveBuffer()) is None
    assert not connection.is_overdue
    theirs.sendall(b"ate")
    assert bytes(received_by(connection, Deadline.after(LONG_S))) == b"late"
    assert not connection.is_overdue


@pytest.mark.parametrize("ids", [{"t": UUID(int=1)}, {"t": UUID(int=1), "other": UUID(int=2)}])
def test_topics_of_a_request_are_fetched_by_id_if_all_have_one(sockets, ids):
    ours, theirs = sockets
    is_by_id = len(ids) == 2
    version = BY_ID_VERSION if is_by_id else MAX_FETCH_VERSION

    def answer() -> None:
        theirs.recv(1_000)
        theirs.sendall(fetched(version, {"t": None, "other": None, **ids}))

    answering = threading.Thread(target=answer)
    answering.start()
    brokers = Brokers(source_of("kafka-python"))
    brokers.connections[NODE] = connection_of(ours, LONG_S)
    brokers._metadata = metadata_of(lambda _: NODE, ids.get)
    partitions = PARTITION, TopicPartition("other", 0)
    brokers.expect([OffsetRange(each, 0, 1) for each in partitions])
    for each in partitions:
        cursor = brokers.cursor(each, ALL_COLUMNS, 0, 1)
        fetcher = RangeFetcher(brokers, cursor, 1_000)
        found = fetcher.fetch(0)
        assert found is not None
        assert [batch.num_rows for batch in found.batches] == [1]
        assert cursor.topic.is_fetched_by_id is is_by_id
        fetcher.leave()
    answering.join()
    assert brokers.connections[NODE].asks_by_id is is_by_id


def fetched(version: int, ids: Mapping[str, UUID | None]) -> bytes:
    """Encode the response to a first request for a batch of each topic."""
    topic = FetchResponse.FetchableTopicResponse
    data = topic.PartitionData(
        partition_index=0, preferred_read_replica=-1, aborted_transactions=[], records=BATCH
    )
    named = (
        {"topic_id": topic_id} if version == BY_ID_VERSION else {"topic": name}
        for name, topic_id in ids.items()
    )
    responses = [topic(partitions=[data], **each) for each in named]
    body: bytes = FetchResponse(responses=responses).encode(version=version)
    frame = struct.pack(">i", 1) + NO_TAGS + body
    return struct.pack(">i", len(frame)) + frame


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    """Return what TLS is shaken hands with: the client's settings, and the broker's."""
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority()
    (directory / "authority.pem").write_text(authority.pem)
    client = ssl.create_default_context(cafile=str(directory / "authority.pem"))
    client.check_hostname = False
    broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    broker.load_cert_chain(authority.issue("broker").write_pem(directory / "broker.pem"))
    return client, broker


def test_large_requests_and_responses_over_tls(sockets, contexts):
    content = bytes(range(256)) * 40_000
    received = bytearray()

    def serve() -> None:
        with contexts[1].wrap_socket(sockets[1], server_side=True) as theirs:
            while len(received) < len(content):
                received.extend(theirs.recv(100_000))
            theirs.sendall(struct.pack(">i", len(content)) + content)

    serving = threading.Thread(target=serve)
    serving.start()
    with encrypted(sockets[0], "broker", contexts[0], Deadline.after(LONG_S)) as ours:
        connection = connection_of(ours, LONG_S)
        connection._send(content)
        assert bytes(received_by(connection, Deadline.after(LONG_S))) == content
    serving.join()
    assert received == content


TRANSACTION = Transaction("an id", 2**40, 7)


@pytest.mark.parametrize("version", [1, 3])
def test_a_request_is_the_same_but_for_its_correlation_id(version):
    request = EncodedRequest(end_request(TRANSACTION, commit=True))
    for correlation_id in (1, 2**31 - 1):
        request.encode(4 - version, 5, "me")
        sent = request.encode(version, correlation_id, "me")
        theirs = EndTxnRequest.decode(sent, version=version, header=True, framed=True)
        assert theirs.header.correlation_id == correlation_id
        assert (theirs.header.request_api_version, theirs.header.client_id) == (version, "me")
        assert (theirs.transactional_id, theirs.producer_id) == ("an id", 2**40)
        assert (theirs.producer_epoch, theirs.committed) == (7, True)


def test_a_session_is_left_before_it_ends(sockets, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    connected, endless = (BrokerConnection(opened(sockets[0], at), 1_000) for at in (now + 8, 1e99))
    assert (connected.is_stale, endless.is_stale) == (False, False)
    now += 8.1
    assert (connected.is_stale, endless.is_stale) == (True, False)
