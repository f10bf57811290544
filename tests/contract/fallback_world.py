"""A world for these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dependency_injector import providers

from pyspark_kafka.adapters.confluent.librdkafka import LibraryUnusableError
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.testing import KafkaWorld

if TYPE_CHECKING:
    import ctypes

    from pyspark_kafka.bootstrap.container import Container, SinkContainer
    from pyspark_kafka.domain.options import SinkOptions, SourceOptions


class FallbackWorld(KafkaWorld):
    """A real Kafka, with the fallbacks for confluent-kafka without librdkafka's C API."""

    def make_container(self, options: SourceOptions) -> Container:
        container = super().make_container(options)
        reader = ConfluentRecordReader(options, library=_no_library)
        self._closers.append(reader.close)
        container.record_reader.override(providers.Object(reader))
        return container

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
        container = super().make_sink_container(options)
        writer = ConfluentRecordWriter(options, library=_no_library)
        self._closers.append(writer.close)
        container.record_writer.override(providers.Object(writer))
        return container


def _no_library() -> ctypes.CDLL:
    raise LibraryUnusableError("what a test took away")
