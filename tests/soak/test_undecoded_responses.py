"""A leader ends while its response waits in a socket, behind one that is worked off."""

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.testing import KafkaWorld, await_until
from verification.soak.numbers import DIGITS, NumberProducer, RecordShape
from verification.soak.stage import BROKERS

COUNT: Final = 200_000
SHAPE: Final = RecordShape(100, codec="zstd")
FETCH_BYTES: Final = 384 * 1024
"""A response is worked off in several polls, and fits into the buffers of a connection."""

_SLOW_S: Final = 0.2
"""The time of a function: longer than the pause before a new leader is looked for."""

_READ_S: Final = 60.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about sockets"),
    pytest.mark.timeout(300),
]


def test_no_record_is_passed_over_when_a_leader_ends(fresh_name):
    with (
        KafkaCluster(BROKERS) as cluster,
        closing(KafkaWorld("kafka-python", fresh_name, cluster)) as world,
    ):
        partition = TopicPartition(world.topic(), 0)
        producer = NumberProducer(cluster.bootstrap_servers, partition.topic, 1, 1_000)
        producer.use(SHAPE)
        producer.write_backlog(COUNT)
        stream = world.stream_client(None, kafka__max__partition__fetch__bytes=str(FETCH_BYTES))
        stream.assign(PartitionOffsets({partition: 0}))
        numbers: list[int] = []

        def process():
            for polled in stream.poll(1.0):
                values = [] if polled.records is None else polled.records["value"].to_pylist()
                numbers.extend(int(value[:DIGITS]) for value in values if value is not None)
                stream.write(polled, ())
                time.sleep(_SLOW_S)
            return len(numbers)

        await_until(lambda: process() > 0)
        ports = {node.id: node.port for node in cluster._live_nodes()}
        leader = _leader(partition, ports[0])
        await_until(lambda: _waiting(ports[leader]) >= FETCH_BYTES)
        cluster.kill_broker(leader)
        other = cluster._live_nodes()[0].port
        await_until(lambda: _leader(partition, other) not in {leader, -1})
        deadline = Deadline.after(_READ_S)
        while process() < COUNT:
            assert not deadline.has_passed, f"{len(numbers)} of {COUNT} numbers came"
    assert numbers == list(range(COUNT))


def _leader(partition, port):
    return (known_leaders(port, partition.topic) or {}).get(partition.partition, -1)


def _waiting(port):
    """Return the bytes in the receive buffers of connections to a port."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].split(":")[1], 16) for row in rows if row[2].endswith(f":{port:04X}"))
