"""The formats of values, by the values of the options ``valueFormat`` and ``keyFormat``.

Other distributions register a ``ValueFormat`` as an entry point of the group
``pyspark_kafka.value_formats``. The names of this library's own formats take precedence.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from ..domain.errors import OptionsError
from ..domain.options.option import did_you_mean
from ..ports.values.value_format import ValueFormat
from .plugins import PluginError, load

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMATS: Final[Mapping[str, str]] = {
    "avro": "pyspark_kafka.adapters.avro_values.value_format",
    "json": "pyspark_kafka.adapters.json_values.value_format",
    "protobuf": "pyspark_kafka.adapters.protobuf_values.value_format",
}
"""The modules of this library's formats, imported on first use; each has a ``VALUE_FORMAT``."""

GROUP: Final = "pyspark_kafka.value_formats"


def format_names() -> list[str]:
    """Return the formats that can be used on this machine."""
    return [*sorted(FORMATS), *sorted(entry_points(group=GROUP).names)]


def value_format_named(name: str) -> ValueFormat:
    """Return a format by its name.

    :raises OptionsError: if no format has that name.
    :raises PluginError: if it cannot be loaded, is not a ``ValueFormat``, or its name is ambiguous.
    """
    if name in FORMATS:
        return import_module(FORMATS[name]).VALUE_FORMAT  # type: ignore[no-any-return]
    # If a distribution is on the path twice, importlib.metadata returns equal entry points.
    found = {entry_point.value: entry_point for entry_point in entry_points(group=GROUP, name=name)}
    if not found:
        raise OptionsError([_unknown(name)])
    value, *others = sorted(found)
    if others:
        raise PluginError(value, f"'{others[0]}' has the same name, '{name}'")
    value_format = load(found[value])
    if not isinstance(value_format, ValueFormat):
        raise PluginError(value, f"it is not a {ValueFormat.__name__}: {value_format!r}")
    return value_format


def _unknown(name: str) -> str:
    known = format_names()
    hint = did_you_mean(name, {each: each for each in known})
    return f"Format '{name}' is not known. Known formats are {', '.join(known)}.{hint}"
