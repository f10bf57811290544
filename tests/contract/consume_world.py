"""A world for these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dependency_injector import providers

from pyspark_kafka.adapters.confluent.librdkafka import LibraryUnusableError
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.testing import KafkaWorld

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable

    from pyspark_kafka.bootstrap.container import Container
    from pyspark_kafka.brokers import KafkaCluster
    from pyspark_kafka.domain.options import SourceOptions


class ConsumeWorld(KafkaWorld):
    """A real Kafka, read by the fallback for confluent-kafka without librdkafka's C API."""

    def __init__(self, client: str, fresh_name: Callable[[], str], cluster: KafkaCluster) -> None:
        super().__init__(client, fresh_name, cluster)
        self._readers: list[ConfluentRecordReader] = []

    def close(self) -> None:
        while self._readers:
            self._readers.pop().close()
        super().close()

    def make_container(self, options: SourceOptions) -> Container:
        container = super().make_container(options)
        self._readers.append(ConfluentRecordReader(options, library=_no_library))
        container.record_reader.override(providers.Object(self._readers[-1]))
        return container


def _no_library() -> ctypes.CDLL:
    raise LibraryUnusableError("what a test took away")
