"""How long calls wait for brokers that stall, and what they leave behind."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, final

import pytest

from pyspark_kafka import continuous
from pyspark_kafka.adapters.confluent.client import CLIENT as CONFLUENT
from pyspark_kafka.adapters.kafka_python.client import CLIENT as KAFKA_PYTHON
from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    LeaderUnavailableError,
    PysparkKafkaError,
    UnknownTopicError,
)
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import near_replicas
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import await_until
from tests.servers import lies
from tests.servers.hostile_broker import HostileBroker, Lie, Line, hostile_broker
from tests.servers.lies import DAYS_MS, trickled
from tests.servers.silent_listeners import silent_listener, trickling_listener
from tests.slowness import bound_s

from .uses import EXACTLY_ONCE, TRANSACTIONAL, USES, stream_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.ports.continuous import PolledRecords, StreamClient

TIMEOUT_S: Final = {"kafka-python": bound_s(0.3), "confluent": bound_s(0.8)}
"""How long each client may wait, which is mostly enough to get to the request that stalls."""

TIMEOUTS: Final = (
    "kafka.default.api.timeout.ms",
    "kafka.request.timeout.ms",
    "kafka.delivery.timeout.ms",
    "kafka.max.block.ms",
    "kafka.socket.connection.setup.timeout.ms",
    "kafkaConsumer.pollTimeoutMs",
)

PATIENT: Final = {"kafkaConsumer.pollTimeoutMs": "20000"}

SLACK_S: Final = bound_s(4)
"""The time that a busy machine may add; the default time-outs are 30 s and more."""

MAX_TIMEOUTS: Final = {"continuous": 4, "exactly once": 4}
"""How many time-outs a use may take that consists of several calls; others take two."""

MAX_CANCEL_S: Final = bound_s(1)
MAX_STOP_S: Final = bound_s(15)
INTERRUPT_S: Final = 0.2

PARTITION: Final = TopicPartition("t", 0)
RECORDS: Final = 6
PER_BATCH: Final = 2

CLIENTS: Final = ("kafka-python", "confluent")

SCAN_S: Final = {"confluent": 1.5}
"""How late librdkafka may see that a request has timed out: it looks once a second."""


BEGINNINGS: Final = {"PLAINTEXT": b"\0\0\0\x64", "SSL": b"\x16\x03\x03\0\x64"}
"""How a frame or a TLS record of 100 bytes begins."""


@pytest.fixture(scope="module", autouse=True)
def modules():
    """Import and compile what a first call does, which is no wait for a broker."""
    for client in (CONFLUENT, KAFKA_PYTHON):
        if client.preload is not None:
            client.preload()
    # Kernels are compiled at first use, which takes seconds where it was not done yet.
    with _broker() as broker:
        for use in ("read", "write"):
            options = {"client": "confluent", "kafka.bootstrap.servers": broker.bootstrap_servers}
            USES[use](options, PARTITION.topic)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def nothing_left():
    threads, files = set(threading.enumerate()), _open_files()
    yield
    # A thread that has closed its socket may take a moment to end.
    await_until(lambda: set(threading.enumerate()) <= threads and _open_files() <= files)


@contextmanager
def _in_time(timeouts: int, client: str, timeout_s: float | None = None) -> Iterator[None]:
    begun = time.monotonic()
    yield
    max_s = timeouts * (timeout_s or TIMEOUT_S[client]) + SLACK_S + SCAN_S.get(client, 0.0)
    assert time.monotonic() - begun < max_s


def _timeouts(client: str, is_reached: Callable[[], object]) -> Iterator[float]:
    """Yield longer and longer time-outs, until one is enough to get to what stalls."""
    for doublings in range(6):
        yield TIMEOUT_S[client] * 2**doublings
        if is_reached():
            return
    pytest.fail("no call got to what stalls")


def _supported(*uses: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the uses by each client that can: `confluent` has no transactions."""
    return [
        (client, *use)
        for client in CLIENTS
        for use in uses
        if client == "kafka-python" or next(iter(use)) not in TRANSACTIONAL
    ]


def _options(
    client: str, address: str, protocol: str = "PLAINTEXT", timeout_s: float | None = None
) -> dict[str, str]:
    return {
        **dict.fromkeys(TIMEOUTS, str(round(1_000 * (timeout_s or TIMEOUT_S[client])))),
        "client": client,
        "kafka.bootstrap.servers": address,
        "kafka.security.protocol": protocol,
    }


@pytest.mark.parametrize("client", CLIENTS)
def test_the_wait_for_a_topic_that_does_not_exist_is_logged(client, caplog):
    """Someone who waits for the error sees its reason, once for a topic."""
    with _broker() as broker, pytest.raises(UnknownTopicError):
        USES["write"](_options(client, broker.bootstrap_servers), "missing")
    [message] = [each for each in caplog.messages if "'missing'" in each]
    assert message == (
        "The brokers do not know the topic 'missing'. A write waits "
        f"{TIMEOUT_S[client]:g} s for it to be created (kafka.max.block.ms), and then fails"
    )


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("client", "use", "protocol"),
    _supported(*((use, "SSL") for use in USES), ("plan", "PLAINTEXT")),
)
def test_a_broker_that_never_answers(client, use, protocol):
    with silent_listener() as listener:
        for timeout_s in _timeouts(client, lambda: listener.connections):
            options = _options(client, listener.address, protocol, timeout_s)
            timeouts = MAX_TIMEOUTS.get(use, 2)
            with _in_time(timeouts, client, timeout_s), pytest.raises(BrokerUnreachableError):
                USES[use](options, "t")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("protocol", BEGINNINGS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_broker_that_sends_a_byte_at_a_time(client, protocol):
    """The deadline is the one of the whole answer, and of the whole handshake."""
    with trickling_listener(BEGINNINGS[protocol] + bytes(100)) as listener:
        options = _options(client, listener.address, protocol)
        with _in_time(2, client), pytest.raises(BrokerUnreachableError):
            USES["plan"](options, "t")


def _silent(_line: Line, _frame: bytes) -> None:
    """Send no answer."""


ALL_USES: Final = {**USES, "latest offsets": stream_offsets}

STALLS: Final = {"silent": _silent, "trickling": trickled}

STALLED: Final = (
    ("plan", "Metadata"),
    ("latest offsets", "ListOffsets"),
    ("read", "Fetch"),
    ("write", "InitProducerId"),
    ("write", "Produce"),
    ("transaction", "FindCoordinator"),
    ("transaction", "InitProducerId"),
    ("commit", "OffsetCommit"),
    ("committed offsets", "OffsetFetch"),
)
"""Uses, and an API that each of them needs."""


@contextmanager
def _broker(*lies: Lie, records: int = RECORDS) -> Iterator[HostileBroker]:
    with hostile_broker(*lies) as broker:
        broker.cluster.append(PARTITION, [bytes(100)] * records, PER_BATCH)
        yield broker


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("client", "use", "api", "stall"),
    # librdkafka has a deadline for each answer, which both stalls reach alike.
    [
        (client, use, api, stall)
        for client, use, api in _supported(*STALLED)
        for stall in (STALLS if client == "kafka-python" else ("silent",))
    ],
)
def test_an_answer_that_stalls(client, use, api, stall):
    with _broker(Lie(api, send=STALLS[stall])) as broker:
        for timeout_s in _timeouts(client, lambda: broker.answered[api]):
            options = _options(client, broker.bootstrap_servers, timeout_s=timeout_s)
            with _in_time(2, client, timeout_s), pytest.raises(PysparkKafkaError):
                ALL_USES[use](options, PARTITION.topic)


@contextmanager
def _reading(client: str, broker: HostileBroker) -> Iterator[Iterator[pa.RecordBatch]]:
    given = {
        **_options(client, broker.bootstrap_servers),
        **PATIENT,
        "subscribe": PARTITION.topic,
        "kafka.max.partition.fetch.bytes": "1",
    }
    with closing_clients(container_for(parse_source_options(given, QueryKind.BATCH))) as container:
        wanted = OffsetRange(PARTITION, 0, RECORDS)
        yield container.range_read().read(wanted, Projection(("value",)))


def _throttle(_request: object, response: Any) -> None:
    response.throttle_time_ms = DAYS_MS


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_pause_of_days_is_cut(client):
    """A reader that is throttled for longer than its time-out continues after that."""
    with (
        _broker(Lie("Fetch", answer=_throttle, times=1)) as broker,
        _in_time(3, client),
        _reading(client, broker) as batches,
    ):
        assert sum(batch.num_rows for batch in batches) == RECORDS


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(("client", "use"), _supported(("plan",), ("write",), ("transaction",)))
def test_a_cluster_that_pauses_for_days(client, use):
    with _broker(Lie("Metadata", answer=_throttle)) as broker:
        for timeout_s in _timeouts(client, lambda: broker.answered["Metadata"]):
            options = _options(client, broker.bootstrap_servers, timeout_s=timeout_s)
            with _in_time(2, client, timeout_s), suppress(PysparkKafkaError):
                USES[use](options, PARTITION.topic)


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_read_that_is_given_up_ends_at_once(client):
    with (
        _broker(Lie("Fetch", send=_silent, after=1)) as broker,
        _reading(client, broker) as batches,
    ):
        assert next(batches).num_rows
        begun = time.monotonic()
        batches.close()  # type: ignore[attr-defined]  # it is a generator
        assert time.monotonic() - begun < MAX_CANCEL_S


class InterruptError(Exception):
    """An error that a signal raises."""


STREAM_STALLS: Final[Sequence[tuple[str, dict[str, str]]]] = (
    ("Metadata", {}),
    ("Fetch", {}),
    ("Produce", {}),
    ("FindCoordinator", EXACTLY_ONCE),
    ("AddPartitionsToTxn", EXACTLY_ONCE),
    ("Produce", EXACTLY_ONCE),
    ("TxnOffsetCommit", EXACTLY_ONCE),
    ("EndTxn", EXACTLY_ONCE),
)
"""An API, and the options of a sink that needs it."""


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("client", "api", "sink"),
    [*(("kafka-python", *stall) for stall in STREAM_STALLS), ("confluent", "Fetch", {})],
)
def test_each_call_of_a_continuous_query_ends_in_time(client, api, sink):
    """A query may continue for as long as other brokers answer, but no call keeps it."""
    with _broker(Lie(api, send=_silent)) as broker:
        options = _options(client, broker.bootstrap_servers)
        source = parse_source_options({**options, "subscribe": "t"}, QueryKind.STREAM)
        written = parse_sink_options({**options, "topic": "t", **sink}, QueryKind.STREAM)
        with closing_clients(container_for(source)) as container:
            stream = container.stream_client(written, ContinuousSettings("group"))
            with closing(stream), suppress(PysparkKafkaError):
                _poll(client, stream, lambda: broker.answered[api] > 1)
        assert broker.answered[api]


def _poll(client: str, stream: StreamClient, is_enough: Callable[[], bool]) -> None:
    with _in_time(2, client):
        stream.assign(PartitionOffsets({PARTITION: 0}))
    deadline = time.monotonic() + 10 * TIMEOUT_S[client]
    while time.monotonic() < deadline and not is_enough():
        with _in_time(2, client):
            polled = stream.poll(TIMEOUT_S[client] / 4)
        for each in polled:
            with _in_time(2, client):
                stream.write(each, () if each.records is None else [each.records])


@contextmanager
def _streaming(client: str, broker: HostileBroker, **options: str) -> Iterator[StreamClient]:
    given = {**_options(client, broker.bootstrap_servers), "subscribe": PARTITION.topic, **options}
    source = parse_source_options(given, QueryKind.STREAM)
    with (
        closing_clients(container_for(source)) as container,
        closing(container.stream_client(None, ContinuousSettings("group"))) as stream,
    ):
        stream.assign(PartitionOffsets({PARTITION: 0}))
        yield stream


STREAM_FAILURES: Final[Mapping[str, tuple[Sequence[Lie], tuple[type[Exception], ...]]]] = {
    "silent": ([Lie("Fetch", send=_silent)], (BrokerUnreachableError,)),
    "silent about offsets as well": (
        [Lie(api, send=_silent) for api in ("Fetch", "ListOffsets")],
        (BrokerUnreachableError,),
    ),
    "not in the metadata": (
        [lies.with_partition_fields("Metadata", leader_id=lies.NO_NODE)],
        # librdkafka's request for offsets may time out before it says why.
        (LeaderUnavailableError, BrokerUnreachableError),
    ),
}
"""States of a leader, with the errors that a continuous query may have."""


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("failure", STREAM_FAILURES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_continuous_query_fails_in_time_if_a_leader_answers_no_fetch(client, failure):
    """The cluster answers other requests."""
    told, errors = STREAM_FAILURES[failure]
    with _broker(*told) as broker, _streaming(client, broker) as stream, pytest.raises(errors):
        _poll_until(stream, lambda: False)


@pytest.mark.usefixtures("nothing_left")
def test_a_fetch_that_returns_nothing_is_started_again(caplog):
    """``confluent`` continues where it was, though the broker answered each fetch."""
    lie = lies.with_partition_fields("Fetch", records=b"")
    with _broker(lie) as broker, _streaming("confluent", broker) as stream:
        _poll_until(stream, lambda: "started again" in caplog.text)
        broker.lies = ()
        assert _read(stream) == RECORDS
    [message] = [each for each in caplog.messages if "started again" in each]
    assert message.startswith("Nothing was fetched from t-0 for ")
    assert message.endswith(f"at offset 0 of {RECORDS}: the fetch is started again")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_partition_without_a_leader_is_logged_once(client, caplog):
    """A continuous query waits for a leader, and reads on once there is one."""
    without_leader = lies.with_partition_fields("Metadata", leader_id=-1)
    with _broker(without_leader) as broker, _streaming(client, broker) as stream:
        _poll_until(stream, lambda: "no leader" in caplog.text)
        asked = broker.answered["Metadata"]
        _poll_until(stream, lambda: broker.answered["Metadata"] > asked + 2)
        broker.lies = ()
        assert _read(stream) == RECORDS
        _poll_until(stream, lambda: "a leader again" in caplog.text)
    lost, found = [each for each in caplog.messages if each.startswith(f"{PARTITION} has ")]
    assert lost.startswith(f"t-0 has had no leader for {TIMEOUT_S[client]:g} s. ")
    assert found == "t-0 has a leader again"


def _poll_until(stream: StreamClient, is_enough: Callable[[], bool]) -> None:
    """Poll until a condition is true; there are no records before."""

    def is_over() -> bool:
        assert not stream.poll(0.1)
        return is_enough()

    await_until(is_over)


@contextmanager
def _near_replica(kind: str) -> Iterator[HostileBroker]:
    """Run a leader that names a replica to each consumer with a rack, whatever that one does."""
    addresses: dict[int, tuple[str, str, str]] = {}

    def with_replica(_request: object, response: Any) -> None:
        broker = type(response.brokers[0])
        response.brokers = [
            broker(node_id=node, host=host, port=int(port), rack=None)
            for node, (host, _, port) in addresses.items()
        ]

    known = Lie("Metadata", answer=with_replica)
    with ExitStack() as stack:
        if kind == "silent":
            addresses[1] = stack.enter_context(silent_listener()).address.partition(":")
        elif kind != "not in the metadata":
            behind = stack.enter_context(
                _broker(known, records=0 if kind == "empty" else PER_BATCH)
            )
            addresses[1] = behind.bootstrap_servers.partition(":")
            if kind == "refuses":
                behind.close()

        def name_replica(request: Any, response: Any) -> None:
            if request.rack_id:
                for topic in response.responses:
                    for partition in topic.partitions:
                        partition.preferred_read_replica, partition.records = 1, b""

        leader = stack.enter_context(_broker(known, Lie("Fetch", answer=name_replica)))
        addresses[0] = leader.bootstrap_servers.partition(":")
        yield leader


REPLICAS: Final = ("silent", "refuses", "not in the metadata", "empty", "behind")
"""States of the replica that a leader names."""

NEAR: Final = {"kafka.client.rack": "near"}


@pytest.mark.parametrize("kind", REPLICAS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_range_is_read_from_the_leader_if_its_replica_has_nothing(client, kind):
    with _near_replica(kind) as broker:
        given = {**_options(client, broker.bootstrap_servers), **NEAR, **PATIENT}
        source = parse_source_options({**given, "subscribe": PARTITION.topic}, QueryKind.BATCH)
        with closing_clients(container_for(source)) as container:
            whole = OffsetRange(PARTITION, 0, RECORDS)
            batches = container.record_reader().read(whole, Projection(("offset",)))
            offsets = [each for batch in batches for each in batch.column("offset").to_pylist()]
    assert offsets == list(range(RECORDS))


@pytest.mark.parametrize("kind", REPLICAS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_continuous_query_goes_to_the_leader_if_its_replica_has_nothing(
    client, kind, monkeypatch
):
    monkeypatch.setattr(near_replicas, "LEASE_S", 2.0)
    # One request for metadata may go to the replica, too.
    options = {**NEAR, "kafka.default.api.timeout.ms": "3000"}
    with _near_replica(kind) as broker, _streaming(client, broker, **options) as stream:
        assert _read(stream) == RECORDS


def _read(stream: StreamClient) -> int:
    """Poll until all records came, and return their number."""
    polled: list[PolledRecords] = []

    def is_read() -> bool:
        polled.extend(stream.poll(0.1))
        return bool(polled) and polled[-1].next_offset == RECORDS

    await_until(is_read)
    return sum(each.records.num_rows for each in polled if each.records is not None)


SILENCES: Final = ("Metadata", "ListOffsets", "OffsetCommit")


@pytest.mark.parametrize("apis", [*((api,) for api in SILENCES), SILENCES], ids="+".join)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_continuous_query_stops_while_its_driver_is_not_answered(client, apis, tmp_path):
    """Its time-outs are those of users."""
    with _broker() as broker:
        options = {"client": client, "kafka.bootstrap.servers": broker.bootstrap_servers}
        query = continuous.start(
            None,
            lambda _: None,
            source={**options, "subscribe": PARTITION.topic, "commitOffsetsToGroup": "group"},
            checkpointLocation=str(tmp_path),
        )
        await_until(lambda: query.status["isTriggerActive"])
        before = broker.answered.copy()
        broker.lies = tuple(Lie(api, send=_silent) for api in apis)
        broker.cluster.append(PARTITION, [bytes(100)], 1)
        try:
            await_until(lambda: broker.answered[apis[0]] > before[apis[0]])
        finally:
            begun = time.monotonic()
            query.stop()
        assert time.monotonic() - begun < MAX_STOP_S


@pytest.mark.parametrize("client", CLIENTS)
def test_a_bootstrap_server_that_stalls_is_left_for_another(client):
    with silent_listener() as listener, _broker() as broker:
        servers = f"{listener.address},{broker.bootstrap_servers}"
        given = {f"kafka.socket.connection.setup.timeout.{name}": "50" for name in ("ms", "max.ms")}
        for _ in range(3):
            options = {"client": client, "kafka.bootstrap.servers": servers, **given}
            stream_offsets(options, PARTITION.topic)


@final
class Interruption:
    """Raises ``InterruptError`` in the main thread, some time after a condition."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition
        self._thread = threading.Thread(target=self._run)
        self.at = math.inf
        """When it was raised, by ``time.monotonic``."""

    def _run(self) -> None:
        await_until(self._condition)
        time.sleep(INTERRUPT_S)
        self.at = time.monotonic()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def __enter__(self) -> Interruption:
        self._former = signal.signal(signal.SIGUSR1, _raise)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        signal.signal(signal.SIGUSR1, self._former)


def _raise(*_: object) -> None:
    raise InterruptError


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("use", "api"),
    [("read", "Fetch"), ("read", "Metadata"), ("plan", "Metadata"), ("write", "Produce")],
)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_interrupted_call_ends_at_once(client, use, api):
    with (
        _broker(Lie(api, send=_silent)) as broker,
        Interruption(lambda: broker.answered[api] > 0) as interruption,
    ):
        options = {"client": client, "kafka.bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(InterruptError):
            USES[use](options, PARTITION.topic)
        assert time.monotonic() - interruption.at < MAX_CANCEL_S
