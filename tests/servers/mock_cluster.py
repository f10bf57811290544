"""librdkafka's mock cluster: brokers in this process, in milliseconds and without Java."""

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_void_p
from typing import Any, Final, Self

from pyspark_kafka.adapters.confluent.librdkafka import PRODUCER, load

_SIGNATURES: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "cluster_new": (c_void_p, (c_void_p, c_int)),
    "cluster_destroy": (None, (c_void_p,)),
    "cluster_bootstraps": (c_char_p, (c_void_p,)),
    "topic_create": (c_int, (c_void_p, c_char_p, c_int, c_int)),
    "partition_set_leader": (c_int, (c_void_p, c_char_p, c_int32, c_int32)),
    "broker_set_down": (c_int, (c_void_p, c_int32)),
    "broker_set_up": (c_int, (c_void_p, c_int32)),
    "broker_set_rtt": (c_int, (c_void_p, c_int32, c_int)),
}


class MockCluster:
    """A context manager that runs brokers; they know transactions and groups."""

    def __init__(self, brokers: int = 1) -> None:
        self._brokers = brokers

    def __enter__(self) -> Self:
        library = load()
        for name, (result, parameters) in _SIGNATURES.items():
            function = getattr(library, f"rd_kafka_mock_{name}")
            function.restype, function.argtypes = result, parameters
        self._library = library
        error = ctypes.create_string_buffer(512)
        conf = library.rd_kafka_conf_new()
        self._client = library.rd_kafka_new(PRODUCER, conf, error, len(error))
        assert self._client, error.value
        self._cluster = self._call("cluster_new", self._client, self._brokers)
        return self

    def __exit__(self, *_: object) -> None:
        self._call("cluster_destroy", self._cluster)
        self._library.rd_kafka_destroy(self._client)

    @property
    def options(self) -> dict[str, str]:
        servers: bytes = self._call("cluster_bootstraps", self._cluster)
        return {"client": "confluent", "kafka.bootstrap.servers": servers.decode()}

    def create_topic(self, name: str, partitions: int = 1) -> None:
        assert not self._call("topic_create", self._cluster, name.encode(), partitions, 1)

    def lead(self, topic: str, partition: int, broker: int) -> None:
        name = topic.encode()
        assert not self._call("partition_set_leader", self._cluster, name, partition, broker)

    def end(self, broker: int) -> None:
        """End a broker; its partitions keep it as their leader."""
        assert not self._call("broker_set_down", self._cluster, broker)

    def end_connections(self) -> None:
        """End all connections; new ones are accepted."""
        assert not self._call("broker_set_down", self._cluster, 1)
        assert not self._call("broker_set_up", self._cluster, 1)

    def answer_after(self, seconds: float) -> None:
        assert not self._call("broker_set_rtt", self._cluster, 1, round(seconds * 1_000))

    def _call(self, name: str, *arguments: object) -> Any:
        return getattr(self._library, f"rd_kafka_mock_{name}")(*arguments)
