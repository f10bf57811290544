"""A broker that listens where a test wants it to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers import kafka as brokers
from pyspark_kafka.brokers.settings import Node, server_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@contextmanager
def cluster_listening(
    listeners: Mapping[str, str], config: Mapping[str, str]
) -> Iterator[KafkaCluster]:
    """Run a broker with a plain listener, and these: ``host:port`` by security protocol."""

    def with_listeners(
        node: Node, nodes: Sequence[Node], config: Mapping[str, str]
    ) -> dict[str, str]:
        properties = server_properties(node, nodes, config)
        for protocol, address in listeners.items():
            for name in ("listeners", "advertised.listeners"):
                properties[name] += f",{protocol}://{address}"
            properties["listener.security.protocol.map"] += f",{protocol}:{protocol}"
        return properties

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brokers, "server_properties", with_listeners)
        with KafkaCluster(config=config) as cluster:
            yield cluster
