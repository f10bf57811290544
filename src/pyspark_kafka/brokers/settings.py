"""The settings of one broker of a cluster on this machine: ports, properties, Java's options."""

from __future__ import annotations

import base64
import os
import random
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Below the ephemeral ports, which begin with 32768 on Linux: a client that retries to connect to a
# broker that is down could otherwise get the broker's port as its own, connect to itself, and keep
# the broker from starting again.
_PORTS = range(20_000, 32_000)
_MAX_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class Node:
    """A broker that is also a controller; ids begin with 0."""

    id: int
    port: int
    controller_port: int
    directory: Path

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def voter(self) -> str:
        """Its entry in ``controller.quorum.voters``."""
        return f"{self.id}@127.0.0.1:{self.controller_port}"

    @property
    def data(self) -> Path:
        """Kafka's log directory."""
        return self.directory / "data"

    @property
    def properties(self) -> Path:
        """Its properties file."""
        return self.directory / "server.properties"


def new_nodes(count: int, directory: Path, port: int | None = None) -> tuple[Node, ...]:
    """Return brokers, and create a directory for each.

    Their ports are ``port`` and the next ones, or any free ones.

    :raises OSError: if a port is taken, or not enough are free.
    """
    wanted = ports_from(port, count) if port else ()
    # One more port for each, in case some of them are among the wanted ones.
    spare = [free for free in free_ports(3 * count) if free not in wanted]
    ports, controllers = wanted or spare[count:], spare[:count]
    nodes = tuple(
        Node(index, ports[index], controllers[index], directory / f"broker-{index}")
        for index in range(count)
    )
    for node in nodes:
        (node.directory / "tmp").mkdir(parents=True, exist_ok=True)
    return nodes


def new_cluster_id() -> str:
    """Return a random id in Kafka's form: 16 bytes in 22 characters of URL-safe base64."""
    # The first byte prevents a leading "-", which a command line would parse as an option.
    return base64.urlsafe_b64encode(b"K" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


def server_properties(
    node: Node, nodes: Sequence[Node], config: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of ``node`` in the cluster of ``nodes``, overridden by ``config``."""
    replicas = min(_MAX_REPLICAS, len(nodes))
    # The cluster stays writable while one of three brokers is down.
    in_sync = max(1, replicas - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(each.voter for each in nodes),
        "listeners": f"PLAINTEXT://{node.address},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{node.address}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(node.data),
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "group.initial.rebalance.delay.ms": "0",
        # By default internal topics have 50 partitions, which take long to create.
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        # How long a killed broker stays the leader of its partitions; the default is 9 s.
        "broker.heartbeat.interval.ms": "1000",
        "broker.session.timeout.ms": "6000",
        # By default the controller writes a record twice a second (KIP-835), and all brokers fetch
        # it: a third of what an idle broker costs.
        "metadata.max.idle.interval.ms": "0",
        # The default is 128 MB, out of a heap of 512.
        "log.cleaner.dedupe.buffer.size": "4194304",
        **config,
    }


def as_properties_file(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    return "".join(
        f"{key}={value}\n".replace("\\", "\\\\") for key, value in sorted(properties.items())
    )


def java_options(node: Node, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return Java's options for a broker that starts fast and is light on few cores."""
    return (
        "-Xmx1g" if len(nodes) == 1 else "-Xmx512m",
        "-XX:+UseSerialGC",
        # The C2 compiler competes with the client for the cores and gains little: a broker returns
        # bytes as they are.
        "-XX:TieredStopAtLevel=1",
        # Files that a killed JVM leaves, such as codecs' libraries, are deleted with the directory.
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={node.directory / 'tmp'}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    )


def free_ports(count: int) -> tuple[int, ...]:
    """Return loopback ports that are free at this moment."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise OSError(f"fewer than {count} ports are free from {_PORTS.start} to {_PORTS.stop}")


def ports_from(first: int, count: int) -> tuple[int, ...]:
    """Return consecutive loopback ports.

    :raises OSError: if one is taken.
    """
    ports = tuple(range(first, first + count))
    for port in ports:
        if not _is_free(port):
            raise OSError(
                f"port {port} of 127.0.0.1 is taken, or may not be used: end the process that "
                "listens there, or choose another port"
            )
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        if os.name == "posix":
            # As Java does, since connections of a broker that has ended keep its port for a minute.
            # On Windows it would take the port of another process.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True
