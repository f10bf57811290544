"""Apache Kafka on this machine, for tests and benchmarks."""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Self, final

from ..domain.errors import KafkaRequestError
from ..ports.clock import Deadline
from .admin import (
    admin_client,
    finalized_features,
    is_assigned,
    known_brokers,
    known_leaders,
    reassign_partition,
    serves_partitions,
    upgrade_features,
)
from .errors import BrokerStartError
from .jars import KAFKA_VERSION, archive_options, archive_path, kafka_jars, make_once
from .java import JavaProcess, require_java
from .settings import (
    Node,
    as_properties_file,
    java_options,
    new_cluster_id,
    new_nodes,
    server_properties,
)

_START_SECONDS = 90.0
_STOP_SECONDS = 20.0
_ADMIN_SECONDS = 30.0
_POLL_SECONDS = 0.05
_RETRIES: Final = 2
_NO_CONFIG: Mapping[str, str] = MappingProxyType({})

_HEADER: Final = struct.Struct(">qi")
"""The first offset of a record batch, and the number of bytes after this."""

_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
"""The place of the last offset's delta in a batch (record format 2)."""


class KafkaCluster:
    """A context manager that runs Apache Kafka with KRaft on loopback ports.

    Each of the ``brokers`` is a process, both broker and controller, and its index is its broker
    id. With a ``directory``, data and logs stay there after the end, and a later cluster with the
    same number of brokers continues with them; otherwise both are temporary. ``config`` holds
    further broker properties. The first broker listens on ``port`` and the others on the next ones,
    or all on free ports. ``version`` is Kafka's, from 3.9.0 on. The processes end with this one,
    even if it is killed.

    Entry raises ``OSError`` if a port is taken, ``JavaError`` without Java 17, ``JarsError`` if
    Kafka's jars cannot be resolved, and ``BrokerStartError`` if the cluster is not ready within
    90 s. Operations on topics raise ``KafkaRequestError`` or ``BrokerUnreachableError`` within
    30 s.
    """

    def __init__(
        self,
        brokers: int = 1,
        directory: Path | None = None,
        config: Mapping[str, str] = _NO_CONFIG,
        port: int | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster has at least one broker, got {brokers}")
        self._brokers = brokers
        self._directory = directory
        self._config = dict(config)
        self._port = port
        self._versions = [version] * brokers
        self._nodes: tuple[Node, ...] = ()
        self._processes: dict[int, JavaProcess] = {}
        self._archives: dict[str, Path] = {}

    def __enter__(self) -> Self:
        if self._nodes:
            raise RuntimeError("the cluster is already running")
        self._java_path = require_java()
        for version in set(self._versions):
            kafka_jars(version)
            self._make_archive(version)
        self._root = self._directory or Path(tempfile.mkdtemp(prefix="pyspark-kafka-"))
        try:
            self._start(_RETRIES)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, also of those that are down: ``host:port,host:port``."""
        self._require_running()
        return ",".join(node.address for node in self._nodes)

    @property
    def options(self) -> dict[str, str]:
        """The options of a query on this cluster, without its topic."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers}

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] = _NO_CONFIG,
    ) -> None:
        """Create a topic, and wait until every broker knows a leader of each partition.

        The replication factor is 3 unless there are fewer brokers; ``config`` is the topic's.
        """
        request = f"the creation of topic '{name}'"
        topic = {
            "num_partitions": partitions,
            "replication_factor": replication_factor or -1,
            "configs": dict(config),
        }
        with self._admin(request) as admin:
            admin.create_topics({name: topic})
        self._await_leaders(request, name, partitions)

    def add_partitions(self, name: str, total: int) -> None:
        """Add partitions to a topic, up to ``total``, and wait as ``create_topic`` does."""
        request = f"the growth of topic '{name}' to {total} partitions"
        with self._admin(request) as admin:
            admin.create_partitions({name: total})
        self._await_leaders(request, name, total)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until no broker knows it."""
        request = f"the deletion of topic '{name}'"
        with self._admin(request) as admin:
            admin.delete_topics([name])
        self._await_everywhere(request, lambda port: known_leaders(port, name) is None)

    def delete_records(self, before: Mapping[tuple[str, int], int]) -> None:
        """Delete the records before an offset, by topic and partition; -1 deletes all of them."""
        with self._admin("the deletion of records") as admin:
            from kafka.structs import TopicPartition

            admin.delete_records({TopicPartition(*key): offset for key, offset in before.items()})

    def reassign_partition(self, topic: str, partition: int, brokers: Sequence[int]) -> None:
        """Move the replicas of a partition to brokers, and wait until the move is complete.

        The first of ``brokers`` is the preferred leader; ``elect_leader`` makes it the leader.
        """
        request = f"the reassignment of {topic}-{partition} to brokers {list(brokers)}"
        with self._admin(request) as admin:
            reassign_partition(admin, topic, partition, brokers)
            if not Deadline.after(_ADMIN_SECONDS).poll(
                lambda: is_assigned(admin, topic, partition, brokers), _POLL_SECONDS
            ):
                reason = f"it was not complete within {_ADMIN_SECONDS:g} s"
                raise KafkaRequestError(request, reason, outcome="did not complete")

    def elect_leader(self, topic: str, partition: int, *, unclean: bool = False) -> None:
        """Make the preferred replica of a partition its leader.

        An ``unclean`` election makes any live replica the leader of a partition that has none,
        also one without the newest records: they are lost then.
        """
        kind = "unclean" if unclean else "preferred"
        with self._admin(f"the {kind} election of a leader of {topic}-{partition}") as admin:
            admin.elect_leaders(int(unclean), {topic: [partition]})

    def upgrade_features(self) -> None:
        """Upgrade ``metadata.version`` and other features as far as all brokers support it.

        Brokers that were started with a newer version of Kafka use its features from then on, all
        of them once the call returns.
        """
        request = "the upgrade of features"
        with self._admin(request) as admin:
            newer = upgrade_features(admin)
        self._await_everywhere(
            request, lambda port: newer.items() <= finalized_features(port).items()
        )

    def corrupt_batch(self, topic: str, partition: int, offset: int) -> None:
        """Damage the stored record batch that holds an offset: its checksum is then wrong.

        Kafka does not notice it, and sends it to consumers. Every running broker's copy is damaged.

        :raises LookupError: if no broker holds the offset.
        """
        self._require_running()
        logs = (node.data / f"{topic}-{partition}" for node in self._live_nodes())
        if not [log for log in logs if _corrupt_batch(log, offset)]:
            raise LookupError(f"no broker holds offset {offset} of {topic}-{partition}")

    def kill_broker(self, index: int) -> None:
        """End a broker with SIGKILL, and wait for its process.

        The others become leaders of its partitions after the session timeout of 6 s.
        """
        self._process(index).kill()
        del self._processes[index]

    def stop_broker(self, index: int) -> None:
        """Shut a broker down; with SIGKILL if that takes longer than 20 s."""
        process = self._process(index)
        process.terminate()
        self._await_end(process)
        del self._processes[index]

    def start_broker(self, index: int, version: str | None = None) -> None:
        """Start a broker that is down, with its port and data, and wait until all know it.

        With a ``version``, it runs that version of Kafka from now on.
        """
        self._require_running()
        if index in self._processes:
            raise RuntimeError(f"broker {index} is already running")
        self._versions[index] = version or self._versions[index]
        self._launch(self._nodes[index])
        self._await_ready()

    def _start(self, retries: int) -> None:
        """Start all brokers, on other ports if a process takes one after it was found free."""
        self._nodes = new_nodes(self._brokers, self._root.resolve(), self._port)
        self._format()
        for node in self._nodes:
            self._launch(node)
        try:
            self._await_ready()
        except BrokerStartError as error:
            if not retries or "java.net.BindException" not in str(error):
                raise
            self._kill()
            self._start(retries - 1)

    def _properties(self, node: Node) -> dict[str, str]:
        return server_properties(node, self._nodes, self._config)

    def _java_options(self, node: Node) -> Sequence[str]:
        return java_options(node, self._nodes)

    def _make_archive(self, version: str) -> None:
        make_once(self._archive(version), lambda options: _ArchivingBroker(version, options).run())

    def _archive(self, version: str) -> Path:
        if version not in self._archives:
            self._archives[version] = archive_path(version, self._java_path)
        return self._archives[version]

    def _class_options(self, node: Node) -> Sequence[str]:
        return archive_options(self._archive(self._versions[node.id]))

    def _format(self) -> None:
        cluster_id = new_cluster_id()
        formats = []
        for node in self._nodes:
            properties = self._properties(node)
            node.properties.write_text(as_properties_file(properties))
            if not (node.data / "meta.properties").exists():
                tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c")
                formats.append(self._java(node, "format.log", self._class_options(node), *tool))
        try:
            for process in formats:
                if process.wait(_START_SECONDS) != 0:
                    raise BrokerStartError("Kafka's storage was not formatted", process.log)
        finally:
            for process in formats:
                process.kill()

    def _launch(self, node: Node) -> None:
        options = self._class_options(node)
        self._processes[node.id] = self._java(node, "server.log", options, "kafka.Kafka")

    def _java(self, node: Node, log: str, more: Sequence[str], *main: str) -> JavaProcess:
        jars = kafka_jars(self._versions[node.id])
        options = (*more, *self._java_options(node))
        java = (str(self._java_path), "-cp", f"{jars}/*")
        command = [*java, *options, *main, str(node.properties)]
        return JavaProcess(command, node.directory, node.directory / log)

    def _end(self) -> None:
        processes = list(self._processes.values())
        if self._directory:
            for process in processes:
                process.terminate()
            for process in processes:
                self._await_end(process)
        self._kill()
        self._nodes = ()
        if not self._directory:
            shutil.rmtree(self._root, ignore_errors=True)

    def _kill(self) -> None:
        for process in self._processes.values():
            process.kill()
        self._processes.clear()

    @staticmethod
    def _await_end(process: JavaProcess) -> None:
        if process.wait(_STOP_SECONDS) is None:
            process.kill()

    def _require_running(self) -> None:
        if not self._nodes:
            raise RuntimeError("the cluster runs only inside of its with block")

    def _process(self, index: int) -> JavaProcess:
        if index not in self._processes:
            raise RuntimeError(f"broker {index} is not running")
        return self._processes[index]

    def _live_nodes(self) -> tuple[Node, ...]:
        return tuple(node for node in self._nodes if node.id in self._processes)

    def _live_ids(self) -> set[int]:
        return {node.id for node in self._live_nodes()}

    def _await_ready(self) -> None:
        def is_ready() -> bool:
            for index, process in self._processes.items():
                if not process.running:
                    what = f"Kafka's broker {index} ended unexpectedly"
                    raise BrokerStartError(what, process.log)
            return self._is_settled()

        if not Deadline.after(_START_SECONDS).poll(is_ready, _POLL_SECONDS):
            unready = self._live_nodes()[0]
            what = f"Kafka was not ready within {_START_SECONDS:g} s"
            raise BrokerStartError(what, self._processes[unready.id].log)

    def _is_settled(self) -> bool:
        """Whether each running broker knows exactly the running brokers."""
        return self._everywhere(lambda port: known_brokers(port) == self._live_ids())

    def _everywhere(self, condition: Callable[[int], bool]) -> bool:
        try:
            return all(condition(node.port) for node in self._live_nodes())
        except OSError:
            return False

    def _await_everywhere(self, request: str, condition: Callable[[int], bool]) -> None:
        if not Deadline.after(_ADMIN_SECONDS).poll(
            lambda: self._everywhere(condition), _POLL_SECONDS
        ):
            reason = f"it did not reach every broker within {_ADMIN_SECONDS:g} s"
            raise KafkaRequestError(request, reason, outcome="did not complete")

    def _await_leaders(self, request: str, topic: str, partitions: int) -> None:
        ids = {node.port: node.id for node in self._live_nodes()}

        def has_leaders(port: int) -> bool:
            leaders = known_leaders(port, topic) or {}
            led = [partition for partition, leader in leaders.items() if leader == ids[port]]
            # A broker publishes metadata before it becomes the leader (BrokerMetadataPublisher).
            # Between the two it refuses a producer's first batch, and may take the second.
            return (
                len(leaders) == partitions
                and self._live_ids() >= set(leaders.values())
                and (not led or serves_partitions(port, topic, led))
            )

        self._await_everywhere(request, has_leaders)

    @contextmanager
    def _admin(self, request: str) -> Iterator[Any]:
        self._require_running()
        # While brokers still believe a killed one to be alive, they may send a client to it.
        if not Deadline.after(_ADMIN_SECONDS).poll(self._is_settled, _POLL_SECONDS):
            reason = f"the running brokers did not find each other within {_ADMIN_SECONDS:g} s"
            raise KafkaRequestError(request, reason, outcome="was not ready for")
        servers = ",".join(node.address for node in self._live_nodes())
        with admin_client(servers, request, _ADMIN_SECONDS) as admin:
            yield admin


@final
class _ArchivingBroker(KafkaCluster):
    """A broker whose Java archives the classes that it has loaded when it ends."""

    def __init__(self, version: str, options: Sequence[str]) -> None:
        super().__init__(version=version)
        self._options = options

    def run(self) -> None:
        """Start the broker, use it, and shut it down."""
        with self:
            self.create_topic("classes")
            self.stop_broker(0)

    def _make_archive(self, version: str) -> None:
        """No-op: the archive is made when the broker ends."""

    def _launch(self, node: Node) -> None:
        self._processes[node.id] = self._java(node, "server.log", self._options, "kafka.Kafka")


def _corrupt_batch(log: Path, offset: int) -> bool:
    """Invert the last byte of the record batch with an offset; return whether the log has one.

    ``log`` is the directory of a partition. The batch's checksum is then wrong.
    """
    return any(_corrupt_in_segment(segment, offset) for segment in sorted(log.glob("*.log")))


def _corrupt_in_segment(segment: Path, offset: int) -> bool:
    with segment.open("r+b") as file:
        while header := _read(file, _HEADER):
            first, size = header
            start = file.tell() - _HEADER.size
            end = start + _HEADER.size + size
            file.seek(start + _LAST_OFFSET_DELTA_AT)
            delta = _read(file, _LAST_OFFSET_DELTA)
            if delta and first <= offset <= first + delta[0]:
                file.seek(end - 1)
                [last] = file.read(1)
                file.seek(end - 1)
                file.write(bytes([last ^ 0xFF]))
                return True
            file.seek(end)
    return False


def _read(file: BinaryIO, field: struct.Struct) -> tuple[int, ...]:
    """Return the integers at the current position; none at the end of the file."""
    found = file.read(field.size)
    return field.unpack(found) if len(found) == field.size else ()
