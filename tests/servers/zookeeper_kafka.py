"""Brokers of Kafka before KRaft, with ZooKeeper."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, final

from kafka.errors import TopicAlreadyExistsError

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.brokers.jars import kafka_jars
from pyspark_kafka.brokers.java import JavaProcess
from pyspark_kafka.brokers.settings import Node, as_properties_file
from pyspark_kafka.domain.errors import KafkaRequestError
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

from .kafka import SharedKafka

_ZOOKEEPER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"

_OF_KRAFT: Final = frozenset(
    {
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "controller.listener.names",
        "controller.quorum.voters",
        "listener.security.protocol.map",
        "node.id",
        "process.roles",
    }
)
"""Properties that a broker with ZooKeeper does not have."""

_FORMER_NAMES: Final = dict.fromkeys(
    ("message.timestamp.after.max.ms", "message.timestamp.before.max.ms"),
    "message.timestamp.difference.max.ms",
)
"""Settings of topics before Kafka 3.6, by their present names (KIP-937)."""

_NO_CONFIG: Final[Mapping[str, str]] = MappingProxyType({})
_DELETE_SECONDS: Final = bound_s(30)
_POLL_SECONDS: Final = 0.05


class _OldKafka(KafkaCluster):
    """A cluster that names settings as it did, and deletes topics until their names are free."""

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] = _NO_CONFIG,
    ) -> None:
        known = {_FORMER_NAMES.get(setting, setting): text for setting, text in config.items()}
        super().create_topic(name, partitions, replication_factor, known)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until ZooKeeper has forgotten it, which is after the brokers."""
        super().delete_topic(name)
        if not Deadline.after(_DELETE_SECONDS).poll(lambda: self._is_free(name), _POLL_SECONDS):
            reason = f"ZooKeeper still has it after {_DELETE_SECONDS:g} s"
            raise KafkaRequestError(f"the deletion of topic '{name}'", reason)

    def _is_free(self, name: str) -> bool:
        with admin_client(self.bootstrap_servers, "a look at a name", _DELETE_SECONDS) as admin:
            try:
                admin.create_topics({name: {"num_partitions": 1}}, validate_only=True)
            except TopicAlreadyExistsError:
                return False
        return True


@final
class ZooKeeperKafka(_OldKafka):
    """One broker of a version below 4.0 with a ZooKeeper; both end with the block."""

    def __init__(self, version: str, config: Mapping[str, str]) -> None:
        super().__init__(config=config, version=version)
        self._zookeepers: list[JavaProcess] = []

    def _properties(self, node: Node) -> dict[str, str]:
        properties = super()._properties(node)
        return {
            **{name: value for name, value in properties.items() if name not in _OF_KRAFT},
            "broker.id": str(node.id),
            "zookeeper.connect": f"127.0.0.1:{node.controller_port}",
            "listeners": f"PLAINTEXT://{node.address}",
        }

    def _make_archive(self, version: str) -> None:
        """Start without one, which only brokers with KRaft have."""

    def _class_options(self, _node: Node) -> Sequence[str]:
        return ()

    def _format(self) -> None:
        """Start ZooKeeper: the broker waits for it, and formats its storage itself."""
        for node in self._nodes:
            node.properties.write_text(as_properties_file(self._properties(node)))
            self._zookeepers.append(self._zookeeper(node))

    def _zookeeper(self, node: Node) -> JavaProcess:
        jars = kafka_jars(self._versions[node.id])
        # Its administration would listen on port 8080.
        options = (*self._java_options(node), "-Dzookeeper.admin.enableServer=false")
        main = (_ZOOKEEPER, str(node.controller_port), str(node.directory / "zookeeper"))
        command = [str(self._java_path), "-cp", f"{jars}/*", *options, *main]
        return JavaProcess(command, node.directory, node.directory / "zookeeper.log")

    def _end(self) -> None:
        for process in self._zookeepers:
            process.kill()
        self._zookeepers.clear()
        super()._end()


@final
class SharedZooKeeperKafka(SharedKafka, _OldKafka):
    """The same, as a process of another owner."""
