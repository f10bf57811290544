"""Brokers that listen where a test wants them to."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers import kafka as brokers
from pyspark_kafka.brokers.jars import KAFKA_VERSION
from pyspark_kafka.brokers.settings import Node, java_options, server_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HOST: Final = "127.0.0.1"


@final
@dataclass(frozen=True, slots=True)
class BrokerListener:
    """Where a broker listens, and which port it tells clients to connect to."""

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
    [count] = {len(places) for places in listeners.values()}

    def with_listeners(
        node: Node, nodes: Sequence[Node], config: Mapping[str, str]
    ) -> dict[str, str]:
        held.close()
        properties = server_properties(node, nodes, config)
        for listener, places in listeners.items():
            name, _, protocol = listener.partition(":")
            place = places[node.id]
            properties["listeners"] += f",{name}://{HOST}:{place.port}"
            properties["advertised.listeners"] += f",{name}://{HOST}:{place.advertised_port}"
            properties["listener.security.protocol.map"] += f",{name}:{protocol or name}"
        return properties

    with ExitStack() as held, pytest.MonkeyPatch.context() as patch:
        # The cluster chooses free ports of its own: these are taken until it has.
        for places in listeners.values():
            for place in places:
                held.enter_context(socket.socket()).bind((HOST, place.port))
        patch.setattr(brokers, "server_properties", with_listeners)
        patch.setattr(brokers, "java_options", lambda *given: (*java_options(*given), *java))
        with KafkaCluster(count, config=config, version=version) as cluster:
            yield cluster
