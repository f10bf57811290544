"""Every adapter, by its port, with the world of its contract suite."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.confluent.cluster_describer import ConfluentClusterDescriber
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.adapters.confluent.stream_client import ConfluentStreamClient
from pyspark_kafka.adapters.continuous.directory_channel import (
    DirectoryEpochChannel,
    DirectoryTaskChannel,
)
from pyspark_kafka.adapters.continuous.socket_channel import SocketEpochChannel
from pyspark_kafka.adapters.continuous.socket_task_channel import SocketTaskChannel
from pyspark_kafka.adapters.continuous.threads import (
    MemoryEpochChannel,
    MemoryTaskChannel,
    ThreadTaskRunner,
)
from pyspark_kafka.adapters.kafka_python.cluster_describer import KafkaPythonClusterDescriber
from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.adapters.kafka_python.record_reader import KafkaPythonRecordReader
from pyspark_kafka.adapters.kafka_python.record_writer import KafkaPythonRecordWriter
from pyspark_kafka.adapters.kafka_python.stream_client import KafkaPythonStreamClient
from pyspark_kafka.adapters.kafka_python.transactions import KafkaPythonTransactions
from pyspark_kafka.adapters.letters import TopicDeadLetters
from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.adapters.memory.cluster_describer import MemoryClusterDescriber
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher, MemoryRecordReader
from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.memory.stream_client import MemoryStreamClient
from pyspark_kafka.adapters.memory.writing import MemoryRecordWriter, MemoryTransactions
from pyspark_kafka.adapters.prometheus import PrometheusLagExporter, PrometheusProgressListener
from pyspark_kafka.adapters.racks.environment import EnvironmentRackFinder
from pyspark_kafka.adapters.racks.metadata import (
    AwsRackFinder,
    AzureRackFinder,
    GoogleRackFinder,
)
from pyspark_kafka.adapters.security.cloud_tokens import (
    AzureTokenProvider,
    GoogleTokenProvider,
    MskTokenProvider,
)
from pyspark_kafka.adapters.security.oidc import OidcTokenProvider
from pyspark_kafka.adapters.security.tokens import FunctionTokenProvider, RenewedTokens
from pyspark_kafka.adapters.spark.jobs import SparkTaskRunner
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.adapters.system.clock import SystemClock
from pyspark_kafka.adapters.system.logged import (
    LoggingLagExporter,
    LoggingProgressListener,
    LoggingSourceEvents,
)
from pyspark_kafka.adapters.values.avro.decoder import AvroDecoder
from pyspark_kafka.adapters.values.avro.encoder import AvroEncoder
from pyspark_kafka.adapters.values.json.decoder import JsonDecoder
from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.adapters.values.protobuf.decoder import ProtobufDecoder
from pyspark_kafka.adapters.values.protobuf.encoder import ProtobufEncoder
from pyspark_kafka.adapters.values.registry.http_registry import HttpSchemaRegistry
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.ports.checkpoints import EditableLog, MetadataLog
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.ports.cluster import ClusterDescriber
from pyspark_kafka.ports.continuous import EpochChannel, StreamClient, TaskChannel, TaskRunner
from pyspark_kafka.ports.lag import LagExporter, ProgressListener
from pyspark_kafka.ports.letters import DeadLetters
from pyspark_kafka.ports.reading import OffsetFetcher, RackFinder, RecordReader, SourceEvents
from pyspark_kafka.ports.security.token_provider import TokenProvider
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry
from pyspark_kafka.ports.values.value_format import ValueDecoder, ValueEncoder
from pyspark_kafka.ports.writing import RecordWriter, Transactions
from pyspark_kafka.testing import KafkaWorld, MemoryWorld, World
from tests.servers.tested_kafka import capabilities_of, version_of_run

FreshName = Callable[[], str]
Kafka = Callable[[], KafkaCluster]


@dataclass(frozen=True, slots=True)
class Held:
    """An adapter of a client, and the cluster of its contract suite.

    ``world`` is given the name factory, and a function that starts the Kafka of the run.
    """

    adapter: type
    world: Callable[[FreshName, Kafka], World]
    how: str = ""

    def __str__(self) -> str:
        return f"{self.adapter.__name__}{self.how}"


_CONFLUENT: Final = capabilities_of("confluent", version_of_run())
_KAFKA_PYTHON: Final = capabilities_of("kafka-python", version_of_run())


def _memory(fresh_name: FreshName, _kafka: Kafka) -> World:
    return MemoryWorld("memory", fresh_name)


def _confluent(fresh_name: FreshName, kafka: Kafka) -> World:
    return KafkaWorld("confluent", fresh_name, kafka(), _CONFLUENT)


def _kafka_python(fresh_name: FreshName, kafka: Kafka) -> World:
    return KafkaWorld("kafka-python", fresh_name, kafka(), _KAFKA_PYTHON)


CLUSTER_DESCRIBERS: Final = (
    Held(ConfluentClusterDescriber, _confluent),
    Held(KafkaPythonClusterDescriber, _kafka_python),
    Held(MemoryClusterDescriber, _memory),
)
OFFSET_FETCHERS: Final = (
    Held(ConfluentOffsetFetcher, _confluent),
    Held(KafkaPythonOffsetFetcher, _kafka_python),
    Held(MemoryOffsetFetcher, _memory),
)
RECORD_READERS: Final = (
    Held(ConfluentRecordReader, _confluent),
    Held(KafkaPythonRecordReader, _kafka_python),
    Held(MemoryRecordReader, _memory),
)
RECORD_WRITERS: Final = (
    Held(ConfluentRecordWriter, _confluent),
    Held(KafkaPythonRecordWriter, _kafka_python),
    Held(MemoryRecordWriter, _memory),
)
DEAD_LETTERS: Final = (
    Held(TopicDeadLetters, _confluent, " with confluent"),
    Held(TopicDeadLetters, _kafka_python, " with kafka-python"),
    Held(TopicDeadLetters, _memory, " in memory"),
)
TRANSACTIONS: Final = (
    Held(KafkaPythonTransactions, _kafka_python),
    Held(MemoryTransactions, _memory),
)
STREAM_CLIENTS: Final = (
    Held(ConfluentStreamClient, _confluent),
    Held(KafkaPythonStreamClient, _kafka_python),
    Held(MemoryStreamClient, _memory),
)
CLOCKS: Final = (MemoryClock, SystemClock)
VALUE_DECODERS: Final = (AvroDecoder, JsonDecoder, ProtobufDecoder)
VALUE_ENCODERS: Final = (AvroEncoder, JsonEncoder, ProtobufEncoder)
SOURCE_EVENTS: Final = (LoggingSourceEvents, MemorySourceEvents)

REGISTRY: Final[Mapping[type, tuple[type, ...]]] = {
    Clock: CLOCKS,
    ClusterDescriber: tuple(held.adapter for held in CLUSTER_DESCRIBERS),
    DeadLetters: (TopicDeadLetters,),
    # In `test_metadata_log.py`.
    EditableLog: (FsspecMetadataLog, MemoryMetadataLog),
    # In `test_epoch_channel.py`.
    EpochChannel: (DirectoryEpochChannel, MemoryEpochChannel, SocketEpochChannel),
    TaskChannel: (DirectoryTaskChannel, MemoryTaskChannel, SocketTaskChannel),
    # Held to the contract in `test_lag_exporter.py`.
    LagExporter: (LoggingLagExporter, PrometheusLagExporter),
    # In `test_metadata_log.py`.
    MetadataLog: (FsspecMetadataLog, MemoryMetadataLog),
    OffsetFetcher: tuple(held.adapter for held in OFFSET_FETCHERS),
    # In `test_progress_listener.py`.
    ProgressListener: (LagListener, LoggingProgressListener, PrometheusProgressListener),
    # In `test_rack_finder.py`.
    RackFinder: (AwsRackFinder, AzureRackFinder, EnvironmentRackFinder, GoogleRackFinder),
    RecordReader: tuple(held.adapter for held in RECORD_READERS),
    RecordWriter: tuple(held.adapter for held in RECORD_WRITERS),
    # In `test_schema_registry.py`.
    SchemaRegistry: (HttpSchemaRegistry, MemorySchemaRegistry),
    SourceEvents: SOURCE_EVENTS,
    StreamClient: tuple(held.adapter for held in STREAM_CLIENTS),
    # In `test_task_runner.py` and `tests/spark/test_jobs.py`.
    TaskRunner: (SparkTaskRunner, ThreadTaskRunner),
    # In `test_token_provider.py`.
    TokenProvider: (
        AzureTokenProvider,
        FunctionTokenProvider,
        GoogleTokenProvider,
        MskTokenProvider,
        OidcTokenProvider,
        RenewedTokens,
    ),
    Transactions: tuple(held.adapter for held in TRANSACTIONS),
    # In `test_value_decoder.py`.
    ValueDecoder: VALUE_DECODERS,
    # In `test_value_encoder.py`.
    ValueEncoder: VALUE_ENCODERS,
}
"""The adapters of each port. A test fails while one is missing."""
