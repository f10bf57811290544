from collections.abc import Mapping
from typing import Final

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
    rack_finder,
    record_reader,
    record_writer,
    schema_registry,
    source_events,
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
from .adapter import Faults

FAULTS: Final[Mapping[type, Faults]] = {
    Clock: clock.wrong,
    ClusterDescriber: cluster_describer.wrong,
    DeadLetters: dead_letters.wrong,
    EditableLog: editable_log.wrong,
    EpochChannel: epoch_channel.wrong_driver,
    LagExporter: lag_exporter.wrong,
    MetadataLog: metadata_log.wrong,
    OffsetFetcher: offset_fetcher.wrong,
    ProgressListener: progress_listener.wrong,
    RackFinder: rack_finder.wrong,
    RecordReader: record_reader.wrong,
    RecordWriter: record_writer.wrong,
    SchemaRegistry: schema_registry.wrong,
    SourceEvents: source_events.wrong,
    StreamClient: stream_reading.wrong + stream_writing.wrong + stream_transactions.wrong,
    TaskChannel: epoch_channel.wrong_task,
    TaskRunner: task_runner.wrong,
    TokenProvider: token_provider.wrong,
    Transactions: transactions.wrong + transactions.wrong_writer,
    ValueDecoder: value_decoder.wrong,
    ValueEncoder: value_encoder.wrong,
    World: world.wrong,
}
