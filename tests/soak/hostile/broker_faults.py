"""Faults of brokers, of their leaders and coordinators, and of their security settings."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from kafka.admin import ConfigResource, ConfigResourceType

from pyspark_kafka.brokers.admin import admin_client

from ...servers.fault_proxy import Rules, Traffic
from ...servers.proxied import SECURED_LISTENER
from ...servers.secured import PASSWORD
from ..ledger import SOURCE
from ..numbers import SoakError
from .arena import Arena
from .fault import Fault

THREE_BROKERS: Final = "three brokers"
"""What an arena offers whose partitions have leaders without any one broker."""

_ADMIN_S: Final = 30.0
_PREFERRED: Final = 0
_HANDSHAKE_S: Final = 0.02


@contextmanager
def _stopped(arena: Arena, broker: int) -> Iterator[None]:
    pid = arena.pid_of(broker)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        arena.note(f"broker {broker} goes on")


@contextmanager
def suspend_broker(arena: Arena) -> Iterator[None]:
    """A broker is stopped by a signal while its clients are connected."""
    broker = arena.chance.randrange(arena.brokers)
    arena.note(f"broker {broker} stopped by a signal")
    with _stopped(arena, broker):
        yield


@contextmanager
def suspend_before_handshake(arena: Arena) -> Iterator[None]:
    """A broker is stopped by a signal, and its clients have to connect again."""
    broker = arena.chance.randrange(arena.brokers)
    arena.note(f"broker {broker} stopped before handshakes")
    with _stopped(arena, broker):
        for proxy in arena.proxies_of(broker):
            proxy.reset_all()
        yield


@contextmanager
def suspend_in_handshake(arena: Arena) -> Iterator[None]:
    """A broker is stopped by a signal in the middle of the handshakes of its clients."""
    broker = arena.chance.randrange(arena.brokers)
    proxies = arena.proxies_of(broker)
    slow = Rules(to_client=Traffic(delay_s=_HANDSHAKE_S))
    with arena.ruled(proxies, slow):
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


@contextmanager
def kill_broker(arena: Arena) -> Iterator[None]:
    """A broker is killed, and started again."""
    broker = arena.chance.randrange(arena.brokers)
    arena.note(f"broker {broker} killed")
    with _down(arena, broker, arena.cluster.kill_broker):
        yield


@contextmanager
def roll_brokers(arena: Arena) -> Iterator[None]:
    """All brokers are shut down and started again, one after another."""
    for broker in arena.chance.sample(range(arena.brokers), arena.brokers):
        arena.note(f"broker {broker} shut down")
        with _down(arena, broker, arena.cluster.stop_broker):
            pass
    yield


def move_coordinator(topic: str) -> Callable[[Arena], AbstractContextManager[None]]:
    """Return a fault: other brokers lead the partitions of an internal topic."""

    @contextmanager
    def strike(arena: Arena) -> Iterator[None]:
        partitions = arena.leaders_of(topic)
        _move_leaders(arena, {(topic, number): leader for number, leader in partitions.items()})
        yield

    return strike


@contextmanager
def elect_leaders(arena: Arena) -> Iterator[None]:
    """The preferred leaders of all partitions change, and are elected."""
    topics = [SOURCE, *(plan.name for plan in arena.ledger.readers)]
    leaders = {
        (topic, partition): leader
        for topic in topics
        for partition, leader in arena.leaders_of(topic).items()
    }
    _move_leaders(arena, leaders)
    yield


@contextmanager
def rotate_certificates(arena: Arena) -> Iterator[None]:
    """Each broker gets a new key, one after another, and loads it while it runs."""
    number = arena.chance.randrange(1 << 32)
    for broker in range(arena.brokers):
        path = arena.proxied.issue_certificate(f"broker-{broker}-{number}")
        setting = f"listener.name.{SECURED_LISTENER.lower()}.ssl.keystore.location"
        resource = ConfigResource(ConfigResourceType.BROKER, str(broker), {setting: str(path)})
        with _admin(arena) as admin:
            told = admin.alter_configs([resource], incremental=True, raise_on_unknown=False)
            if told != {"broker": {str(broker): "OK"}}:
                raise SoakError(f"the certificate of broker {broker} was not rotated: {told}")
        for proxy in arena.proxies_of(broker):
            proxy.reset_all()
        arena.note(f"certificate of broker {broker} rotated")
    yield


@contextmanager
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


@contextmanager
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


def _move_leaders(arena: Arena, leaders: Mapping[tuple[str, int], int]) -> None:
    """Let another broker lead each of some partitions, which every broker has."""
    everyone = range(arena.brokers)
    moved = {}
    for key, leader in leaders.items():
        first = arena.chance.choice([broker for broker in everyone if broker != leader])
        moved[key] = [first, *(broker for broker in everyone if broker != first)]
    with _admin(arena) as admin:
        _reassign(admin, moved)
    _elect_preferred(arena)
    arena.await_event(
        lambda: all(arena.leader_of(*key) == replicas[0] for key, replicas in moved.items()),
        "elected leaders",
    )
    arena.note(f"{len(moved)} partitions of {sorted({topic for topic, _ in moved})} have others")


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


_NEEDS: Final = frozenset({THREE_BROKERS})
_AUTHENTICATION: Final = frozenset({"KAFKA_AUTHENTICATION_FAILED"})

BROKER_FAULTS: Final = (
    Fault("broker suspended", suspend_broker),
    Fault("broker suspended before handshakes", suspend_before_handshake),
    Fault("broker suspended in handshakes", suspend_in_handshake),
    Fault("broker killed", kill_broker, joins_others=False, restarts=True),
    Fault("rolling restart", roll_brokers, joins_others=False, restarts=True),
    Fault("preferred leaders elected", elect_leaders, needs=_NEEDS, joins_others=False),
    Fault(
        "transaction coordinator moved",
        move_coordinator("__transaction_state"),
        needs=_NEEDS,
        joins_others=False,
    ),
    Fault(
        "group coordinator moved",
        move_coordinator("__consumer_offsets"),
        needs=_NEEDS,
        joins_others=False,
    ),
    Fault("certificates rotated", rotate_certificates),
    Fault("password rotated", rotate_password, _AUTHENTICATION),
    Fault("listener on another protocol", change_protocol, joins_others=False, restarts=True),
)
