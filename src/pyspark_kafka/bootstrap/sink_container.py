"""Where the ports of a sink meet their adapters, as ``container`` has it for sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from dependency_injector import containers, providers

from ..adapters.memory.cluster import MemoryCluster
from ..adapters.memory.record_writer import MemoryRecordWriter
from ..adapters.memory.transactions import MemoryTransactions
from ..adapters.system.logging_events import LoggingSourceEvents
from ..application.kafka_sink import KafkaSink
from ..application.sink_task import SinkTask
from ..domain.errors import OptionsError
from ..domain.options import SinkOptions
from .clients import (
    CLIENTS,
    client_named,
    confluent_record_writer,
    kafka_python_record_writer,
    kafka_python_transactions,
    made_by,
)
from .plugins import SINK_CONTAINERS, installed_configurations

if TYPE_CHECKING:
    from ..domain.storage_path import StoragePath
    from ..ports.client import Client
    from ..ports.metadata_log import MetadataLog

TRANSACTIONAL: Final = ("kafka-python", "memory")
"""This library's clients that can end a transaction which another process began."""


def _log(path: StoragePath | None, name: str) -> MetadataLog | None:
    if path is None:
        return None
    from ..adapters.storage.fsspec_metadata_log import FsspecMetadataLog

    return FsspecMetadataLog(path.child(name))


class SinkContainer(containers.DeclarativeContainer):
    """The use cases of one sink, and what they are made of. Any provider can be overridden."""

    options = providers.Dependency(instance_of=SinkOptions)
    events = providers.Singleton(LoggingSourceEvents)
    memory_cluster = providers.Singleton(MemoryCluster)

    _record_writers: ClassVar[dict[str, providers.Provider[Any]]] = {
        "confluent": providers.Resource(confluent_record_writer, options),
        "kafka-python": providers.Resource(kafka_python_record_writer, options),
        "memory": providers.Singleton(MemoryRecordWriter, memory_cluster),
    }
    _transactions: ClassVar[dict[str, providers.Provider[Any]]] = {
        "kafka-python": providers.Resource(kafka_python_transactions, options),
        "memory": providers.Singleton(MemoryTransactions, memory_cluster),
    }
    record_writer = providers.Selector(options.provided.client, **_record_writers)
    transactions = providers.Selector(options.provided.client, **_transactions)
    metadata_log = providers.Singleton(_log, options.provided.metadata_path, "transactions")
    checkpoint_offsets = providers.Singleton(_log, options.provided.checkpoint, "offsets")

    kafka_sink = providers.Factory(
        KafkaSink, metadata_log, checkpoint_offsets, transactions.provider, options
    )
    sink_task = providers.Factory(SinkTask, record_writer, transactions.provider, options, events)


def sink_container_for(options: SinkOptions) -> SinkContainer:
    """Make a container for a sink, as installed distributions configure it (``plugins``).

    :raises OptionsError: if no client has the name that the option ``client`` gives, or it does
        not write, or not with that guarantee.
    :raises PluginError: if what another distribution brings cannot be loaded.
    """
    container = SinkContainer(options=options)
    can_end_transactions = options.client in TRANSACTIONAL
    if options.client not in CLIENTS:
        client = client_named(options.client)
        can_end_transactions = client.transactions is not None
        _use_client(container, options.client, client)
    if options.is_exactly_once and not can_end_transactions:
        problem = (
            f"deliveryGuarantee 'exactly-once' is not for the client '{options.client}': it cannot "
            "end a transaction that another process began. Set 'client' to 'kafka-python'"
        )
        raise OptionsError([problem])
    for configure in installed_configurations(SINK_CONTAINERS):
        configure(container)
    return container


def _use_client(container: SinkContainer, name: str, client: Client) -> None:
    if client.record_writer is None:
        raise OptionsError([f"Client '{name}' reads, and does not write"])
    for provider, make in (
        (container.record_writer, client.record_writer),
        (container.transactions, client.transactions),
    ):
        if make is not None:
            provider.override(providers.Resource(made_by, make, container.options))
