import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import kafka
import pytest

from pyspark_kafka.brokers import EmbeddedBroker, KafkaCluster, jars, require_java
from pyspark_kafka.brokers import kafka as cluster
from pyspark_kafka.brokers.admin import known_leaders
from pyspark_kafka.brokers.errors import BrokerStartError, JarsError
from pyspark_kafka.brokers.jars import archive_path
from pyspark_kafka.brokers.settings import Node, new_nodes
from pyspark_kafka.domain.errors import KafkaRequestError, MissingDependencyError
from pyspark_kafka.domain.reading.errors import CorruptBatchError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld
from pyspark_kafka.testing.writing_contract import batch_of
from tests.slowness import bound_s

HEADERS = [{"key": "h", "value": b"1"}, {"key": "empty", "value": b""}, {"key": "h", "value": b"2"}]
SECONDS = bound_s(30)


CLIENTS = ("confluent", "kafka-python")
Cluster: TypeAlias = EmbeddedBroker | KafkaCluster


@contextmanager
def world_of(cluster: Cluster, client: str) -> Iterator[KafkaWorld]:
    with closing(KafkaWorld(client, str, cluster)) as world:  # type: ignore[arg-type]
        yield world


def write(
    cluster: Cluster, topic: str, partition: int, count: int, client: str = "confluent"
) -> None:
    with world_of(cluster, client) as world:
        writer = world.sink_container().record_writer()
        batch = batch_of(
            key=[b"k"] * count,
            value=[b"%d" % number for number in range(count)],
            partition=[partition] * count,
            headers=[HEADERS] * count,
        )
        writer.write(batch, topic)
        assert writer.flush().records == count


def read(
    cluster: Cluster, topic: str, partition: int, count: int, client: str = "confluent"
) -> list[tuple[Any, ...]]:
    with world_of(cluster, client) as world:
        wanted = OffsetRange(TopicPartition(topic, partition), 0, count)
        batches = world.container().record_reader().read(wanted, ALL_COLUMNS)
        return [
            (row["offset"], row["key"], row["value"], row["headers"])
            for batch in batches
            for row in batch.to_pylist()
        ]


def partitions_of(cluster: KafkaCluster, topic: str) -> list[int]:
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    return sorted(known_leaders(port, topic) or {})


def expected(count: int) -> list[tuple[Any, ...]]:
    return [(number, b"k", b"%d" % number, HEADERS) for number in range(count)]


both_clients = pytest.mark.parametrize(("writer", "reader"), list(product(CLIENTS, CLIENTS)))


@pytest.fixture(scope="module")
def embedded():
    with EmbeddedBroker() as broker:
        yield broker


@both_clients
def test_embedded_broker_serves_both_clients(embedded, writer, reader):
    topic = f"{writer}-{reader}"
    embedded.create_topic(topic, partitions=3)
    write(embedded, topic, 2, 20, writer)
    assert read(embedded, topic, 2, 20, reader) == expected(20)


def test_embedded_topic_has_the_partitions_asked_for(embedded):
    embedded.create_topic("three", partitions=3)
    with world_of(embedded, "kafka-python") as world:
        fetcher = world.container().offset_fetcher()
        found = fetcher.partitions(world.options(subscribe="three").subscription)
    assert {partition.partition for partition in found} == {0, 1, 2}


def test_embedded_topic_exists_already(embedded):
    embedded.create_topic("twice")
    with pytest.raises(KafkaRequestError, match="topic 'twice': Broker: Topic already exists"):
        embedded.create_topic("twice")


def test_embedded_cluster_of_three():
    with EmbeddedBroker(3) as cluster:
        assert len(set(cluster.bootstrap_servers.split(","))) == 3
        cluster.create_topic("spread", partitions=3)
        write(cluster, "spread", 1, 5)
        assert read(cluster, "spread", 1, 5, "kafka-python") == expected(5)


def test_embedded_broker_is_silent(capfd):
    with EmbeddedBroker() as broker:
        broker.create_topic("quiet")
    assert capfd.readouterr() == ("", "")


def test_embedded_broker_outside_of_its_block():
    broker = EmbeddedBroker()
    with pytest.raises(RuntimeError, match="with block"):
        _ = broker.bootstrap_servers


def test_embedded_broker_without_confluent_kafka(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[confluent\]"):
        EmbeddedBroker().__enter__()


@pytest.mark.parametrize("kind", [EmbeddedBroker, KafkaCluster])
def test_at_least_one_broker(kind):
    with pytest.raises(ValueError, match="at least one broker"):
        kind(0)


def test_import_loads_no_client():
    program = (
        "import sys, pyspark_kafka.brokers; "
        "print(sorted({'kafka', 'confluent_kafka', 'pyspark'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[]\n"


@pytest.fixture(scope="module")
def single_broker():
    with KafkaCluster() as cluster:
        yield cluster


@both_clients
def test_kafka_serves_both_clients(single_broker, writer, reader):
    topic = f"{writer}-{reader}"
    single_broker.create_topic(topic, partitions=2)
    write(single_broker, topic, 1, 20, writer)
    assert read(single_broker, topic, 1, 20, reader) == expected(20)


def test_partitions_are_added(single_broker):
    single_broker.create_topic("grows", partitions=2)
    single_broker.add_partitions("grows", 5)
    assert partitions_of(single_broker, "grows") == [0, 1, 2, 3, 4]
    write(single_broker, "grows", 4, 1)


def test_topic_is_deleted(single_broker):
    single_broker.create_topic("goes", partitions=3)
    single_broker.delete_topic("goes")
    assert partitions_of(single_broker, "goes") == []
    single_broker.create_topic("goes", partitions=1)
    assert partitions_of(single_broker, "goes") == [0]


def test_topic_has_its_config(single_broker):
    single_broker.create_topic("configured", config={"retention.ms": "1000"})
    with pytest.raises(KafkaRequestError, match="Unknown topic config name: nonsense"):
        single_broker.create_topic("misconfigured", config={"nonsense": "1"})


def test_records_are_deleted(single_broker):
    single_broker.create_topic("shrinks", partitions=2)
    write(single_broker, "shrinks", 1, 10)
    single_broker.delete_records({("shrinks", 1): 7})
    zero, one = (TopicPartition("shrinks", number) for number in range(2))
    with world_of(single_broker, "kafka-python") as world:
        assert world.container().offset_fetcher().earliest([zero, one]) == {zero: 0, one: 7}


def test_batch_is_corrupted(single_broker):
    single_broker.create_topic("rots")
    for _ in range(2):
        write(single_broker, "rots", 0, 3)
    with pytest.raises(LookupError, match="offset 6 of rots-0"):
        single_broker.corrupt_batch("rots", 0, 6)
    single_broker.corrupt_batch("rots", 0, 4)
    assert read(single_broker, "rots", 0, 3, "kafka-python") == expected(3)
    with pytest.raises(CorruptBatchError):
        read(single_broker, "rots", 0, 6, "kafka-python")


def test_topic_exists_already(single_broker):
    single_broker.create_topic("taken")
    with pytest.raises(KafkaRequestError, match="TopicAlreadyExists"):
        single_broker.create_topic("taken")


def test_unknown_topic_is_not_deleted(single_broker):
    with pytest.raises(KafkaRequestError, match="UnknownTopicOrPartition"):
        single_broker.delete_topic("never-was")


def test_data_stays_in_a_given_directory(tmp_path):
    with KafkaCluster(directory=tmp_path) as cluster:
        cluster.create_topic("kept")
        write(cluster, "kept", 0, 3)
    with KafkaCluster(directory=tmp_path) as cluster:
        assert read(cluster, "kept", 0, 3) == expected(3)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is mapped to memory")
def test_brokers_share_an_archive_of_classes(single_broker):
    """Java maps the archive of this version of Kafka, which the first start made."""
    maps = Path(f"/proc/{single_broker._processes[0].pid}/maps").read_text()
    assert str(archive_path(jars.KAFKA_VERSION, require_java())) in maps


def test_a_port_that_is_taken_meanwhile(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        chosen: list[tuple[Node, ...]] = []

        def choose(*given: Any) -> tuple[Node, ...]:
            nodes = new_nodes(*given)
            if not chosen:
                nodes = (replace(nodes[0], controller_port=taken.getsockname()[1]),)
            chosen.append(nodes)
            return nodes

        monkeypatch.setattr(cluster, "new_nodes", choose)
        with KafkaCluster() as kafka:
            kafka.create_topic("t")
    assert len(chosen) == 2


def test_start_that_fails(tmp_path):
    cluster = KafkaCluster(directory=tmp_path, config={"num.io.threads": "none"})
    with pytest.raises(BrokerStartError, match=r"Invalid value none for configuration num\.io"):
        cluster.__enter__()


def test_cluster_outside_of_its_block():
    cluster = KafkaCluster()
    with pytest.raises(RuntimeError, match="with block"):
        _ = cluster.bootstrap_servers
    with pytest.raises(RuntimeError, match="with block"):
        cluster.create_topic("t")
    with pytest.raises(RuntimeError, match="is not running"):
        cluster.kill_broker(0)


@pytest.fixture(scope="module")
def three_brokers():
    with KafkaCluster(3) as cluster:
        yield cluster


def test_two_of_three_brokers_serve(three_brokers):
    three_brokers.create_topic("replicated", partitions=3)
    for partition in range(3):
        write(three_brokers, "replicated", partition, 10)

    three_brokers.kill_broker(1)
    for partition in range(3):
        assert read(three_brokers, "replicated", partition, 10) == expected(10)
    three_brokers.create_topic("meanwhile", partitions=2, replication_factor=2)
    write(three_brokers, "meanwhile", 0, 10)

    three_brokers.start_broker(1)
    three_brokers.create_topic("afterwards", partitions=3)
    for partition in range(3):
        write(three_brokers, "afterwards", partition, 10, "kafka-python")


def test_broker_is_stopped_and_started(three_brokers):
    three_brokers.create_topic("survives", partitions=3)
    three_brokers.stop_broker(0)
    with pytest.raises(RuntimeError, match="broker 0 is not running"):
        three_brokers.kill_broker(0)
    write(three_brokers, "survives", 0, 10)
    three_brokers.start_broker(0)
    with pytest.raises(RuntimeError, match="broker 0 is already running"):
        three_brokers.start_broker(0)
    assert read(three_brokers, "survives", 0, 10) == expected(10)


def test_replicas_move_to_other_brokers(three_brokers):
    three_brokers.create_topic("moves", replication_factor=2)
    write(three_brokers, "moves", 0, 10)
    for brokers in ([2, 1], [1, 0], [0, 1]):
        three_brokers.reassign_partition("moves", 0, brokers)
        three_brokers.elect_leader("moves", 0)
        assert_leader(three_brokers, "moves", brokers[0])
    # An unnecessary election does nothing.
    three_brokers.elect_leader("moves", 0)
    assert read(three_brokers, "moves", 0, 10) == expected(10)


def test_elections_and_moves_that_the_controller_refuses(three_brokers):
    three_brokers.create_topic("stays")
    with pytest.raises(KafkaRequestError, match=r"reassignment of stays-0.*InvalidReplica"):
        three_brokers.reassign_partition("stays", 0, [0, 7])
    with pytest.raises(KafkaRequestError, match=r"preferred election.*UnknownTopicOrPartition"):
        three_brokers.elect_leader("never-was", 0)


def assert_leader(cluster: KafkaCluster, topic: str, leader: int) -> None:
    ports = [int(each.rpartition(":")[2]) for each in cluster.bootstrap_servers.split(",")]
    deadline = time.monotonic() + SECONDS
    while {(known_leaders(port, topic) or {}).get(0) for port in ports} != {leader}:
        assert time.monotonic() < deadline
        time.sleep(0.02)


OLDER_VERSION = "3.9.1"


@pytest.mark.skipif(
    not (jars.cache_directory() / f"kafka-{OLDER_VERSION}").is_dir(),
    reason="the long run of verification.soak downloads the jars of this version",
)
def test_broker_is_upgraded():
    with KafkaCluster(version=OLDER_VERSION) as cluster:
        cluster.create_topic("upgraded")
        write(cluster, "upgraded", 0, 3)
        with kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
            before = admin.describe_features()["metadata.version"]
        cluster.stop_broker(0)
        cluster.start_broker(0, jars.KAFKA_VERSION)
        cluster.upgrade_features()
        with kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
            after = admin.describe_features()["metadata.version"]
        assert before["finalized"] < after["finalized"]
        assert after["finalized"][1] == after["supported"][1]
        cluster.upgrade_features()
        assert read(cluster, "upgraded", 0, 3) == expected(3)


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about a process")
def test_process_ends_with_python(tmp_path):
    """A process that was started for a cluster ends when Python is killed."""
    program = (
        "import pathlib, time\n"
        "from pyspark_kafka.brokers.java import JavaProcess\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "print(JavaProcess(['sleep', '300'], here, here / 'log').pid, flush=True)\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as python:
        assert python.stdout is not None
        pid = int(python.stdout.readline())
        assert is_alive(pid)
        python.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_jars_are_resolved_once(cache, monkeypatch):
    runs: list[Path] = []

    def run_ivy(_: jars.JarSet, directory: Path, __: Path) -> None:
        runs.append(directory)
        time.sleep(0.2)
        (directory / "libs").mkdir()

    monkeypatch.setattr(jars, "_run_ivy", run_ivy)
    abandoned = cache / "kafka-4.3.1.part-killed"
    abandoned.mkdir(parents=True)
    threads = [threading.Thread(target=jars.kafka_jars) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 1
    assert sorted(os.listdir(cache)) == ["kafka-4.3.1", "kafka-4.3.1.lock"]


def test_jars_that_cannot_be_resolved(cache):
    unknown = jars.JarSet(
        "unknown-1", (jars.Artifact("org.apache.kafka", "no-such-artifact", "0"),), transitive=False
    )
    with pytest.raises(JarsError, match="UNRESOLVED DEPENDENCIES"):
        jars.resolve(unknown)
    assert not (cache / "unknown-1").exists()


def test_jars_without_pyspark(cache, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pyspark-kafka\[spark\]"):
        jars.connector_jars()
    assert not (cache / "connector-4.2.0").exists()


def test_cache_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert jars.cache_directory() == tmp_path / "own"
    monkeypatch.delenv("PYSPARK_KAFKA_CACHE")
    assert jars.cache_directory() == tmp_path / "xdg" / "pyspark-kafka"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jars.cache_directory() == tmp_path / "home" / ".cache" / "pyspark-kafka"


def test_connector_jars_exist():
    found = (*jars.connector_jars(), *jars.avro_jars())
    assert len(found) == 4 + 1
    assert all(jar.is_file() for jar in found)
