"""Brokers that fail, move and slow down while a range is read."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition
from kafka.errors import UnknownBrokerIdError
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    LeaderUnavailableError,
    PysparkKafkaError,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record, await_until, numbered
from pyspark_kafka.testing.stream_task import StreamTask
from tests.slowness import bound_s

from ..servers.listeners import cluster_listening
from ..servers.racked import RackedCluster

RECORDS = 20_000
SIZE = 1_000

# Little is fetched ahead, so that what is done to a broker between two batches is noticed.
LITTLE_AHEAD = {
    "confluent": {
        "kafka__fetch__message__max__bytes": "100000",
        "kafka__queued__max__messages__kbytes": "200",
        "kafka__queued__min__messages": "1",
    },
    "kafka-python": {"kafka__max__partition__fetch__bytes": "100000"},
}

PATIENT = {"kafkaConsumer__pollTimeoutMs": "60000"}
"""A killed broker leads its partitions for 6 s before another is elected."""

HASTY = {"kafkaConsumer__pollTimeoutMs": "2000", "kafka__default__api__timeout__ms": "2000"}
BOUND_S = bound_s(20)
"""How long an error may take under ``HASTY``: a few times as long, on a busy machine."""

KEPT = {"log.retention.ms": "-1"}
"""Records have old timestamps."""

SESSION_MS = 2_000
QUOTA_BYTES = 5_000_000
PASSWORD = "user-secret"  # noqa: S105
LOGIN = {
    "kafka__security__protocol": "SASL_PLAINTEXT",
    "kafka__sasl__mechanism": "PLAIN",
    "kafka__sasl__jaas__config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="reader" password="{PASSWORD}";'
    ),
}


@pytest.fixture(scope="module")
def three_brokers():
    # Leaders are where a test puts them.
    config = KEPT | {"auto.leader.rebalance.enable": "false"}
    with RackedCluster(3, config=config) as cluster:
        yield cluster


@dataclass(frozen=True)
class OneBroker:
    """A broker, and the address at which sessions are short."""

    cluster: KafkaCluster
    sasl: str


@pytest.fixture(scope="module")
def one_broker():
    """Run a broker that creates topics by itself, with short quota windows and short sessions."""
    [port] = free_ports(1)
    sasl = f"127.0.0.1:{port}"
    config = KEPT | {
        "auto.create.topics.enable": "true",
        "quota.window.num": "2",
        "sasl.enabled.mechanisms": "PLAIN",
        "connections.max.reauth.ms": str(SESSION_MS),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'user_reader="{PASSWORD}";'
        ),
    }
    with cluster_listening({"SASL_PLAINTEXT": sasl}, config) as cluster:
        yield OneBroker(cluster, sasl)


@pytest.fixture(scope="module")
def replicated(three_brokers):
    return filled(three_brokers, "replicated")


@pytest.fixture(scope="module")
def single(one_broker):
    return filled(one_broker.cluster, "single")


def filled(cluster: KafkaCluster, topic: str) -> TopicPartition:
    cluster.create_topic(topic)
    partition = TopicPartition(topic, 0)
    records = [Record(value(number)) for number in range(RECORDS)]
    KafkaWorld("confluent", lambda: topic, cluster).produce(partition, records)
    return partition


def value(number: int) -> bytes:
    return b"%08d" % number + bytes(SIZE)


@dataclass
class Reading:
    batches: Iterator[pa.RecordBatch]
    offsets: list[int] = field(default_factory=list)

    def read_until(self, offset: int) -> None:
        while not self.offsets or self.offsets[-1] < offset:
            self._take(next(self.batches))

    def read_rest(self) -> list[int]:
        for batch in self.batches:
            self._take(batch)
        return self.offsets

    def _take(self, batch: pa.RecordBatch) -> None:
        offsets: list[Any] = batch.column("offset").to_pylist()
        assert batch.column("value").to_pylist() == [value(offset) for offset in offsets]
        self.offsets += offsets


@pytest.fixture
def read(client):
    worlds: list[KafkaWorld] = []

    def begin(
        cluster: KafkaCluster, partition: TopicPartition, end: int = RECORDS, **options: str
    ) -> Reading:
        worlds.append(KafkaWorld(client, str, cluster))
        container = worlds[-1].container(**{**LITTLE_AHEAD[client], **PATIENT, **options})
        reader = container.record_reader()
        columns = Projection(("offset", "value"))
        return Reading(reader.read(OffsetRange(partition, 0, end), columns))

    yield begin
    while worlds:
        worlds.pop().close()


def ports(cluster: KafkaCluster) -> list[int]:
    return [int(each.rpartition(":")[2]) for each in cluster.bootstrap_servers.split(",")]


def leader_of(cluster: KafkaCluster, partition: TopicPartition, asked: int = 0) -> int:
    leaders = known_leaders(ports(cluster)[asked], partition.topic)
    assert leaders is not None
    return leaders[partition.partition]


@contextmanager
def admin_of(cluster: KafkaCluster) -> Iterator[Any]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        yield admin
    finally:
        admin.close()


def move_leader(cluster: KafkaCluster, partition: TopicPartition, leader: int) -> None:
    """Make a broker the preferred leader, elect it, and wait until all know."""
    moved = ClientPartition(partition.topic, partition.partition)
    replicas = [leader, *(other for other in range(3) if other != leader)]
    await_until(lambda: _reassign(cluster, moved, replicas))
    with admin_of(cluster) as admin:
        await_until(lambda: not admin.list_partition_reassignments([moved]))
        await_until(lambda: _in_sync(admin, partition) == {0, 1, 2})
        admin.elect_leaders(0, {partition.topic: [partition.partition]})
    await_until(lambda: all(leader_of(cluster, partition, asked) == leader for asked in range(3)))


def _reassign(cluster: KafkaCluster, moved: ClientPartition, replicas: list[int]) -> bool:
    """Ask the controller; return false where the client does not know that broker yet."""
    with admin_of(cluster) as admin, suppress(UnknownBrokerIdError):
        assert admin.alter_partition_reassignments({moved: replicas}) == {moved: None}
        return True
    return False


def _in_sync(admin: Any, partition: TopicPartition) -> set[int]:
    [topic] = admin.describe_topics([partition.topic])
    return set(topic["partitions"][partition.partition]["isr_nodes"])


def lead_in_rack_0(cluster: KafkaCluster, partition: TopicPartition) -> None:
    """Move the leader there, and wait until it sends readers to their near replicas.

    It does as soon as it knows how far these are: when they have acknowledged a record.
    """
    move_leader(cluster, partition, 0)
    KafkaWorld("confluent", str, cluster).produce(partition, [Record(b"behind the range")])


@contextmanager
def frozen(cluster: KafkaCluster, index: int) -> Iterator[None]:
    pid = cluster._process(index).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def sent_by_rack(cluster: RackedCluster, client_id: str) -> Counter[str]:
    """Return the bytes that brokers sent to a client, by rack: a fetch is logged once answered."""
    sent = Counter[str]()
    for fetch in cluster.fetches(client_id):
        sent[fetch.broker_rack] += fetch.bytes
    return sent


ALL = list(range(RECORDS))


def test_a_killed_leader_is_followed_by_the_next(three_brokers, replicated, read):
    reading = read(three_brokers, replicated)
    reading.read_until(0)
    killed = leader_of(three_brokers, replicated)
    three_brokers.kill_broker(killed)
    try:
        assert reading.read_rest() == ALL
    finally:
        three_brokers.start_broker(killed)


def test_a_leader_that_moves_is_followed(three_brokers, replicated, read):
    reading = read(three_brokers, replicated)
    for step in range(4):
        reading.read_until(step * RECORDS // 5)
        move_leader(three_brokers, replicated, (leader_of(three_brokers, replicated) + 1) % 3)
    assert reading.read_rest() == ALL


def test_the_near_replica_is_read_from(three_brokers, replicated, read, fresh_name):
    """With a rack, a range is read from the replica there, even while the leader stands still."""
    lead_in_rack_0(three_brokers, replicated)
    name = fresh_name()
    near = {"kafka__client__id": name, "kafka__client__rack": "rack-1"}
    reading = read(three_brokers, replicated, **near)
    reading.read_until(1_000)
    with frozen(three_brokers, 0):
        assert reading.read_rest() == ALL
        assert leader_of(three_brokers, replicated, asked=1) == 0
    await_until(lambda: sent_by_rack(three_brokers, name).total() > RECORDS * SIZE)
    sent = sent_by_rack(three_brokers, name)
    assert sent["rack-1"] > 0.99 * sent.total()


def test_a_near_replica_skips_aborted_transactions(three_brokers, client, fresh_name):
    """It knows them by its own log, and the last stable offset as well."""
    partition = TopicPartition(fresh_name(), 0)
    three_brokers.create_topic(partition.topic, replication_factor=3)
    lead_in_rack_0(three_brokers, partition)
    writer = Producer(
        {"bootstrap.servers": three_brokers.bootstrap_servers, "transactional.id": fresh_name()}
    )
    writer.init_transactions(30)
    for end in (writer.commit_transaction, writer.abort_transaction) * 2:
        writer.begin_transaction()
        for number in range(10):
            writer.produce(partition.topic, f"{end.__name__} {number}", partition=0)
        writer.flush(30)
        end(30)
    world = KafkaWorld(client, fresh_name, three_brokers)
    found = []
    name = fresh_name()
    options = {
        "kafka__isolation__level": "read_committed",
        "kafka__client__id": name,
        "kafka__client__rack": "rack-1",
    }
    reader = world.container(**PATIENT, **options).record_reader()
    # A record before them, and the end of each transaction.
    for batch in reader.read(OffsetRange(partition, 0, 45), Projection(("value",))):
        found += batch.column("value").to_pylist()
    committed = [b"commit_transaction %d" % number for number in range(10)]
    assert found == [b"behind the range", *committed, *committed]
    await_until(lambda: sent_by_rack(three_brokers, name)["rack-1"] > 0)
    world.close()


def test_a_near_replica_that_is_killed_is_left_for_the_leader(three_brokers, replicated, read):
    lead_in_rack_0(three_brokers, replicated)
    reading = read(three_brokers, replicated, kafka__client__rack="rack-1")
    reading.read_until(1_000)
    three_brokers.kill_broker(1)
    try:
        assert reading.read_rest() == ALL
    finally:
        three_brokers.start_broker(1)


def test_a_near_replica_that_stands_still_is_left_for_the_leader(three_brokers, replicated, read):
    """It stays in sync for half a minute more, and its leader names it again and again."""
    lead_in_rack_0(three_brokers, replicated)
    reading = read(
        three_brokers,
        replicated,
        kafka__client__rack="rack-1",
        kafkaConsumer__pollTimeoutMs="10000",
    )
    reading.read_until(1_000)
    with frozen(three_brokers, 1):
        assert reading.read_rest() == ALL


def test_a_near_replica_that_stands_still_is_left_by_a_continuous_query(
    three_brokers, client, fresh_name
):
    world = KafkaWorld(client, fresh_name, three_brokers)
    topic = world.fresh_name()
    three_brokers.create_topic(topic, replication_factor=3)
    partition = TopicPartition(topic, 0)
    lead_in_rack_0(three_brokers, partition)
    timeouts = {"kafka__default__api__timeout__ms": "5000", "kafka__request__timeout__ms": "4000"}
    task = StreamTask(world.stream_client(None, kafka__client__rack="rack-1", **timeouts))
    task.assign({partition: 0})
    world.produce(partition, numbered(0, 10))
    task.read_to({partition: 11})
    with frozen(three_brokers, 1):
        # Acknowledged once the replica that stands still has left those in sync.
        world.produce(partition, numbered(10, 20))
        task.read_to({partition: 21})
    world.close()


def test_a_broker_that_restarts_is_waited_for(one_broker, single, read):
    reading = read(one_broker.cluster, single)
    reading.read_until(0)
    one_broker.cluster.kill_broker(0)
    with ThreadPoolExecutor(1) as thread:
        rest = thread.submit(reading.read_rest)
        one_broker.cluster.start_broker(0)
        assert rest.result(60) == ALL


def test_a_pause_of_the_caller_is_no_failure_of_the_broker(one_broker, single, read):
    reading = read(one_broker.cluster, single, kafka__default__api__timeout__ms="1000")
    reading.read_until(0)
    paused = time.monotonic()
    one_broker.cluster.kill_broker(0)
    one_broker.cluster.start_broker(0)
    await_until(lambda: time.monotonic() > paused + 1.5)
    assert reading.read_rest() == ALL


def test_a_broker_that_stays_away_is_an_error(one_broker, single, read):
    reading = read(one_broker.cluster, single, **HASTY)
    reading.read_until(0)
    one_broker.cluster.kill_broker(0)
    try:
        begun = time.monotonic()
        with pytest.raises(BrokerUnreachableError, match=one_broker.cluster.bootstrap_servers):
            reading.read_rest()
        assert time.monotonic() - begun < BOUND_S
    finally:
        one_broker.cluster.start_broker(0)
    assert reading.offsets == list(range(len(reading.offsets)))


def test_a_broker_that_stands_still_is_an_error(one_broker, single, read):
    reading = read(one_broker.cluster, single, **HASTY)
    reading.read_until(0)
    with frozen(one_broker.cluster, 0):
        begun = time.monotonic()
        with pytest.raises(BrokerUnreachableError, match=one_broker.cluster.bootstrap_servers):
            reading.read_rest()
        assert time.monotonic() - begun < BOUND_S
    assert reading.offsets == list(range(len(reading.offsets)))


def test_a_continuous_query_leaves_a_leader_that_stands_still(three_brokers, client, fresh_name):
    """A replica leads once the cluster takes the broker for dead, and no connection was lost."""
    world = KafkaWorld(client, fresh_name, three_brokers)
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, numbered(0, 10))
    # librdkafka asks for the new leader once a request timed out.
    timeouts = {"kafka__default__api__timeout__ms": "15000", "kafka__request__timeout__ms": "10000"}
    task = StreamTask(world.stream_client(None, **timeouts))
    task.assign({partition: 0})
    task.read_to({partition: 10})
    leader = leader_of(three_brokers, partition)
    other = (leader + 1) % 3
    with frozen(three_brokers, leader):
        await_until(lambda: leader_of(three_brokers, partition, asked=other) != leader)
        # The world's producer waits for the broker that stands still.
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{ports(three_brokers)[other]}"})
        for record in numbered(10, 20):
            producer.produce(partition.topic, record.value, partition=partition.partition)
        assert not producer.flush(30)
        task.read_to({partition: 20})
    world.close()


@pytest.mark.parametrize("timeout_s", [2, 15])
def test_a_continuous_query_tells_of_the_only_replica_that_stands_still(
    three_brokers, client, fresh_name, caplog, timeout_s
):
    """It is an error while the broker leads, and one line in the log once nothing does.

    The cluster may notice it between two requests of a task: the error says then what it noticed.
    """
    world = KafkaWorld(client, fresh_name, three_brokers)
    topic = world.fresh_name()
    three_brokers.create_topic(topic, partitions=3, replication_factor=1)
    partitions = [TopicPartition(topic, number) for number in range(3)]
    timeout_ms = str(1_000 * timeout_s)
    task = StreamTask(world.stream_client(None, kafka__default__api__timeout__ms=timeout_ms))
    task.assign(dict.fromkeys(partitions, 0))
    for partition in partitions:
        world.produce(partition, numbered(0, 10))
    task.read_to(dict.fromkeys(partitions, 10))
    with frozen(three_brokers, 2):

        def is_told() -> bool:
            try:
                task.client.poll(0.5)
            except (BrokerUnreachableError, LeaderUnavailableError):
                return True
            return "has had no leader" in caplog.text

        await_until(is_told, bound_s(90))
    world.close()


def test_a_deleted_topic_is_an_error_and_stays_deleted(one_broker, read, fresh_name):
    deleted = filled(one_broker.cluster, f"deleted-{fresh_name()}")
    reading = read(one_broker.cluster, deleted, **HASTY)
    reading.read_until(0)
    one_broker.cluster.delete_topic(deleted.topic)
    begun = time.monotonic()
    with pytest.raises(PysparkKafkaError, match=deleted.topic):
        reading.read_rest()
    assert time.monotonic() - begun < BOUND_S
    assert known_leaders(ports(one_broker.cluster)[0], deleted.topic) is None


def test_a_quota_is_honoured(one_broker, single, read, client):
    limited = f"limited-{client}"
    with admin_of(one_broker.cluster) as admin:
        set_quota(admin, limited, QUOTA_BYTES)
    begun = time.monotonic()
    assert read(one_broker.cluster, single, kafka__client__id=limited).read_rest() == ALL
    # A window's worth may come at once.
    assert time.monotonic() - begun > RECORDS * SIZE / QUOTA_BYTES - 2


def set_quota(admin: Any, client_id: str, bytes_per_s: int) -> None:
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[
                    entry.OpData(key="consumer_byte_rate", value=float(bytes_per_s), remove=False)
                ],
            )
        ],
        validate_only=False,
    )
    response = admin._manager.run(admin._send_request_to_controller, request)
    assert [entry.error_code for entry in response.entries] == [0]


def test_a_session_that_ends_is_no_end_of_a_range(one_broker, single, read):
    options = LOGIN | {"kafka__bootstrap__servers": one_broker.sasl}
    end = time.monotonic() + 2 * SESSION_MS / 1_000
    reading = read(one_broker.cluster, single, **options)
    step = 0
    while time.monotonic() < end:
        reading.read_until(min(step, RECORDS // 2))
        step += 100
    assert reading.read_rest() == ALL


def test_a_session_that_ends_in_a_pause_is_begun_again(one_broker, single, read):
    options = LOGIN | {"kafka__bootstrap__servers": one_broker.sasl}
    reading = read(one_broker.cluster, single, **options)
    reading.read_until(0)
    expired = time.monotonic() + 1.5 * SESSION_MS / 1_000
    await_until(lambda: time.monotonic() > expired)
    assert reading.read_rest() == ALL


def test_a_groups_offsets_are_known_wherever_its_coordinator_is(three_brokers, replicated, client):
    world = KafkaWorld(client, str, three_brokers)
    fetcher = world.container().offset_fetcher()
    fetcher.commit(client, PartitionOffsets({replicated: 1}))
    try:
        for round_number in range(3):
            for number in range(3):
                coordinator = TopicPartition("__consumer_offsets", number)
                move_leader(three_brokers, coordinator, (number + round_number) % 3)
                offset = 3 * round_number + number + 2
                fetcher.commit(client, PartitionOffsets({replicated: offset}))
                assert fetcher.committed(client, [replicated]) == {replicated: offset}
    finally:
        world.close()


def test_offsets_are_found_on_all_leaders(three_brokers, replicated, client):
    world = KafkaWorld(client, str, three_brokers)
    fetcher = world.container().offset_fetcher()
    first = fetcher.latest([replicated])
    try:
        for number in range(6):
            move_leader(three_brokers, replicated, number % 3)
            assert fetcher.latest([replicated]) == first
    finally:
        world.close()
