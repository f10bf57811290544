"""Checks of options and of their client before it connects.

Spark makes a source in a separate process, which checks options and ends. There, importing a
container takes longer than importing the client, so it is made only if plug-ins configure it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..domain.options.sink import SinkOptions, dead_letter_sink
from ..domain.options.source import SourceOptions
from .plugins import CONTAINERS, SINK_CONTAINERS, check_writing, client_named, has_plugins

if TYPE_CHECKING:
    from ..adapters.memory.cluster import MemoryCluster
    from ..ports.client import Client


def check_source(options: SourceOptions) -> None:
    """Check a source's client, its settings, its storage, and its sink of dead letters.

    :raises MissingDependencyError: if the client or the storage needs an extra that is missing.
    :raises OptionsError: if the client cannot be used, or does not know a setting.
    :raises PluginError: if a plug-in cannot be loaded.
    """
    if has_plugins(CONTAINERS):
        from .container import closing_clients, container_for

        with closing_clients(container_for(options)) as container:
            container.offset_fetcher()
            check_dead_letters(container.client(), options)
        return
    client = client_named(options.client, _memory_cluster)
    if client.check_source is not None:
        client.check_source(options)
    else:
        client.offset_fetcher(options).close()
    check_dead_letters(client, options)
    _check_storage(options)


def check_sink(options: SinkOptions) -> None:
    """Check a sink's client, its settings and its storage.

    :raises MissingDependencyError: if the client or the storage needs an extra that is missing.
    :raises OptionsError: if the client cannot be used, or does not know a setting.
    :raises PluginError: if a plug-in cannot be loaded.
    """
    if has_plugins(SINK_CONTAINERS):
        from .container import sink_container_for

        client = sink_container_for(options).client()
    else:
        client = client_named(options.client, _memory_cluster)
        check_writing(client, options)
        _check_storage(options)
    if client.check_sink is not None:
        client.check_sink(options)


def check_dead_letters(client: Client, options: SourceOptions) -> None:
    """Check the options of a query's dead letters without connecting.

    :raises OptionsError: if the client cannot write, or a setting of its producer is invalid.
    """
    if options.dead_letter_topic is not None:
        sink = dead_letter_sink(options, options.dead_letter_topic)
        check_writing(client, sink)
        if client.check_sink is not None:
            client.check_sink(sink)


def _check_storage(options: SourceOptions | SinkOptions) -> None:
    from ..adapters.checkpoints.storages import opener_of

    if options.metadata_path is not None:
        opener_of(options.metadata_path)


def _memory_cluster() -> MemoryCluster:
    from ..adapters.memory.cluster import MemoryCluster

    return MemoryCluster()
