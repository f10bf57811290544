"""Clients and formats of values by their names, and entry points of other distributions.

Other distributions extend this library by entry points of these groups:

``pyspark_kafka.clients``: a ``Client``, named like its value of the option ``client``.
``pyspark_kafka.containers``: a function that is called with every new ``Container``, on drivers and
in Spark's workers, and may override its providers. ``pyspark_kafka.sink_containers``: the same for
every new ``SinkContainer``. ``pyspark_kafka.value_formats``: a ``ValueFormat``, named like its
value of the options ``valueFormat`` and ``keyFormat``.

The names of this library's own clients and formats take precedence.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..adapters.named_functions import entry_points_named
from ..domain.errors import FactsError, Fault, OptionsError, Recovery
from ..domain.options.option import did_you_mean
from ..ports.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dependency_injector.containers import Container

    from ..adapters.memory.cluster import MemoryCluster
    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from ..ports.values.value_format import ValueFormat
    from ..ports.writing import RecordWriter


PluginT = TypeVar("PluginT")

MEMORY: Final = "memory"

CLIENTS: Final[Mapping[str, str]] = {
    "confluent": "pyspark_kafka.adapters.confluent.client",
    "kafka-python": "pyspark_kafka.adapters.kafka_python.client",
}
"""The modules of this library's clients, imported on first use; each exports ``CLIENT``."""

FORMATS: Final[Mapping[str, str]] = {
    "avro": "pyspark_kafka.adapters.values.avro.value_format",
    "json": "pyspark_kafka.adapters.values.json.value_format",
    "protobuf": "pyspark_kafka.adapters.values.protobuf.value_format",
}
"""The modules of this library's formats, imported on first use; each has a ``VALUE_FORMAT``."""

CLIENT_GROUP: Final = "pyspark_kafka.clients"
CONTAINERS: Final = "pyspark_kafka.containers"
FORMAT_GROUP: Final = "pyspark_kafka.value_formats"
SINK_CONTAINERS: Final = "pyspark_kafka.sink_containers"


class PluginError(FactsError, ImportError):
    """An entry point of another package cannot be used."""

    condition = "KAFKA_PLUGIN"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.PERMANENT
    text = (
        "The plugin '{entry_point}' cannot be used: {reason}. Fix or uninstall the "
        "package that provides it."
    )
    entry_point: str
    reason: str


def client_names() -> list[str]:
    """Return the values of the option ``client`` that can be used on this machine."""
    return [*sorted((*CLIENTS, MEMORY)), *sorted(entry_points(group=CLIENT_GROUP).names)]


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
    client = _installed(CLIENT_GROUP, name, Client)
    if client is None:
        known = ", ".join(f"'{known}'" for known in client_names())
        raise OptionsError([f"Client '{name}' is not known. Known clients are {known}."])
    return client


def check_writing(client: Client, options: SinkOptions) -> None:
    """Check that a client can write as a sink's options demand.

    :raises OptionsError: if it does not support writing or the delivery guarantee.
    """
    writer_factory(client, options)
    require_guarantee(client, options)


def require_guarantee(client: Client, options: SinkOptions) -> None:
    """Check that a client supports a sink's delivery guarantee.

    :raises OptionsError: if it does not.
    """
    if options.is_exactly_once and client.transactions is None:
        problem = (
            f"deliveryGuarantee 'exactly-once' is not supported by the client '{options.client}', "
            "which cannot commit transactions that another process began. Set 'client' to "
            "'kafka-python'"
        )
        raise OptionsError([problem])


def writer_factory(
    client: Client, options: SourceOptions | SinkOptions
) -> Callable[[SinkOptions], RecordWriter]:
    """Return the factory of a client's writers.

    :raises OptionsError: if it has none.
    """
    if client.record_writer is None:
        raise OptionsError([f"Client '{options.client}' only reads: it has no writer"])
    return client.record_writer


def format_names() -> list[str]:
    """Return the formats that can be used on this machine."""
    return [*sorted(FORMATS), *sorted(entry_points(group=FORMAT_GROUP).names)]


def value_format_named(name: str) -> ValueFormat:
    """Return a format by its name.

    :raises OptionsError: if no format has that name.
    :raises PluginError: if it cannot be loaded, is not a ``ValueFormat``, or its name is ambiguous.
    """
    from ..ports.values.value_format import ValueFormat

    if name in FORMATS:
        return import_module(FORMATS[name]).VALUE_FORMAT  # type: ignore[no-any-return]
    value_format = _installed(FORMAT_GROUP, name, ValueFormat)
    if value_format is None:
        known = format_names()
        hint = did_you_mean(name, {each: each for each in known})
        problem = f"Format '{name}' is not known. Known formats are {', '.join(known)}.{hint}"
        raise OptionsError([problem])
    return value_format


def has_plugins(group: str) -> bool:
    """Return whether a distribution on this machine has an entry point of a group."""
    return bool(entry_points(group=group))


def configure(container: Container, group: str) -> None:
    """Call the functions of a group with a new container, in the order of entry points' names.

    :raises PluginError: if one cannot be imported, or is not a function.
    """
    for entry_point in sorted(entry_points(group=group), key=attrgetter("name")):
        function = _load(entry_point)
        if not callable(function):
            raise PluginError(entry_point.value, f"it is not a function: {function!r}")
        function(container)


def _installed(group: str, name: str, kind: type[PluginT]) -> PluginT | None:
    """Return the object of the only entry point with a name; ``None`` if there is none.

    :raises PluginError: if it cannot be imported, is of another kind, or its name is not unique.
    """
    found = entry_points_named(group, name)
    if not found:
        return None
    first, *others = found
    if others:
        raise PluginError(first.value, f"'{others[0].value}' has the same name, '{name}'")
    plugin = _load(first)
    if not isinstance(plugin, kind):
        raise PluginError(first.value, f"it is not a {kind.__name__}: {plugin!r}")
    return plugin


def _load(entry_point: EntryPoint) -> Any:
    try:
        return entry_point.load()
    except Exception as error:
        # The distribution's modules may raise anything when they are imported.
        raise PluginError(entry_point.value, f"{type(error).__name__}: {error}") from error
