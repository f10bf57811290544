"""What other distributions bring, by entry points.

``pyspark_kafka.clients``: a ``Client`` each, by the name that the option ``client`` gives. The
names of this library's own clients stand for these.
``pyspark_kafka.containers``: a function each, which is called with every new ``Container`` and may
override its providers. It runs wherever a container is made: on drivers and in Spark's workers.
``pyspark_kafka.sink_containers``: the same for every new ``SinkContainer``.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TYPE_CHECKING, Any, Final

from ..domain.errors import PluginError
from ..ports.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENTS: Final = "pyspark_kafka.clients"
CONTAINERS: Final = "pyspark_kafka.containers"
SINK_CONTAINERS: Final = "pyspark_kafka.sink_containers"


def installed_clients() -> tuple[str, ...]:
    """Give the names of the clients that other distributions bring."""
    return tuple(sorted(_of_group(CLIENTS).names))


def installed_client(name: str) -> Client | None:
    """Give the client of a name, or ``None``.

    :raises PluginError: if it cannot be loaded, is no client, or is one of two of that name.
    """
    # Of one distribution that is on the path twice, importlib.metadata gives the first.
    found = {entry_point.value: entry_point for entry_point in _of_group(CLIENTS).select(name=name)}
    if not found:
        return None
    value, *others = sorted(found)
    if others:
        raise PluginError(value, f"'{others[0]}' brings the same name, '{name}'")
    client = _load(found[value])
    if not isinstance(client, Client):
        raise PluginError(value, f"it is no {Client.__name__}: {client!r}")
    return client


def installed_configurations(group: str) -> list[Callable[[Any], None]]:
    """Give the functions of a group that configure containers, in the order of their names.

    :raises PluginError: if one cannot be loaded, or is no function.
    """
    found = sorted(_of_group(group), key=lambda entry_point: entry_point.name)
    return [_configuration(entry_point) for entry_point in found]


def _configuration(entry_point: EntryPoint) -> Callable[[Any], None]:
    configure = _load(entry_point)
    if not callable(configure):
        raise PluginError(entry_point.value, f"it is no function: {configure!r}")
    return configure  # type: ignore[no-any-return]


def _of_group(group: str) -> EntryPoints:
    return entry_points(group=group)


def _load(entry_point: EntryPoint) -> Any:
    try:
        return entry_point.load()
    except Exception as error:
        # Whatever the distribution's modules raise while they are imported.
        raise PluginError(entry_point.value, f"{type(error).__name__}: {error}") from error
