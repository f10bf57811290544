"""A broker that listens where a test wants it to."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers import kafka as brokers
from pyspark_kafka.brokers.settings import Node, java_options, server_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


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

    def with_listeners(
        node: Node, nodes: Sequence[Node], config: Mapping[str, str]
    ) -> dict[str, str]:
        held.close()
        properties = server_properties(node, nodes, config)
        for listener, address in listeners.items():
            name, _, protocol = listener.partition(":")
            for key in ("listeners", "advertised.listeners"):
                properties[key] += f",{name}://{address}"
            properties["listener.security.protocol.map"] += f",{name}:{protocol or name}"
        return properties

    with ExitStack() as held, pytest.MonkeyPatch.context() as patch:
        # The cluster chooses free ports of its own: these are taken until it has.
        for address in listeners.values():
            host, port = address.split(":")
            held.enter_context(socket.socket()).bind((host, int(port)))
        patch.setattr(brokers, "server_properties", with_listeners)
        patch.setattr(brokers, "java_options", lambda *given: (*java_options(*given), *java))
        with KafkaCluster(config=config) as cluster:
            yield cluster
