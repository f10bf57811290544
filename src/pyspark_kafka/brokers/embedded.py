"""A Kafka broker in this process: librdkafka's mock cluster."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Self

from ..domain.errors import KafkaRequestError, MissingDependencyError

_PRODUCER = 0
_MAX_REPLICAS = 3


class EmbeddedBroker:
    """A context manager that runs ``brokers`` mock brokers on loopback ports.

    It starts in milliseconds and needs neither Java nor a network. It keeps about 5 MB or
    100,000 records per partition in memory, and serves confluent-kafka and kafka-python. Some
    requests of Kafka are missing: it finds no offsets by timestamp, and admin clients cannot create
    or delete anything. It creates a topic of 4 partitions for each unknown name in a client's
    metadata request that allows it. It does not survive a fork.

    :raises MissingDependencyError: on entry, if confluent-kafka is not installed.
    """

    def __init__(self, brokers: int = 1) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster has at least one broker, got {brokers}")
        self._brokers = brokers
        self._cluster: _MockCluster | None = None

    def __enter__(self) -> Self:
        self._cluster = _MockCluster.start(self._brokers)
        return self

    def __exit__(self, *_: object) -> None:
        self._running().stop()
        self._cluster = None

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses: ``host:port,host:port``."""
        return self._running().bootstrap_servers()

    @property
    def options(self) -> dict[str, str]:
        """The options of a query on this broker, without its topic."""
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            # The mock cluster supports ApiVersions up to v2 and refuses newer ones in a form that
            # kafka-python cannot parse, so clients need the broker's version. The names are
            # librdkafka's, which requests the versions anyway if the fallback is 0.10 or newer
            # (CONFIGURATION.md, broker.version.fallback). It warns on stderr that both are
            # deprecated, unless the client's log_level is below 4.
            "kafka.api.version.request": "false",
            "kafka.broker.version.fallback": "2.1.0",
        }

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic.

        :raises KafkaRequestError: if it exists, or cannot be created.
        """
        replicas = min(_MAX_REPLICAS, self._brokers)
        self._running().create_topic(name, partitions, replicas)

    def _running(self) -> _MockCluster:
        if self._cluster is None:
            raise RuntimeError("the embedded broker runs only inside of its with block")
        return self._cluster


@dataclass(frozen=True, slots=True)
class _MockCluster:
    """librdkafka's mock cluster through its C interface, rdkafka_mock.h.

    The Python client can start a mock cluster (``test.mock.num.brokers``) but not create topics:
    the mock does not serve CreateTopics, and no option changes the 4 partitions of topics that it
    creates automatically.
    """

    library: ctypes.CDLL
    client: int
    cluster: int

    @classmethod
    def start(cls, brokers: int) -> Self:
        library = _librdkafka()
        client = _new_client(library)
        cluster = library.rd_kafka_mock_cluster_new(client, brokers)
        if not cluster:
            library.rd_kafka_destroy(client)
            raise KafkaRequestError(
                "the start of a mock cluster", "librdkafka made none", outcome="did not complete"
            )
        # Its broker ids begin with 1, but the default controller id is 0, for which an admin
        # client would wait forever.
        library.rd_kafka_mock_set_controller_id(cluster, 1)
        return cls(library, client, cluster)

    def stop(self) -> None:
        self.library.rd_kafka_mock_cluster_destroy(self.cluster)
        self.library.rd_kafka_destroy(self.client)

    def bootstrap_servers(self) -> str:
        servers: bytes = self.library.rd_kafka_mock_cluster_bootstraps(self.cluster)
        return servers.decode()

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        code = self.library.rd_kafka_mock_topic_create(
            self.cluster, name.encode(), partitions, replicas
        )
        if code:
            reason: bytes = self.library.rd_kafka_err2str(code)
            raise KafkaRequestError(f"the creation of topic '{name}'", reason.decode())


def _new_client(library: ctypes.CDLL) -> int:
    configuration = library.rd_kafka_conf_new()
    reason = ctypes.create_string_buffer(512)
    library.rd_kafka_conf_set(configuration, b"log_level", b"0", reason, len(reason))
    client: int | None = library.rd_kafka_new(_PRODUCER, configuration, reason, len(reason))
    if client is None:
        library.rd_kafka_conf_destroy(configuration)
        raise KafkaRequestError(
            "the start of a mock cluster", reason.value.decode(), outcome="did not complete"
        )
    return client


def _librdkafka() -> ctypes.CDLL:
    try:
        from confluent_kafka import cimpl
    except ImportError:
        raise MissingDependencyError(
            "confluent-kafka, which contains the embedded broker,", "confluent"
        ) from None
    # Symbols are looked up in the extension module and in the libraries that it is linked to, which
    # finds librdkafka under any file name.
    library = ctypes.CDLL(cimpl.__file__)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, ()),
        ("rd_kafka_conf_set", number, (pointer, text, text, text, ctypes.c_size_t)),
        ("rd_kafka_conf_destroy", None, (pointer,)),
        ("rd_kafka_new", pointer, (number, pointer, text, ctypes.c_size_t)),
        ("rd_kafka_destroy", None, (pointer,)),
        ("rd_kafka_err2str", text, (number,)),
        ("rd_kafka_mock_cluster_new", pointer, (pointer, number)),
        ("rd_kafka_mock_cluster_destroy", None, (pointer,)),
        ("rd_kafka_mock_cluster_bootstraps", text, (pointer,)),
        ("rd_kafka_mock_set_controller_id", None, (pointer, number)),
        ("rd_kafka_mock_topic_create", number, (pointer, text, number, number)),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library
