import os
import sys
import time
from pathlib import Path

import pytest

from pyspark_kafka.adapters.confluent.stream_client import ConfluentStreamClient
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.settings import free_ports
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    OptionsError,
    UnsupportedFeatureError,
)
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, await_until
from pyspark_kafka.testing.stream_task import StreamTask, echo, stream_sink
from pyspark_kafka.testing.world import numbered

from .processes import threads


@pytest.fixture
def client():
    return "confluent"


def unreachable(**given: str) -> ConfluentStreamClient:
    [port] = free_ports(1)
    options = {
        "kafka.bootstrap.servers": f"127.0.0.1:{port}",
        "client": "confluent",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": "1000",
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    return ConfluentStreamClient(parse_source_options(options, QueryKind.STREAM), None)


def descriptors() -> int:
    if sys.platform != "linux":
        pytest.skip("asks Linux about open files")
    return len(list(Path("/proc/self/fd").iterdir()))


def test_windows(monkeypatch):
    options = {"kafka.bootstrap.servers": "h:1", "client": "confluent", "subscribe": "t"}
    parsed = parse_source_options(options, QueryKind.STREAM)
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(UnsupportedFeatureError, match=r"on Windows cannot .*use the client 'kafka"):
        ConfluentStreamClient(parsed, None)


def test_closed_clients_give_back_their_threads_and_files(world):
    """The consumer, the producer, and what wakes them are closed."""
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, numbered(0, 10))
    sink = stream_sink(world, world.topic(), exactly_once=False)
    files, running, clients = descriptors(), threads(), 12
    for _ in range(clients):
        task = StreamTask(world.stream_client(sink), echo)
        task.assign({partition: 0})
        task.read_to({partition: 10})
        task.settle()
        task.client.close()
    # The thread that closed them ends a moment later. One left behind by each would be twelve;
    # clients of other tests in this process open and close a few sockets of their own meanwhile.
    await_until(lambda: descriptors() < files + clients and threads() < running + clients)


@pytest.mark.parametrize("takes_records", [True, False])
def test_unreachable_brokers_are_reported_in_time(*, takes_records):
    """After the time-out of the client's requests, with the last reason; not before."""
    client = unreachable()
    client.assign(PartitionOffsets({TopicPartition("t", 0): 0}))
    started = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match="Connection refused"):
        client.poll(20.0, takes_records=takes_records)
    assert 1.0 <= time.monotonic() - started < 16.0
    client.close()


def test_a_setting_that_is_refused_is_an_error_of_options():
    client = unreachable(kafka__fetch__error__backoff__ms="soon")
    with pytest.raises(OptionsError, match=r"fetch\.error\.backoff\.ms"):
        client.assign(PartitionOffsets({TopicPartition("t", 0): 0}))
    client.close()


def test_the_users_own_settings_are_kept(world, caplog):
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, numbered(0, 1))
    task = StreamTask(world.stream_client(None, kafka__debug="conf"))
    with caplog.at_level("DEBUG", logger="pyspark_kafka.librdkafka"):
        task.assign({partition: 0})
        task.read_to({partition: 1})
    assert "fetch.wait.max.ms" in caplog.text


def test_fetches_go_on_when_the_broker_comes_back(fresh_name):
    with KafkaCluster() as cluster:
        world = KafkaWorld("confluent", fresh_name, cluster)
        partition = TopicPartition(world.topic(), 0)
        target = TopicPartition(world.topic(), 0)
        sink = stream_sink(world, target.topic, exactly_once=False)
        task = StreamTask(world.stream_client(sink), echo)
        world.produce(partition, numbered(0, 100))
        task.assign({partition: 0})
        task.read_to({partition: 100})
        task.settle()
        cluster.kill_broker(0)
        assert not task.client.poll(1.0)
        cluster.start_broker(0)
        world.produce(partition, numbered(100, 200))
        task.read_to({partition: 200})
        task.settle()
        written = [row["value"] for row in world.records(target)]
        assert written == [record.value for record in numbered(0, 200)]
        world.close()
