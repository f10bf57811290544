"""The one place where ports meet adapters.

Whoever embeds this library makes a ``Container`` for a query's options, overrides the providers
it wants otherwise, and takes use cases out of it. ``shutdown_resources()`` closes the clients
that were made.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from dependency_injector import containers, providers

from ..adapters.memory.cluster import MemoryCluster
from ..adapters.memory.offset_fetcher import MemoryOffsetFetcher
from ..adapters.memory.record_reader import MemoryRecordReader
from ..adapters.system.clock import SystemClock
from ..adapters.system.logging_events import LoggingSourceEvents
from ..application.admission import Admission
from ..application.batch import KafkaBatch
from ..application.initial_offsets import InitialOffsets
from ..application.kafka_source import KafkaSource
from ..application.lag_meter import LagMeter
from ..application.micro_batch_stream import KafkaMicroBatchStream
from ..application.offset_reader import KafkaOffsetReader
from ..application.progress_reports import ProgressReports
from ..application.range_planner import RangePlanner
from ..application.range_read import RangeRead
from ..application.record_sizes import RecordSizes
from ..application.verified_start import VerifiedStart
from ..domain.data_loss import legacy_partition_offset_changed
from ..domain.options import SourceOptions
from .clients import (
    CLIENTS,
    client_named,
    confluent_offset_fetcher,
    confluent_record_reader,
    kafka_python_offset_fetcher,
    kafka_python_record_reader,
    made_by,
)
from .plugins import CONTAINERS, installed_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ports.client import Client
    from ..ports.metadata_log import MetadataLog


def _metadata_log(options: SourceOptions) -> MetadataLog | None:
    if options.metadata_path is None:
        return None
    from ..adapters.storage.fsspec_metadata_log import FsspecMetadataLog

    return FsspecMetadataLog(options.metadata_path)


class Container(containers.DeclarativeContainer):
    """The use cases of one query, and what they are made of. Any provider can be overridden."""

    options = providers.Dependency(instance_of=SourceOptions)
    clock = providers.Singleton(SystemClock)
    events = providers.Singleton(LoggingSourceEvents)
    memory_cluster = providers.Singleton(MemoryCluster)

    _offset_fetchers: ClassVar[dict[str, providers.Provider[Any]]] = {
        "confluent": providers.Resource(confluent_offset_fetcher, options),
        "kafka-python": providers.Resource(kafka_python_offset_fetcher, options),
        "memory": providers.Singleton(MemoryOffsetFetcher, memory_cluster, options),
    }
    _record_readers: ClassVar[dict[str, providers.Provider[Any]]] = {
        "confluent": providers.Resource(confluent_record_reader, options),
        "kafka-python": providers.Resource(kafka_python_record_reader, options),
        "memory": providers.Singleton(MemoryRecordReader, memory_cluster, options),
    }
    offset_fetcher = providers.Selector(options.provided.client, **_offset_fetchers)
    record_reader = providers.Selector(options.provided.client, **_record_readers)

    offset_reader = providers.Singleton(KafkaOffsetReader, offset_fetcher, options, clock, events)
    batch = providers.Factory(KafkaBatch, offset_reader, options)
    record_sizes = providers.Factory(RecordSizes, record_reader.provider)
    admission = providers.Factory(Admission, offset_reader, clock, record_sizes)
    metadata_log = providers.Singleton(_metadata_log, options)
    initial_offsets = providers.Factory(InitialOffsets, metadata_log, events)
    range_planner = providers.Factory(RangePlanner, offset_reader, options, events)
    progress_reports = providers.Factory(
        ProgressReports,
        offset_fetcher.provider,
        options.provided.commit_offsets_to_group,
        clock,
        events,
    )
    _stream = providers.Factory(
        KafkaMicroBatchStream,
        offset_reader,
        admission,
        initial_offsets=initial_offsets,
        progress=progress_reports,
        options=options,
    )
    micro_batch_stream = providers.Factory(_stream, planner=range_planner)
    legacy_range_planner = providers.Factory(
        RangePlanner, offset_reader, options, events, legacy_partition_offset_changed
    )
    legacy_stream = providers.Factory(_stream, planner=legacy_range_planner)
    verified_start = providers.Factory(
        VerifiedStart, offset_reader, legacy_range_planner, initial_offsets, options
    )
    kafka_source = providers.Factory(
        KafkaSource, legacy_stream, verified_start, admission, offset_reader
    )
    """The legacy source; called with what loads a batch of ranges: ``kafka_source(load)``."""
    lag_meter = providers.Factory(
        LagMeter, offset_fetcher, record_reader.provider, clock, options.provided.subscription
    )
    range_read = providers.Factory(
        RangeRead, record_reader, offset_fetcher.provider, options, events
    )


def container_for(options: SourceOptions) -> Container:
    """Make a container for a query, as installed distributions configure it (``plugins``).

    :raises OptionsError: if no client has the name that the option ``client`` gives, before
        dependency-injector would say as much in its own terms.
    :raises PluginError: if what another distribution brings cannot be loaded.
    """
    container = Container(options=options)
    if options.client not in CLIENTS:
        _use_client(container, client_named(options.client))
    for configure in installed_configurations(CONTAINERS):
        configure(container)
    return container


@contextmanager
def lag_meter_for(options: SourceOptions) -> Iterator[LagMeter]:
    """Lend a meter of lag, and close its clients afterwards; raises as ``container_for``."""
    container = container_for(options)
    try:
        yield container.lag_meter()
    finally:
        container.shutdown_resources()


def _use_client(container: Container, client: Client) -> None:
    for provider, make in (
        (container.offset_fetcher, client.offset_fetcher),
        (container.record_reader, client.record_reader),
    ):
        provider.override(providers.Resource(made_by, make, container.options))


def preload() -> None:
    """Load what a first task needs: clients, and the kernels of reading.

    Those of writing are left to the first task that writes: to compile them takes seconds, once on
    a machine, and most queries only read. Nothing connects, no thread starts.
    """
    from ..adapters.kafka_format.warm_up import load_kernels

    for client in ("kafka_python", *(["confluent"] if find_spec("confluent_kafka") else [])):
        for role in ("record_reader", "record_writer"):
            import_module(f"{__package__}.adapters.{client}.{role}")
    load_kernels()
