"""The wrong adapters of every port, and wrong worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.ports.checkpoints import EditableLog, MetadataLog
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.ports.cluster import ClusterDescriber
from pyspark_kafka.ports.continuous import EpochChannel, StreamClient, TaskChannel, TaskRunner
from pyspark_kafka.ports.lag import LagExporter, ProgressListener
from pyspark_kafka.ports.letters import DeadLetters
from pyspark_kafka.ports.reading import OffsetFetcher, RecordReader, SourceEvents
from pyspark_kafka.ports.security.token_provider import TokenProvider
from pyspark_kafka.ports.values.schema_registry import SchemaRegistry
from pyspark_kafka.ports.values.value_format import ValueDecoder, ValueEncoder
from pyspark_kafka.ports.writing import RecordWriter, Transactions
from pyspark_kafka.testing import World

from . import (
    clock,
    cluster_describer,
    dead_letters,
    editable_log,
    epoch_channel,
    lag_exporter,
    metadata_log,
    offset_fetcher,
    progress_listener,
    record_reader,
    record_writer,
    schema_registry,
    source_events,
    stream_client,
    stream_reading,
    stream_transactions,
    stream_writing,
    task_runner,
    token_provider,
    transactions,
    value_decoder,
    value_encoder,
    world,
)
from .adapter import PortFaults

if TYPE_CHECKING:
    from collections.abc import Mapping

FAULTS: Final[Mapping[type, PortFaults]] = {
    Clock: clock.FAULTS,
    ClusterDescriber: cluster_describer.FAULTS,
    DeadLetters: dead_letters.FAULTS,
    EditableLog: editable_log.FAULTS,
    EpochChannel: epoch_channel.EPOCH_CHANNEL_FAULTS,
    LagExporter: lag_exporter.FAULTS,
    MetadataLog: metadata_log.FAULTS,
    OffsetFetcher: offset_fetcher.FAULTS,
    ProgressListener: progress_listener.FAULTS,
    RecordReader: record_reader.FAULTS,
    RecordWriter: record_writer.FAULTS,
    SchemaRegistry: schema_registry.FAULTS,
    SourceEvents: source_events.FAULTS,
    StreamClient: PortFaults(
        stream_client.suite(stream_client.Passing),
        (*stream_reading.WRONG, *stream_writing.WRONG, *stream_transactions.WRONG),
    ),
    TaskChannel: epoch_channel.TASK_CHANNEL_FAULTS,
    TaskRunner: task_runner.FAULTS,
    TokenProvider: token_provider.FAULTS,
    Transactions: transactions.FAULTS,
    ValueDecoder: value_decoder.FAULTS,
    ValueEncoder: value_encoder.FAULTS,
    World: world.FAULTS,
}
