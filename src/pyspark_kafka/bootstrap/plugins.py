"""Entry points by which other distributions extend this library.

``pyspark_kafka.clients``: a ``Client``, named like its value of the option ``client``.
``pyspark_kafka.containers``: a function that is called with every new ``Container``, on drivers and
in Spark's workers, and may override its providers. ``pyspark_kafka.sink_containers``: the same for
every new ``SinkContainer``. ``pyspark_kafka.value_formats``: a ``ValueFormat``, named like its
value of the options ``valueFormat`` and ``keyFormat``.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from ..domain.errors import Fault, PysparkKafkaError

if TYPE_CHECKING:
    from dependency_injector.containers import Container

CONTAINERS: Final = "pyspark_kafka.containers"
SINK_CONTAINERS: Final = "pyspark_kafka.sink_containers"


class PluginError(PysparkKafkaError, ImportError):
    """An entry point of another package cannot be used."""

    condition = "KAFKA_PLUGIN"
    fault = Fault.ENVIRONMENT

    def __init__(self, entry_point: str, reason: str) -> None:
        super().__init__(
            f"The plugin '{entry_point}' cannot be used: {reason}. Fix or uninstall the "
            "package that provides it."
        )


def load(entry_point: EntryPoint) -> Any:
    """Return the object of an entry point.

    :raises PluginError: if it cannot be imported.
    """
    try:
        return entry_point.load()
    except Exception as error:
        # The distribution's modules may raise anything when they are imported.
        raise PluginError(entry_point.value, f"{type(error).__name__}: {error}") from error


def has_plugins(group: str) -> bool:
    """Return whether a distribution on this machine has an entry point of a group."""
    return bool(entry_points(group=group))


def configure(container: Container, group: str) -> None:
    """Call the functions of a group with a new container, in the order of entry points' names.

    :raises PluginError: if one cannot be imported, or is not a function.
    """
    for entry_point in sorted(entry_points(group=group), key=attrgetter("name")):
        function = load(entry_point)
        if not callable(function):
            raise PluginError(entry_point.value, f"it is not a function: {function!r}")
        function(container)
