import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from pyspark_kafka.adapters.kafka_python.cluster_metadata import ClusterMetadata
from pyspark_kafka.adapters.kafka_python.connections import RawConnection
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.domain.topic_partition import TopicPartition
from tests.servers.hostile_broker import Lie, Line, framed, hostile_broker
from tests.servers.hostile_cluster import hostile_cluster
from tests.servers.silent_listeners import silent_listener

PROGRAM = """
import sys, threading
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import KafkaTimeoutError
from pyspark_kafka.adapters.kafka_python.cluster_metadata import connect
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper

errors = ErrorMapper("127.0.0.1:1", 200)
try:
    connect({client}, {{"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 200}}, errors)
except KafkaTimeoutError as error:
    assert "ECONNREFUSED" in str(error), error
    others = set(threading.enumerate()) - {{threading.main_thread()}}
    for thread in others:
        thread.join(timeout=10)
    sys.exit(str(others) if any(thread.is_alive() for thread in others) else 0)
sys.exit("it connected")
"""


@pytest.mark.parametrize("client", ["KafkaAdminClient", "KafkaConsumer"])
def test_a_client_that_cannot_connect_says_why_and_leaves_no_thread(client):
    """A failed connection is the reason of the error, and its network thread ends.

    In a process of its own: kafka-python leaves the socket of a refused connection to the garbage
    collector, which would warn within another test.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(client=client)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _late(line: Line, frame: bytes) -> None:
    time.sleep(0.2)
    line.send(framed(frame))


def test_a_connection_that_is_being_made_has_no_other_requests():
    """The metadata are asked for meanwhile: their answer must not come over the taken socket."""
    with hostile_broker(Lie("ApiVersions", send=_late, after=1)) as broker:
        servers = broker.bootstrap_servers
        metadata = ClusterMetadata({"bootstrap_servers": servers}, ErrorMapper(servers, 20_000))
        assert metadata.nodes() == [0]
        asked = broker.answered["Metadata"]
        metadata._manager.cluster.request_update()
        connected = metadata.connect(0)
        assert not connected.in_flight_requests
        metadata.refresh()
        assert broker.answered["Metadata"] > asked
        connected.close()
        metadata.close()


@pytest.fixture
def two_brokers() -> Iterator[str]:
    """Return the bootstrap servers of a cluster whose second broker is silent."""
    with silent_listener() as silent:
        host, port = silent.address.split(":")

        def with_another(_request: Any, response: Any) -> None:
            broker = type(response.brokers[0])
            response.brokers.append(broker(node_id=1, host=host, port=int(port), rack=None))

        with hostile_broker(Lie("Metadata", answer=with_another)) as broker:
            yield broker.bootstrap_servers


def test_a_broker_that_lets_a_request_for_metadata_wait_is_not_asked_again(two_brokers):
    """The request stays in flight after its attempt, and a later one would wait for it."""
    errors = ErrorMapper(two_brokers, 20_000)
    for _ in range(10):
        with closing(ClusterMetadata({"bootstrap_servers": two_brokers}, errors)) as metadata:
            assert sorted(metadata.nodes()) == [0, 1]
            try:
                with errors.one_deadline(0.3):
                    metadata.refresh()
            except KafkaTimeoutError:
                metadata.refresh()


def test_leaders_that_are_refused_again_are_asked_of_another_broker():
    """A broker that is cut off from the cluster names former leaders as often as it is asked.

    Partitions are refused in turns.
    """
    first, second = (TopicPartition("t", number) for number in (0, 1))
    with hostile_cluster(2, 2) as cluster:
        errors = ErrorMapper(cluster.bootstrap_servers, 20_000)
        config = {"bootstrap_servers": cluster.bootstrap_servers}
        with closing(ClusterMetadata(config, errors)) as metadata:
            metadata.leader(first)
            metadata.refresh()
            cut_off, former = metadata._asked, metadata.leader_epoch(first)
            assert cut_off is not None
            for partition in (first, second):
                cluster.elect(partition, 1 - cut_off, unknown_to=cut_off)
            for partition in (first, second, first):
                metadata.invalidate(partition)
                metadata.leader(partition)
            assert metadata.leader_epoch(first) > former


def test_a_connection_that_ends_as_soon_as_it_is_made_is_lost_as_any_other():
    with hostile_broker() as broker:
        servers = broker.bootstrap_servers
        with closing(
            ClusterMetadata({"bootstrap_servers": servers}, ErrorMapper(servers, 20_000))
        ) as metadata:
            [node] = metadata.nodes()
            connected = metadata.connect(node)
            connected.connection_lost(None)
            with pytest.raises(KafkaConnectionError):
                RawConnection(connected, 1_000)
