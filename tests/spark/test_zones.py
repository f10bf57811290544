"""Executors in three racks, on three workers of a cluster, that read from brokers in three racks.

A broker's log says how many bytes it sent of which partition, and the rack that the consumer named.
Which executor read a partition comes from the task itself: it adds the rack of its process to each
record. So the share of bytes that an executor got in its own rack is known without the option, too.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from pyarrow import dataset

from pyspark_kafka.testing import await_until

from ..servers.racked import Fetch, RackedCluster
from ..servers.standalone_spark import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PROGRAM: Final = Path(__file__).parent / "programs" / "read_in_racks.py"
RACKS: Final = ("rack-0", "rack-1", "rack-2")
TOPIC: Final = "zones"
RECORDS: Final = 63_000
SIZE: Final = 100
REPLICAS: Final = [[(number // 3 + number + more) % 3 for more in range(3)] for number in range(9)]
"""Of nine partitions, the leader first: among three that one task reads, each broker leads one.

So without racks a third of the bytes stays in one, whichever executor runs a task. Tasks have
partitions of about the same total size: all have to be equal, or others would be read together.
"""


@dataclass(frozen=True)
class Reading:
    """The rows of a query, the rack that each partition was read in, and what brokers have sent."""

    rows: pa.Table
    read_in: dict[int, str]
    fetches: list[Fetch]

    @property
    def own_share(self) -> float:
        """The part of the bytes that came from a broker in the rack of the executor."""
        own = [
            fetch for fetch in self.fetches if fetch.broker_rack == self.read_in[fetch.partition]
        ]
        return sum(fetch.bytes for fetch in own) / sum(fetch.bytes for fetch in self.fetches)

    @property
    def named_racks(self) -> set[str]:
        return {fetch.named_rack for fetch in self.fetches}


@dataclass(frozen=True)
class Zones:
    """A driver that runs queries in all racks, one after another."""

    kafka: RackedCluster
    queries: IO[str]
    answers: IO[str]
    directory: Path

    def read(self, kind: str, client: str, rack_from: str | None) -> Reading:
        name = f"{kind}-{client}-{rack_from}"
        directory = self.directory / name
        directory.mkdir()
        source = {
            **self.kafka.options,
            "kafka.client.id": name,
            "client": client,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            **({"clientRackFrom": rack_from} if rack_from else {}),
            **({} if kind == "continuous" else {"maxPartitions": "3"}),
        }
        asked = {"kind": kind, "source": source, "directory": str(directory)}
        self.queries.write(f"{json.dumps(asked)}\n")
        assert self.answers.readline() == "ended\n", (self.directory / "driver.log").read_text()
        await_until(lambda: self._has_logged_all(name))
        table = dataset.dataset(directory, format="parquet").to_table()
        places = table.group_by(["partition", "rack"]).aggregate([]).to_pylist()
        read_in = {place["partition"]: place["rack"] for place in places}
        assert len(read_in) == len(places), "a partition was read in two racks"
        rows = table.drop_columns("rack").sort_by(
            [("partition", "ascending"), ("offset", "ascending")]
        )
        return Reading(rows, read_in, self.kafka.fetches(name))

    def _has_logged_all(self, client_id: str) -> bool:
        """Whether the brokers' logs have all bytes: a fetch is logged after it was answered."""
        sent = Counter[int]()
        for fetch in self.kafka.fetches(client_id):
            sent[fetch.partition] += fetch.bytes
        return all(
            sent[number] >= self.kafka.stored_bytes(TOPIC, number)
            for number in range(len(REPLICAS))
        )


@pytest.fixture(scope="module")
def kafka():
    config = {
        # Leaders stay where they are, also if the machine stalls.
        "auto.leader.rebalance.enable": "false",
        "broker.session.timeout.ms": "60000",
    }
    with RackedCluster(3, config=config) as cluster:
        fill(cluster)
        yield cluster


def fill(cluster: RackedCluster) -> None:
    topic = {"assignments": dict(enumerate(REPLICAS))}
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics({TOPIC: topic})
    unlimited = {"queue.buffering.max.messages": "0"}
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **unlimited})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%0*d" % (SIZE, number), partition=number % len(REPLICAS))
    assert producer.flush(120) == 0


@contextmanager
def driver(master: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    with (
        (directory / "driver.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, PROGRAM, master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            bufsize=1,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def zones(kafka, tmp_path_factory):
    directory = tmp_path_factory.mktemp("zones")
    workers = [{"KAFKA_CLIENT_RACK": rack} for rack in RACKS]
    with (
        standalone_cluster(directory, workers) as master,
        driver(master, directory) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        yield Zones(kafka, process.stdin, process.stdout, directory)


@pytest.mark.parametrize("kind", ["batch", "micro-batch", "continuous"])
def test_executors_read_from_replicas_in_their_own_racks(zones, kind, client):
    near = zones.read(kind, client, "environment")
    far = zones.read(kind, client, None)
    assert near.rows.num_rows == RECORDS
    assert near.rows.equals(far.rows)
    assert near.named_racks == set(RACKS)
    assert near.own_share >= 0.99
    assert far.named_racks == {""}
    assert 0.15 <= far.own_share <= 0.6
