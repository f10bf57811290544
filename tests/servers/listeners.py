"""Brokers that listen where a test wants them to."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from pyspark_kafka.brokers.settings import Node
from pyspark_kafka.domain.cluster.topics import REPLICA_SELECTOR

HOST: Final = "127.0.0.1"


def rack_of(broker: int) -> str:
    """Return the rack of a broker in a cluster whose leaders name replicas to read from."""
    return f"rack-{broker}"


@final
@dataclass(frozen=True, slots=True)
class BrokerListener:
    """Where a broker listens, and which port it advertises to clients."""

    port: int
    advertised_port: int


@contextmanager
def cluster_listening(
    listeners: Mapping[str, str],
    config: Mapping[str, str],
    java: Sequence[str] = (),
) -> Iterator[KafkaCluster]:
    """Run a broker with a plain listener, and these: ``host:port`` by security protocol.

    A listener with a name of its own is written ``NAME:PROTOCOL``. ``java`` has further options of
    the broker's JVM.
    """
    ports = {name: int(address.partition(":")[2]) for name, address in listeners.items()}
    same = {name: [BrokerListener(port, port)] for name, port in ports.items()}
    with brokers_listening(same, config, java) as cluster:
        yield cluster


@contextmanager
def brokers_listening(
    listeners: Mapping[str, Sequence[BrokerListener]],
    config: Mapping[str, str],
    java: Sequence[str] = (),
    version: str = KAFKA_VERSION,
) -> Iterator[KafkaCluster]:
    """Run a broker for each place of a listener, as ``cluster_listening`` does for one."""
    cluster = _ListeningCluster(listeners, config, java, version)
    with ExitStack() as held:
        # The cluster chooses free ports of its own: these are taken until it has.
        for place in (place for places in listeners.values() for place in places):
            held.enter_context(socket.socket()).bind((HOST, place.port))
        cluster.held = held
        with cluster:
            yield cluster


class _ListeningCluster(KafkaCluster):
    """A cluster with further listeners; ``held`` is closed once its ports are chosen.

    If leaders name replicas to read from, each broker is in a rack of its own.
    """

    def __init__(
        self,
        listeners: Mapping[str, Sequence[BrokerListener]],
        config: Mapping[str, str],
        java: Sequence[str],
        version: str,
    ) -> None:
        [count] = {len(places) for places in listeners.values()}
        super().__init__(count, config=config, version=version)
        self._listeners = listeners
        self._further_java = java
        self.held = ExitStack()

    def _properties(self, node: Node) -> dict[str, str]:
        self.held.close()
        properties = super()._properties(node)
        if REPLICA_SELECTOR in properties:
            properties.setdefault("broker.rack", rack_of(node.id))
        for listener, places in self._listeners.items():
            name, _, protocol = listener.partition(":")
            place = places[node.id]
            properties["listeners"] += f",{name}://{HOST}:{place.port}"
            properties["advertised.listeners"] += f",{name}://{HOST}:{place.advertised_port}"
            properties["listener.security.protocol.map"] += f",{name}:{protocol or name}"
        return properties

    def _java_options(self, node: Node) -> Sequence[str]:
        return (*super()._java_options(node), *self._further_java)
