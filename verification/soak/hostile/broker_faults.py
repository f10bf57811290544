"""Faults of brokers, of their leaders and coordinators, and of their security settings."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafka.admin import ConfigResource, ConfigResourceType

from pyspark_kafka.brokers.admin import _metadata, admin_client
from pyspark_kafka.domain.options.option import INT64_MAX
from tests.servers.fault_proxy import Rules, Traffic
from tests.servers.proxied import SECURED_LISTENER
from tests.servers.secured import PASSWORD
from tests.slowness import bound_s

from ..ledger import SOURCE
from ..numbers import SoakError
from .arena import Arena
from .fault import Faults
from .topic_settings import is_set, topic_configured

BROKER_FAULTS: Final = Faults()

THREE_BROKERS: Final = "three brokers"
"""Offered by an arena whose partitions have leaders without any one broker."""

NEAR_REPLICA: Final = "near replica"
"""Offered by an arena whose queries read from the replicas of the broker ``NEAR`` (KIP-392)."""

NEAR: Final = 0
"""The broker in whose rack these queries are."""

RACKS: Final = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    # A replica that is behind is throttled only after it has fetched as much of a partition.
    "replica.fetch.max.bytes": "16384",
}
"""The settings of brokers whose leaders name this broker."""

_ADMIN_S: Final = bound_s(30)
_PREFERRED: Final = 0
_HANDSHAKE_S: Final = 0.02
_NEEDS: Final = frozenset({THREE_BROKERS})
_NEEDS_NEAR: Final = frozenset({THREE_BROKERS, NEAR_REPLICA})
_RATE: Final = "follower.replication.throttled.rate"
_THROTTLED: Final = "follower.replication.throttled.replicas"


@contextmanager
def _stopped(arena: Arena, broker: int) -> Iterator[None]:
    pid = arena.pid_of(broker)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        arena.note(f"broker {broker} goes on")


@BROKER_FAULTS.add("broker suspended")
def suspend_broker(arena: Arena) -> Iterator[None]:
    """A broker is stopped by a signal while its clients are connected."""
    broker = arena.chance.randrange(arena.brokers)
    arena.note(f"broker {broker} stopped by a signal")
    with _stopped(arena, broker):
        yield


@BROKER_FAULTS.add("broker suspended before handshakes")
def suspend_before_handshake(arena: Arena) -> Iterator[None]:
    """A broker is stopped by a signal, and its clients have to connect again."""
    broker = arena.chance.randrange(arena.brokers)
    arena.note(f"broker {broker} stopped before handshakes")
    with _stopped(arena, broker):
        for proxy in arena.proxies_of(broker):
            proxy.reset_all()
        yield


@BROKER_FAULTS.add("broker suspended in handshakes")
def suspend_in_handshake(arena: Arena) -> Iterator[None]:
    """A broker is stopped by a signal in the middle of the handshakes of its clients."""
    broker = arena.chance.randrange(arena.brokers)
    proxies = arena.proxies_of(broker)
    slow = Rules(to_client=Traffic(delay_s=_HANDSHAKE_S))
    with arena.ruled([broker], slow):
        before = [proxy.connections for proxy in proxies]
        for proxy in proxies:
            proxy.reset_all()
        arena.await_event(
            lambda: any(proxy.connections > n for proxy, n in zip(proxies, before, strict=True)),
            "new connection",
        )
    arena.note(f"broker {broker} stopped in handshakes")
    with _stopped(arena, broker):
        yield


@BROKER_FAULTS.add("broker killed", joins_others=False, restarts=True)
def kill_broker(arena: Arena) -> Iterator[None]:
    broker = arena.chance.randrange(arena.brokers)
    arena.note(f"broker {broker} killed")
    with _down(arena, broker, arena.cluster.kill_broker):
        yield


@BROKER_FAULTS.add("rolling restart", joins_others=False, restarts=True)
def roll_brokers(arena: Arena) -> Iterator[None]:
    """All brokers are shut down and started again, one after another."""
    for broker in arena.chance.sample(range(arena.brokers), arena.brokers):
        arena.note(f"broker {broker} shut down")
        with _down(arena, broker, arena.cluster.stop_broker):
            pass
    yield


@BROKER_FAULTS.add("preferred leaders elected", needs=_NEEDS, joins_others=False)
def elect_leaders(arena: Arena) -> Iterator[None]:
    """The preferred leaders of all partitions change, and are elected."""
    _move_leaders(arena, *arena.topics)
    yield


@BROKER_FAULTS.add("transaction coordinator moved", needs=_NEEDS, joins_others=False)
def move_transaction_coordinator(arena: Arena) -> Iterator[None]:
    """Other brokers lead the partitions of the topic of transactions."""
    _move_leaders(arena, "__transaction_state")
    yield


@BROKER_FAULTS.add("group coordinator moved", needs=_NEEDS, joins_others=False)
def move_group_coordinator(arena: Arena) -> Iterator[None]:
    """Other brokers lead the partitions of the topic of groups."""
    _move_leaders(arena, "__consumer_offsets")
    yield


@BROKER_FAULTS.add("near replica killed", needs=_NEEDS_NEAR, joins_others=False, restarts=True)
def kill_near_replica(arena: Arena) -> Iterator[None]:
    """The broker is killed that is read from, and that leads nothing of it."""
    _move_leaders(arena, SOURCE, from_broker=NEAR)
    arena.note(f"broker {NEAR} killed, which leads no numbers")
    with _down(arena, NEAR, arena.cluster.kill_broker):
        yield


@BROKER_FAULTS.add("near replica suspended", needs=_NEEDS_NEAR, joins_others=False)
def suspend_near_replica(arena: Arena) -> Iterator[None]:
    """The broker is stopped by a signal that is read from, and that leads nothing of it."""
    _move_leaders(arena, SOURCE, from_broker=NEAR)
    arena.note(f"broker {NEAR} stopped, which leads no numbers")
    with _stopped(arena, NEAR):
        yield


@BROKER_FAULTS.add("near replica behind", needs=_NEEDS_NEAR, joins_others=False)
def hold_near_replica_back(arena: Arena) -> Iterator[None]:
    """The replica that is read from leaves the in-sync ones, and is throttled for a while."""
    _move_leaders(arena, SOURCE, from_broker=NEAR)
    with _throttled(arena):
        # Only what is out of sync is throttled (ReplicaFetcherThread): a short stop makes it so,
        # and clients, which wait for longer, read on from it.
        with _stopped(arena, NEAR):
            arena.await_event(lambda: not any(_are_in_sync(arena)), "replicas out of sync")
        arena.note(f"the replicas of broker {NEAR} are out of sync, and throttled")
        yield
        arena.note(f"in sync are {sum(_are_in_sync(arena))} of them")
    arena.await_event(lambda: all(_are_in_sync(arena)), "replicas in sync")
    arena.note(f"the replicas of broker {NEAR} are in sync")


@contextmanager
def _throttled(arena: Arena) -> Iterator[None]:
    """Let the broker ``NEAR`` fetch numbers at a byte a second once it is behind."""
    _configure(arena, NEAR, _RATE, "1")
    try:
        with topic_configured(arena.cluster, SOURCE, {_THROTTLED: "*"}, arena.await_event):
            arena.await_event(
                lambda: is_set(arena.port_of(NEAR), SOURCE, _THROTTLED), "throttled replicas"
            )
            yield
    finally:
        _configure(arena, NEAR, _RATE, str(INT64_MAX))


def _are_in_sync(arena: Arena) -> list[bool]:
    """Return of each partition of numbers whether the replica of ``NEAR`` is in sync."""
    [topic] = _metadata(arena.port_of((NEAR + 1) % arena.brokers), [SOURCE]).topics
    return [NEAR in partition.isr_nodes for partition in topic.partitions]


@BROKER_FAULTS.add("certificates rotated", begins_first=True)
def rotate_certificates(arena: Arena) -> Iterator[None]:
    """Each broker gets a new key, one after another, and loads it while it runs."""
    number = arena.chance.randrange(1 << 32)
    for broker in range(arena.brokers):
        path = arena.proxied.issue_certificate(f"broker-{broker}-{number}")
        setting = f"listener.name.{SECURED_LISTENER.lower()}.ssl.keystore.location"
        _configure(arena, broker, setting, str(path))
        for proxy in arena.proxies_of(broker):
            proxy.reset_all()
        arena.note(f"certificate of broker {broker} rotated")
    yield


@BROKER_FAULTS.add("password rotated", "KAFKA_AUTHENTICATION_FAILED", begins_first=True)
def rotate_password(arena: Arena) -> Iterator[None]:
    """The user's password changes, which the queries do not know, and later changes back."""
    arena.proxied.set_password(f"other than {arena.chance.random()}")
    arena.note("password changed")
    try:
        for broker in range(arena.brokers):
            for proxy in arena.proxies_of(broker):
                proxy.reset_all()
        yield
    finally:
        arena.proxied.set_password(PASSWORD)
        arena.note("password changed back")


@BROKER_FAULTS.add("listener on another protocol", joins_others=False, restarts=True)
def change_protocol(arena: Arena) -> Iterator[None]:
    """A broker is restarted with a listener without TLS, by mistake, and restarted again."""
    broker = arena.chance.randrange(arena.brokers)
    properties = arena.cluster._nodes[broker].properties
    right = properties.read_text()
    wrong = right.replace(f"{SECURED_LISTENER}:SASL_SSL", f"{SECURED_LISTENER}:SASL_PLAINTEXT")
    assert wrong != right
    _restart_with(arena, broker, wrong)
    # A broker that was down leads nothing: clients would not miss it.
    _elect_preferred(arena)
    arena.note(f"broker {broker} listens without TLS")
    try:
        yield
    finally:
        _restart_with(arena, broker, right)
        arena.note(f"broker {broker} listens with TLS")


def _move_leaders(arena: Arena, *topics: str, from_broker: int | None = None) -> None:
    """Let another broker lead each partition of some topics, which every broker has.

    Or, if it is given, let others than one broker lead them.
    """
    everyone = range(arena.brokers)
    leaders = {
        (topic, partition): leader
        for topic in topics
        for partition, leader in arena.leaders_of(topic).items()
    }
    moved = {}
    for key, leader in leaders.items():
        left = leader if from_broker is None else from_broker
        first = arena.chance.choice([broker for broker in everyone if broker != left])
        moved[key] = [first, *(broker for broker in everyone if broker != first)]
    with _admin(arena) as admin:
        _reassign(admin, moved)
    _elect_preferred(arena)
    arena.await_event(
        lambda: all(arena.leader_of(*key) == replicas[0] for key, replicas in moved.items()),
        "elected leaders",
    )
    arena.note(f"{len(moved)} partitions of {sorted(topics)} have others")


def _restart_with(arena: Arena, broker: int, properties: str) -> None:
    with _down(arena, broker, arena.cluster.stop_broker):
        arena.cluster._nodes[broker].properties.write_text(properties)


@contextmanager
def _down(arena: Arena, broker: int, end: Callable[[int], None]) -> Iterator[None]:
    end(broker)
    try:
        yield
    finally:
        arena.cluster.start_broker(broker)
        arena.note(f"broker {broker} is back")


def _configure(arena: Arena, broker: int, name: str, value: str) -> None:
    """Change a setting of a broker while it runs."""
    resource = ConfigResource(ConfigResourceType.BROKER, str(broker), {name: value})
    with _admin(arena) as admin:
        told = admin.alter_configs([resource], incremental=True, raise_on_unknown=False)
    if told != {"broker": {str(broker): "OK"}}:
        raise SoakError(f"{name} of broker {broker} is not changed: {told}")


@contextmanager
def _admin(arena: Arena) -> Iterator[Any]:
    with admin_client(arena.cluster.bootstrap_servers, "a fault", _ADMIN_S) as admin:
        yield admin


def _elect_preferred(arena: Arena) -> None:
    with _admin(arena) as admin:
        admin.elect_leaders(_PREFERRED, raise_errors=False)


def _reassign(admin: Any, moved: dict[tuple[str, int], list[int]]) -> None:
    from kafka.structs import TopicPartition

    admin.alter_partition_reassignments(
        {TopicPartition(*key): replicas for key, replicas in moved.items()}
    )
