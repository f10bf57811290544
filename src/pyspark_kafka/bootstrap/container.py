"""The containers that connect ports with adapters, for a source and for a sink.

To embed this library, make a container for a query's options, override providers as needed, and
take use cases from it. ``shutdown_resources()`` closes its clients.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ..adapters.call_deadline import Attempts, within
from ..adapters.memory.cluster import MemoryCluster
from ..adapters.system.clock import SystemClock
from ..adapters.system.logged import LoggingSourceEvents
from ..adapters.values.framing import wire_format
from ..application.cluster.topic_list import TopicList
from ..application.continuous.stream import KafkaContinuousStream
from ..application.lag.meter import LagMeter
from ..application.reading.batch_binding import BatchBinding
from ..application.reading.kafka_source import KafkaSource, verified_start
from ..application.reading.offsets import InitialOffsets, KafkaOffsetReader
from ..application.reading.planner import KafkaBatch, RangePlanner, TaskPlanner
from ..application.reading.range_read import RangeRead
from ..application.reading.stream import (
    Admission,
    KafkaMicroBatchStream,
    ProgressReports,
    RecordSizes,
)
from ..application.values.typed_records import TypedRead, TypedRecords
from ..application.values.value_schemas import SchemaVersions, ValueSchemas
from ..application.writing.kafka_sink import KafkaSink
from ..application.writing.sink_checkpoint import SinkCheckpoint
from ..application.writing.sink_task import SinkTask
from ..domain.checkpoints.entries import DIRECTORY as SCHEMA_VERSIONS
from ..domain.checkpoints.entries import SINK_LOG
from ..domain.checkpoints.offset_rewrite import BACKUPS
from ..domain.errors import OptionsError
from ..domain.options.sink import SinkOptions, dead_letter_sink
from ..domain.options.source import SourceOptions
from ..domain.reading.data_loss import legacy_partition_offset_changed
from ..domain.values.dead_letter import TaskIdentity
from ..domain.writing.transaction import short_digest
from .injection import containers, providers
from .plugins import (
    CONTAINERS,
    SINK_CONTAINERS,
    check_writing,
    client_named,
    configure,
    require_guarantee,
    value_format_named,
    writer_factory,
)
from .values import ValueDecoders, open_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..adapters.checkpoints.metadata_log import FsspecMetadataLog
    from ..application.values.sink_encoding import SinkEncoding
    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.continuous.settings import ContinuousSettings
    from ..domain.values.registry import RegistryOptions
    from ..domain.values.typed_schema import TypedSchema
    from ..ports.checkpoints import MetadataLog
    from ..ports.client import Client, StreamClientFactory
    from ..ports.clock import Deadline
    from ..ports.cluster import ClusterDescriber
    from ..ports.continuous import StreamClient
    from ..ports.letters import DeadLetters
    from ..ports.reading import RackFinder, SourceEvents
    from ..ports.values.schema_registry import SchemaRegistry
    from ..ports.values.value_format import ValueFormat


class _Closable(Protocol):
    def close(self) -> None: ...


AdapterT = TypeVar("AdapterT", bound=_Closable)
OptionsT = TypeVar("OptionsT", bound=SourceOptions | SinkOptions)
ContainerT = TypeVar("ContainerT", bound=containers.Container)

ANY_TASK: Final = TaskIdentity()

MAX_REQUEST_S: Final = 4.0
"""How long a query waits for silent brokers when it has other work to do, such as stopping."""


def _adapter(make: Callable[[OptionsT], AdapterT], options: OptionsT) -> Iterator[AdapterT]:
    """Yield an adapter, and close it when the container's resources are shut down."""
    adapter = make(options)
    yield adapter
    adapter.close()


def _dead_letters(client: Client, options: SourceOptions, topic: str) -> Iterator[DeadLetters]:
    # Loads modules that queries without dead letters do not need.
    from ..adapters.letters import TopicDeadLetters

    letters = TopicDeadLetters(
        writer_factory(client, options), dead_letter_sink(options, topic), topic
    )
    yield letters
    letters.close()


def _stream_client(
    client: Client, source: SourceOptions, sink: SinkOptions | None, settings: ContinuousSettings
) -> StreamClient:
    return require_stream_client(client, source, sink)(source, sink, settings)


def require_stream_client(
    client: Client, source: SourceOptions, sink: SinkOptions | None
) -> StreamClientFactory:
    """Return the factory of a client for continuous queries.

    :raises OptionsError: if the client has none, or does not support the delivery guarantee.
    """
    if client.stream_client is None:
        raise OptionsError([f"Client '{source.client}' does not support continuous queries"])
    if sink is not None:
        require_guarantee(client, sink)
    return client.stream_client


def _cluster_describer(client: Client, options: SourceOptions) -> Iterator[ClusterDescriber]:
    if client.cluster_describer is None:
        raise OptionsError([f"Client '{options.client}' cannot describe topics"])
    yield from _adapter(client.cluster_describer, options)


def metadata_log_at(path: StoragePath) -> FsspecMetadataLog:
    """Return the metadata log of a directory.

    :raises UnsupportedFeatureError: if its storage cannot arbitrate between concurrent writers.
    """
    from ..adapters.checkpoints.metadata_log import FsspecMetadataLog

    return FsspecMetadataLog(path)


def _metadata_log(path: StoragePath | None, name: str | None = None) -> MetadataLog | None:
    if path is None:
        return None
    return metadata_log_at(path if name is None else path.child(name))


def short_attempts() -> Callable[[str], AbstractContextManager[Deadline]]:
    """Return a function that limits requests by their kind: to 1 s, and more after a time-out."""
    return partial(Attempts(MAX_REQUEST_S).next, within)


def _schema_registry(options: RegistryOptions | None) -> Iterator[SchemaRegistry | None]:
    if options is None:
        yield None
        return
    registry = open_registry(options)
    yield registry
    registry.close()


def _sink_encoding(
    options: SinkOptions,
    formats: Callable[[str], ValueFormat],
    registry: Callable[[], SchemaRegistry],
) -> SinkEncoding:
    from ..application.values.sink_encoding import SinkEncoding

    return SinkEncoding(options, formats, registry, wire_format, _read_schema_file)


def _read_schema_file(path: StoragePath) -> bytes:
    from ..adapters.checkpoints.files import read_schema_file

    return read_schema_file(path)


def _rack_finder(place: str) -> RackFinder:
    # Loads modules that few queries need.
    from ..adapters.racks import metadata
    from ..adapters.racks.environment import EnvironmentRackFinder

    match place:
        case "environment":
            return EnvironmentRackFinder()
        case "aws":
            return metadata.AwsRackFinder()
        case "aws-zone-name":
            return metadata.AwsRackFinder("availability-zone")
        case "gcp":
            return metadata.GoogleRackFinder()
        case "azure":
            return metadata.AzureRackFinder()
        case _:
            raise ValueError(f"the place of a rack is not known: {place!r}")


def _typed_records(
    options: SourceOptions,
    decoders: ValueDecoders,
    letters: Callable[[str], DeadLetters],
    events: SourceEvents,
    schema: TypedSchema,
    task: TaskIdentity = ANY_TASK,
) -> TypedRecords:
    topic = options.dead_letter_topic
    return TypedRecords(
        schema,
        [decoders.get(column) for column in schema.typed],
        None if topic is None else letters(topic),
        events,
        task,
    )


def _typed_read(
    range_read: RangeRead,
    typed_records: Callable[[TypedSchema, TaskIdentity], TypedRecords],
    schema: TypedSchema,
    task: TaskIdentity = ANY_TASK,
) -> TypedRead:
    return TypedRead(range_read, typed_records(schema, task))


def _log_id(path: StoragePath | None) -> str:
    from ..adapters.checkpoints.storages import place_of

    return "" if path is None else short_digest(place_of(path))


def _query_id(checkpoint: StoragePath | None) -> str | None:
    from ..adapters.checkpoints.files import stored_query_id

    return None if checkpoint is None else stored_query_id(checkpoint)


class Container(containers.DeclarativeContainer):
    """The use cases of a query and their dependencies. Any provider can be overridden."""

    options = providers.Dependency(instance_of=SourceOptions)
    clock = providers.Singleton(SystemClock)
    events = providers.Singleton(LoggingSourceEvents)
    memory_cluster = providers.Singleton(MemoryCluster)

    client = providers.Singleton(client_named, options.provided.client, memory_cluster.provider)
    offset_fetcher = providers.Resource(_adapter, client.provided.offset_fetcher, options)
    record_reader = providers.Resource(_adapter, client.provided.record_reader, options)
    cluster_describer = providers.Resource(_cluster_describer, client, options)
    topic_list = providers.Factory(TopicList, offset_fetcher, cluster_describer)

    offset_reader = providers.Singleton(KafkaOffsetReader, offset_fetcher, options, clock, events)
    task_planner = providers.Factory(TaskPlanner, options, events)
    batch = providers.Factory(KafkaBatch, offset_reader, options, task_planner)
    batch_binding = providers.Factory(BatchBinding, offset_reader, options, events)
    record_sizes = providers.Factory(RecordSizes, record_reader.provider)
    admission = providers.Factory(Admission, offset_reader, clock, record_sizes)
    metadata_log = providers.Singleton(_metadata_log, options.provided.metadata_path)
    initial_offsets = providers.Factory(
        InitialOffsets, metadata_log, events, offset_reader.provided.start_of_stream
    )
    range_planner = providers.Factory(RangePlanner, offset_reader, options, events)
    progress_reports = providers.Factory(
        ProgressReports,
        offset_fetcher.provider,
        options.provided.commit_offsets_to_group,
        clock,
        events,
        providers.Factory(short_attempts),
    )
    _stream = providers.Factory(
        KafkaMicroBatchStream,
        offset_reader,
        admission,
        initial_offsets=initial_offsets,
        progress=progress_reports,
        task_planner=task_planner,
        options=options,
    )
    micro_batch_stream = providers.Factory(_stream, planner=range_planner)
    continuous_stream = providers.Factory(
        KafkaContinuousStream,
        offset_reader,
        range_planner,
        initial_offsets,
        progress_reports,
        options,
    )
    rack_finder = providers.Callable(_rack_finder, options.provided.client_rack_from)
    """Finds the rack of a task's host, for queries with the option ``clientRackFrom``."""

    stream_client = providers.Callable(_stream_client, client, options)
    """The client of a continuous query's task: ``stream_client(sink_options, settings)``."""

    _legacy_planner = providers.Factory(
        RangePlanner, offset_reader, options, events, legacy_partition_offset_changed
    )
    _legacy_start = providers.Callable(verified_start, offset_reader, options, _legacy_planner)
    kafka_source = providers.Factory(
        KafkaSource,
        providers.Factory(
            _stream,
            planner=_legacy_planner,
            initial_offsets=providers.Factory(
                InitialOffsets, metadata_log, events, _legacy_start.provider
            ),
        ),
        offset_reader,
    )
    """The legacy source; its argument loads the batch of ranges: ``kafka_source(load)``."""

    lag_meter = providers.Factory(
        LagMeter, offset_fetcher, record_reader.provider, clock, options.provided.subscription
    )
    dead_letters = providers.Resource(_dead_letters, client, options)
    """Writes bad records to a topic: ``dead_letters(topic)``."""

    range_read = providers.Factory(
        RangeRead, record_reader, offset_fetcher.provider, options, events
    )

    schema_registry = providers.Resource(_schema_registry, options.provided.registry)
    value_format = providers.Callable(value_format_named)
    """A format by its name: ``value_format(name)``."""

    schema_versions = providers.Singleton(
        SchemaVersions,
        providers.Callable(_metadata_log, options.provided.metadata_path, SCHEMA_VERSIONS),
    )
    value_schemas = providers.Factory(
        ValueSchemas,
        options,
        value_format.provider,
        schema_registry.provider,
        _read_schema_file,
        schema_versions,
    )
    value_decoders = providers.Singleton(
        ValueDecoders, value_format.provider, schema_registry.provider
    )
    typed_records = providers.Callable(
        _typed_records, options, value_decoders, dead_letters.provider, events
    )
    """Decodes the batches of a task: ``typed_records(schema, task)``."""

    typed_read = providers.Callable(_typed_read, range_read, typed_records.provider)
    """Reads ranges with typed values: ``typed_read(schema, task)``."""


class SinkContainer(containers.DeclarativeContainer):
    """The use cases of a sink and their dependencies. Any provider can be overridden."""

    options = providers.Dependency(instance_of=SinkOptions)
    events = providers.Singleton(LoggingSourceEvents)
    memory_cluster = providers.Singleton(MemoryCluster)

    client = providers.Singleton(client_named, options.provided.client, memory_cluster.provider)
    record_writer = providers.Resource(_adapter, client.provided.record_writer, options)
    transactions = providers.Resource(_adapter, client.provided.transactions, options)
    metadata_log = providers.Singleton(_metadata_log, options.provided.metadata_path, SINK_LOG)
    checkpoint_offsets = providers.Singleton(_metadata_log, options.provided.checkpoint, "offsets")

    query_id = providers.Callable(_query_id, options.provided.checkpoint)

    sink_checkpoint = providers.Factory(
        SinkCheckpoint,
        checkpoint_offsets,
        providers.Singleton(_metadata_log, options.provided.checkpoint, BACKUPS),
        query_id.provider,
        has_sink_log=options.provided.is_log_in_checkpoint,
    )
    kafka_sink = providers.Factory(
        KafkaSink,
        metadata_log,
        sink_checkpoint,
        transactions.provider,
        options,
        providers.Callable(_log_id, options.provided.metadata_path),
    )
    schema_registry = providers.Resource(_schema_registry, options.provided.registry)
    value_format = providers.Callable(value_format_named)
    """A format by its name: ``value_format(name)``."""

    sink_encoding = providers.Singleton(
        _sink_encoding, options, value_format.provider, schema_registry.provider
    )
    sink_task = providers.Factory(
        SinkTask,
        record_writer,
        transactions.provider,
        options,
        events,
        encode=sink_encoding.provided.encode,
    )


def container_for(options: SourceOptions) -> Container:
    """Return a new container for a query, configured by the installed plug-ins.

    :raises OptionsError: if the value of the option ``client`` is unknown.
    :raises PluginError: if a plug-in cannot be loaded.
    """
    container = Container(options=options)
    container.client()
    configure(container, CONTAINERS)
    return container


def in_own_rack(
    options: SourceOptions, make_container: Callable[[SourceOptions], Container] = container_for
) -> SourceOptions:
    """Return the options of a task: with the rack of this process, if a query lets it find one."""
    place = options.client_rack_from
    if place is None:
        return options
    from ..adapters.racks.of_process import rack_of_process

    rack = rack_of_process(place, lambda: make_container(options).rack_finder())
    return options if rack is None else options.in_rack(rack)


def sink_container_for(options: SinkOptions) -> SinkContainer:
    """Return a new container for a sink, configured by the installed plug-ins.

    :raises OptionsError: if the value of the option ``client`` is unknown, or the client does not
        support writing or the delivery guarantee.
    :raises PluginError: if a plug-in cannot be loaded.
    """
    container = SinkContainer(options=options)
    check_writing(container.client(), options)
    configure(container, SINK_CONTAINERS)
    return container


@contextmanager
def closing_clients(container: ContainerT) -> Iterator[ContainerT]:
    """Yield a container, and close its clients afterwards."""
    try:
        yield container
    finally:
        container.shutdown_resources()
