"""The Kafka clients, by the values of the option ``client``.

Other distributions register a ``Client`` as an entry point of the group ``pyspark_kafka.clients``.
The names of this library's own clients take precedence.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from ..domain.errors import OptionsError
from ..ports.client import Client
from .plugins import PluginError, load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..adapters.memory.cluster import MemoryCluster

MEMORY: Final = "memory"

CLIENTS: Final[Mapping[str, str]] = {
    "confluent": "pyspark_kafka.adapters.confluent.client",
    "kafka-python": "pyspark_kafka.adapters.kafka_python.client",
}
"""The modules of this library's clients, imported on first use; each exports ``CLIENT``."""

GROUP: Final = "pyspark_kafka.clients"


def client_names() -> list[str]:
    """Return the values of the option ``client`` that can be used on this machine."""
    return [*sorted((*CLIENTS, MEMORY)), *sorted(entry_points(group=GROUP).names)]


def client_named(name: str, memory_cluster: Callable[[], MemoryCluster]) -> Client:
    """Return a client by its name; the adapters of ``memory`` share ``memory_cluster()``.

    :raises OptionsError: if no client has that name.
    :raises PluginError: if it cannot be loaded, is not a ``Client``, or its name is not unique.
    """
    if name == MEMORY:
        from ..adapters.memory.client import memory_client

        return memory_client(memory_cluster)
    if name in CLIENTS:
        return import_module(CLIENTS[name]).CLIENT  # type: ignore[no-any-return]
    return _installed_client(name)


def _installed_client(name: str) -> Client:
    # If a distribution is on the path twice, importlib.metadata returns equal entry points.
    found = {entry_point.value: entry_point for entry_point in entry_points(group=GROUP, name=name)}
    if not found:
        known = ", ".join(f"'{known}'" for known in client_names())
        raise OptionsError([f"Client '{name}' is not known. Known clients are {known}."])
    value, *others = sorted(found)
    if others:
        raise PluginError(value, f"'{others[0]}' has the same name, '{name}'")
    client = load(found[value])
    if not isinstance(client, Client):
        raise PluginError(value, f"it is not a {Client.__name__}: {client!r}")
    return client
