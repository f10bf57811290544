import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest

from pyspark_kafka.brokers import EmbeddedBroker, KafkaCluster, jars, require_java
from pyspark_kafka.brokers import kafka as cluster
from pyspark_kafka.brokers.admin import known_leaders
from pyspark_kafka.brokers.errors import BrokerStartError, JarsError
from pyspark_kafka.brokers.jars import archive_path
from pyspark_kafka.brokers.settings import Node, new_nodes
from pyspark_kafka.domain.errors import KafkaRequestError, MissingDependencyError

HEADERS = [("h", b"1"), ("empty", b""), ("h", b"2")]
SECONDS = 30.0


def confluent_config(options: dict[str, str]) -> dict[str, Any]:
    # The log level hides a line on deprecated properties.
    return {"log_level": 3} | {k.removeprefix("kafka."): v for k, v in options.items()}


def kafka_python_config(options: dict[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap_servers": options["kafka.bootstrap.servers"]}
    if version := options.get("kafka.broker.version.fallback"):
        config["api_version"] = tuple(int(part) for part in version.split(".")[:2])
    return config


Row = tuple[int, bytes | None, bytes | None, int, list[tuple[str, bytes]]]


def confluent_write(options: dict[str, str], topic: str, partition: int, count: int) -> None:
    failures: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error:
            failures.append(error)

    producer = confluent_kafka.Producer(confluent_config(options) | {"acks": "all"})
    for value in range(count):
        producer.produce(
            topic,
            key=b"k",
            value=str(value).encode(),
            partition=partition,
            headers=list(HEADERS),
            timestamp=1_000 + value,
            on_delivery=delivered,
        )
    assert producer.flush(SECONDS) == 0
    assert failures == []


def confluent_read(options: dict[str, str], topic: str, partition: int, count: int) -> list[Row]:
    consumer = confluent_kafka.Consumer(confluent_config(options) | {"group.id": "unused"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        rows = []
        for message in consumer.consume(count, SECONDS):
            assert message.error() is None
            offset, headers = message.offset(), message.headers()
            assert offset is not None
            assert isinstance(headers, list)
            row = (offset, message.key(), message.value(), message.timestamp()[1], headers)
            rows.append(row)
        return rows  # type: ignore[return-value]
    finally:
        consumer.close()


def kafka_python_write(options: dict[str, str], topic: str, partition: int, count: int) -> None:
    producer = kafka.KafkaProducer(acks="all", **kafka_python_config(options))
    try:
        sent = [
            producer.send(
                topic,
                key=b"k",
                value=str(value).encode(),
                partition=partition,
                headers=list(HEADERS),
                timestamp_ms=1_000 + value,
            )
            for value in range(count)
        ]
        assert [future.get(SECONDS).offset for future in sent] == list(range(count))
    finally:
        producer.close()


def kafka_python_read(options: dict[str, str], topic: str, partition: int, count: int) -> list[Row]:
    consumer = kafka.KafkaConsumer(
        enable_auto_commit=False,
        consumer_timeout_ms=int(SECONDS * 1000),
        **kafka_python_config(options),
    )
    try:
        assigned = kafka.TopicPartition(topic, partition)
        consumer.assign([assigned])
        consumer.seek(assigned, 0)
        return [
            (record.offset, record.key, record.value, record.timestamp, list(record.headers))
            for _, record in zip(range(count), consumer, strict=False)
        ]
    finally:
        consumer.close()


def partitions_of(options: dict[str, str], topic: str) -> list[int]:
    consumer = kafka.KafkaConsumer(enable_auto_commit=False, **kafka_python_config(options))
    try:
        return sorted(consumer.partitions_for_topic(topic) or ())
    finally:
        consumer.close()


def earliest(options: dict[str, str], topic: str, partition: int) -> int:
    consumer = kafka.KafkaConsumer(enable_auto_commit=False, **kafka_python_config(options))
    try:
        key = kafka.TopicPartition(topic, partition)
        return int(consumer.beginning_offsets([key])[key])
    finally:
        consumer.close()


def expected(count: int) -> list[Row]:
    return [
        (value, b"k", str(value).encode(), 1_000 + value, list(HEADERS)) for value in range(count)
    ]


WRITERS = pytest.mark.parametrize("write", [confluent_write, kafka_python_write])
READERS = pytest.mark.parametrize("read", [confluent_read, kafka_python_read])
Write = Callable[[dict[str, str], str, int, int], None]
Read = Callable[[dict[str, str], str, int, int], list[Row]]


@pytest.fixture(scope="module")
def embedded():
    with EmbeddedBroker() as broker:
        yield broker


@WRITERS
@READERS
def test_embedded_broker_serves_both_clients(embedded, write, read):
    topic = f"{write.__name__}-{read.__name__}"
    embedded.create_topic(topic, partitions=3)
    write(embedded.options, topic, 2, 20)
    assert read(embedded.options, topic, 2, 20) == expected(20)


def test_embedded_topic_has_the_partitions_asked_for(embedded):
    embedded.create_topic("three", partitions=3)
    assert partitions_of(embedded.options, "three") == [0, 1, 2]


def test_embedded_topic_exists_already(embedded):
    embedded.create_topic("twice")
    with pytest.raises(KafkaRequestError, match="topic 'twice': Broker: Topic already exists"):
        embedded.create_topic("twice")


def test_embedded_cluster_of_three():
    with EmbeddedBroker(3) as cluster:
        assert len(set(cluster.bootstrap_servers.split(","))) == 3
        cluster.create_topic("spread", partitions=3)
        confluent_write(cluster.options, "spread", 1, 5)
        assert kafka_python_read(cluster.options, "spread", 1, 5) == expected(5)


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


@WRITERS
@READERS
def test_kafka_serves_both_clients(single_broker, write, read):
    topic = f"{write.__name__}-{read.__name__}"
    single_broker.create_topic(topic, partitions=2)
    write(single_broker.options, topic, 1, 20)
    assert read(single_broker.options, topic, 1, 20) == expected(20)


def test_partitions_are_added(single_broker):
    single_broker.create_topic("grows", partitions=2)
    single_broker.add_partitions("grows", 5)
    assert partitions_of(single_broker.options, "grows") == [0, 1, 2, 3, 4]
    confluent_write(single_broker.options, "grows", 4, 1)


def test_topic_is_deleted(single_broker):
    single_broker.create_topic("goes", partitions=3)
    single_broker.delete_topic("goes")
    assert partitions_of(single_broker.options, "goes") == []
    single_broker.create_topic("goes", partitions=1)
    assert partitions_of(single_broker.options, "goes") == [0]


def test_topic_has_its_config(single_broker):
    single_broker.create_topic("configured", config={"retention.ms": "1000"})
    with pytest.raises(KafkaRequestError, match="Unknown topic config name: nonsense"):
        single_broker.create_topic("misconfigured", config={"nonsense": "1"})


def test_records_are_deleted(single_broker):
    single_broker.create_topic("shrinks", partitions=2)
    confluent_write(single_broker.options, "shrinks", 1, 10)
    single_broker.delete_records({("shrinks", 1): 7})
    assert earliest(single_broker.options, "shrinks", 0) == 0
    assert earliest(single_broker.options, "shrinks", 1) == 7


def test_batch_is_corrupted(single_broker):
    single_broker.create_topic("rots")
    for _ in range(2):
        confluent_write(single_broker.options, "rots", 0, 3)
    with pytest.raises(LookupError, match="offset 6 of rots-0"):
        single_broker.corrupt_batch("rots", 0, 6)
    single_broker.corrupt_batch("rots", 0, 4)
    assert kafka_python_read(single_broker.options, "rots", 0, 3) == expected(3)
    with pytest.raises(kafka.errors.CorruptRecordError):
        kafka_python_read(single_broker.options, "rots", 0, 6)


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
        confluent_write(cluster.options, "kept", 0, 3)
    with KafkaCluster(directory=tmp_path) as cluster:
        assert confluent_read(cluster.options, "kept", 0, 3) == expected(3)


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
        confluent_write(three_brokers.options, "replicated", partition, 10)

    three_brokers.kill_broker(1)
    for partition in range(3):
        assert confluent_read(three_brokers.options, "replicated", partition, 10) == expected(10)
    three_brokers.create_topic("meanwhile", partitions=2, replication_factor=2)
    confluent_write(three_brokers.options, "meanwhile", 0, 10)

    three_brokers.start_broker(1)
    three_brokers.create_topic("afterwards", partitions=3)
    for partition in range(3):
        kafka_python_write(three_brokers.options, "afterwards", partition, 10)


def test_broker_is_stopped_and_started(three_brokers):
    three_brokers.create_topic("survives", partitions=3)
    three_brokers.stop_broker(0)
    with pytest.raises(RuntimeError, match="broker 0 is not running"):
        three_brokers.kill_broker(0)
    confluent_write(three_brokers.options, "survives", 0, 10)
    three_brokers.start_broker(0)
    with pytest.raises(RuntimeError, match="broker 0 is already running"):
        three_brokers.start_broker(0)
    assert confluent_read(three_brokers.options, "survives", 0, 10) == expected(10)


def test_replicas_move_to_other_brokers(three_brokers):
    three_brokers.create_topic("moves", replication_factor=2)
    confluent_write(three_brokers.options, "moves", 0, 10)
    for brokers in ([2, 1], [1, 0], [0, 1]):
        three_brokers.reassign_partition("moves", 0, brokers)
        three_brokers.elect_leader("moves", 0)
        assert_leader(three_brokers, "moves", brokers[0])
    # An unnecessary election does nothing.
    three_brokers.elect_leader("moves", 0)
    assert confluent_read(three_brokers.options, "moves", 0, 10) == expected(10)


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
    reason="the long run of tests.soak downloads the jars of this version",
)
def test_broker_is_upgraded():
    with KafkaCluster(version=OLDER_VERSION) as cluster:
        cluster.create_topic("upgraded")
        confluent_write(cluster.options, "upgraded", 0, 3)
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
        assert confluent_read(cluster.options, "upgraded", 0, 3) == expected(3)


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
