"""Faults of a cluster as a whole: moves, elections, full disks, clocks, and an upgrade."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kafka.admin import ConfigResource, ConfigResourceType

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from tests.servers import faketime
from tests.servers.small_disk import can_mount, mounted_at
from tests.slowness import bound_s

from ..ledger import SOURCE
from ..numbers import SoakError
from .arena import Arena
from .broker_faults import THREE_BROKERS
from .fault import Faults

CLUSTER_FAULTS: Final = Faults()

MOUNTS: Final = "mounts"
FAKETIME: Final = "libfaketime"
OLDER_BROKERS: Final = "older brokers"
_THREE: Final = frozenset({THREE_BROKERS})

_ADMIN_S: Final = bound_s(30)
_COPY_S: Final = bound_s(60)
_UNCLEAN: Final = 1
MAX_PARTITIONS: Final = 12
_DISK_MB: Final = 256
_SKEWS_S: Final = (3_600, -3_540)
"""A broker refuses records that are more than an hour ahead of its clock, so not -3600."""

_MOVED: Final = 2
_INTERNAL: Final = ("__transaction_state", "__consumer_offsets")


def machine_offers(cluster: KafkaCluster) -> frozenset[str]:
    """Return what this machine and these brokers offer to faults."""
    offered = {
        MOUNTS: can_mount(),
        FAKETIME: faketime.find() is not None,
        OLDER_BROKERS: set(cluster._versions) != {KAFKA_VERSION},
    }
    return frozenset(name for name, is_there in offered.items() if is_there)


@CLUSTER_FAULTS.add("unclean elections allowed", needs=_THREE, joins_others=False, restarts=True)
def allow_unclean_elections(arena: Arena) -> Iterator[None]:
    """A broker is killed, and elections may be unclean: what two replicas have is not lost."""
    _set_unclean(arena, "true")
    broker = arena.chance.randrange(arena.brokers)
    arena.cluster.kill_broker(broker)
    arena.note(f"broker {broker} killed, elections may be unclean")
    try:
        with arena.cluster._admin("unclean elections") as admin:
            admin.elect_leaders(_UNCLEAN, raise_errors=False)
        arena.note("unclean leaders elected, where there was none")
        yield
    finally:
        arena.cluster.start_broker(broker)
        arena.note(f"broker {broker} is back")
        _set_unclean(arena, "false")


def _set_unclean(arena: Arena, value: str) -> None:
    config = {"unclean.leader.election.enable": value}
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, config) for topic in arena.topics]
    with admin_client(arena.cluster.bootstrap_servers, "elections", _ADMIN_S) as admin:
        admin.alter_configs(resources, incremental=True)


@CLUSTER_FAULTS.add("partitions reassigned", needs=_THREE, joins_others=False)
def reassign_partitions(arena: Arena) -> Iterator[None]:
    """Partitions leave a broker, records and coordinators with them, and come back elsewhere."""
    everyone = list(range(arena.brokers))
    for topic in (*arena.chance.sample(arena.topics, _MOVED), *_INTERNAL):
        partition = arena.chance.randrange(3)
        if arena.leader_of(topic, partition) < 0:
            continue
        fewer, all_again = arena.chance.sample(everyone, 2), arena.chance.sample(everyone, 3)
        for brokers in (fewer, all_again):
            arena.cluster.reassign_partition(topic, partition, brokers)
            arena.cluster.elect_leader(topic, partition)
            arena.note(f"{topic}-{partition} moved to {brokers}")
    yield


@CLUSTER_FAULTS.add("partition added")
def add_partition(arena: Arena) -> Iterator[None]:
    producer = arena.ledger.producer
    total = producer.partitions + 1
    if total <= MAX_PARTITIONS:
        arena.cluster.add_partitions(SOURCE, total)
        producer.spread_over(total)
        arena.note(f"partition {total - 1} added")
    yield


@CLUSTER_FAULTS.add(
    "disk of a broker full", needs=_THREE | {MOUNTS}, joins_others=False, restarts=True
)
def fill_broker_disk(arena: Arena) -> Iterator[None]:
    """The disk of a broker is full, on which the broker ends; it starts again with room."""
    cluster, broker = arena.cluster, arena.chance.randrange(arena.brokers)
    data = cluster._nodes[broker].data
    large = data.with_name("large")
    cluster.stop_broker(broker)
    data.rename(large)
    data.mkdir()
    try:
        megabytes = _DISK_MB + _used_mb(large)
        with mounted_at(data, megabytes) as disk:
            _copy(large, data)
            cluster.start_broker(broker)
            arena.note(f"broker {broker} is on a disk of {megabytes} MB")
            process = cluster._process(broker)
            disk.fill(arena.chance.randint(0, 4))
            arena.note("the disk is full")
            yield
            arena.await_event(lambda: not process.running, f"end of broker {broker}")
            arena.note(f"broker {broker} has ended")
            disk.make_room()
            cluster.stop_broker(broker)
            cluster.start_broker(broker)
            arena.note(f"broker {broker} is back, the disk has room")
            cluster.stop_broker(broker)
            shutil.rmtree(large)
            large.mkdir()
            _copy(data, large)
    finally:
        with suppress(RuntimeError):
            cluster.kill_broker(broker)
        data.rmdir()
        large.rename(data)
        cluster.start_broker(broker)
        arena.note(f"broker {broker} is on its first disk again")


@CLUSTER_FAULTS.add(
    "clock an hour off",
    # A coordinator with a clock ahead takes transactions for older than their time-out.
    "KAFKA_TRANSACTION_LOST",
    needs=_THREE | {FAKETIME},
    joins_others=False,
    restarts=True,
)
def skew_clock(arena: Arena) -> Iterator[None]:
    """The clock of a broker is an hour ahead or behind; it may lead, and coordinate."""
    cluster, broker = arena.cluster, arena.chance.randrange(arena.brokers)
    skew = arena.chance.choice(_SKEWS_S)
    java = cluster._java_path
    cluster.stop_broker(broker)
    cluster._java_path = faketime.write_java(arena.directory, java, skew)
    try:
        cluster.start_broker(broker)
        arena.note(f"clock of broker {broker} off by {skew} s")
    finally:
        cluster._java_path = java
    try:
        with admin_client(cluster.bootstrap_servers, "leaders", _ADMIN_S) as admin:
            admin.elect_leaders(0, raise_errors=False)
        yield
    finally:
        cluster.stop_broker(broker)
        cluster.start_broker(broker)
        arena.note(f"clock of broker {broker} right again")


@CLUSTER_FAULTS.add(
    "brokers upgraded", needs=_THREE | {OLDER_BROKERS}, joins_others=False, restarts=True
)
def upgrade(arena: Arena) -> Iterator[None]:
    """Brokers of an older Kafka are upgraded one by one, and then their features."""
    cluster = arena.cluster
    for broker in arena.chance.sample(range(arena.brokers), arena.brokers):
        before = cluster._versions[broker]
        if before != KAFKA_VERSION:
            cluster.stop_broker(broker)
            cluster.start_broker(broker, KAFKA_VERSION)
            arena.note(f"broker {broker} upgraded from {before} to {KAFKA_VERSION}")
            arena.run_for(arena.chance.uniform(0.0, 3.0))
    yield
    cluster.upgrade_features()
    arena.note("features upgraded")


def _used_mb(directory: Path) -> int:
    """Return how much room the files of a directory take, without their holes."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return sum(512 * path.stat().st_blocks for path in files) >> 20


def _copy(source: object, target: object) -> None:
    """Copy a broker's files; index files have holes, for which there is no room."""
    command = ("cp", "--archive", "--sparse=always", f"{source}/.", f"{target}/")
    ended = subprocess.run(command, check=False, capture_output=True, timeout=_COPY_S)
    if ended.returncode != 0:
        raise SoakError(f"files were not copied: {ended.stderr.decode(errors='replace')}")
