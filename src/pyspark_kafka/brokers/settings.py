"""The settings of one broker of a cluster on this machine: ports, properties, Java's options."""

from __future__ import annotations

import base64
import random
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Below what systems hand out by themselves, from 32768 on Linux: a client that keeps trying to
# reach a broker that is down could otherwise be given the broker's own port, connect to itself,
# and keep the broker from coming back.
_PORTS = range(20_000, 32_000)
_MAX_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class Node:
    """One broker, which is a controller as well; its id counts from 0."""

    id: int
    port: int
    controller_port: int
    directory: Path

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    @property
    def voter(self) -> str:
        """How the quorum's configuration names it."""
        return f"{self.id}@127.0.0.1:{self.controller_port}"

    @property
    def data(self) -> Path:
        """Kafka's log directory."""
        return self.directory / "data"

    @property
    def properties(self) -> Path:
        """The file with its properties."""
        return self.directory / "server.properties"


def new_nodes(count: int, directory: Path, port: int | None = None) -> tuple[Node, ...]:
    """Brokers, each in a directory of its own that exists.

    Their ports are ``port`` and the next ones, or some that are free. ``OSError`` if there are none
    or one is taken.
    """
    wanted = ports_from(port, count) if port else ()
    # One more for each that may happen to be wanted.
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
    """A random id in Kafka's form: 16 bytes in 22 characters of URL-safe base64."""
    # The first byte keeps "-" from its beginning, which a command line takes for an option.
    return base64.urlsafe_b64encode(b"K" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


def server_properties(
    node: Node, nodes: Sequence[Node], config: Mapping[str, str]
) -> dict[str, str]:
    """The properties of ``node`` in the cluster of ``nodes``; ``config`` has the last word."""
    replicas = min(_MAX_REPLICAS, len(nodes))
    # What remains when one of three is down must do.
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
        # Internal topics have 50 partitions otherwise, which take their time to come to life.
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        # How long a killed broker stays the leader of its partitions; 9 s otherwise.
        "broker.heartbeat.interval.ms": "1000",
        "broker.session.timeout.ms": "6000",
        # 128 MB otherwise, out of a heap of 512.
        "log.cleaner.dedupe.buffer.size": "4194304",
        **config,
    }


def as_properties_file(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file."""
    return "".join(
        f"{key}={value}\n".replace("\\", "\\\\") for key, value in sorted(properties.items())
    )


def java_options(node: Node, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Java's options for a broker that starts fast and stays light on few cores."""
    return (
        "-Xmx1g" if len(nodes) == 1 else "-Xmx512m",
        "-XX:+UseSerialGC",
        # The second compiler competes with the client for the cores, and gains little: a broker
        # hands out bytes as they are.
        "-XX:TieredStopAtLevel=1",
        # What a killed JVM leaves behind, as libraries of codecs, goes with the directory.
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={node.directory / 'tmp'}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    )


def free_ports(count: int) -> tuple[int, ...]:
    """Loopback ports that nobody listens on at this moment."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise OSError(f"there are no {count} free ports from {_PORTS.start} to {_PORTS.stop}")


def ports_from(first: int, count: int) -> tuple[int, ...]:
    """Loopback ports in a row; ``OSError`` when one is taken."""
    ports = tuple(range(first, first + count))
    for port in ports:
        if not _is_free(port):
            raise OSError(f"port {port} of 127.0.0.1 is taken, or may not be used")
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True
