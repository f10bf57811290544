"""The options of Spark's ``from_protobuf`` (``ProtobufOptions``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import OptionsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.values.value_options import ValueOptions

MAX_RECURSION: Final = 10
"""The greatest ``recursive.fields.max.depth`` (``SchemaConverters``)."""

_BOOLEANS: Final[Mapping[str, str]] = {
    "emit.default.values": "emit_defaults",
    "enums.as.ints": "enums_as_ints",
    "upcast.unsigned.ints": "upcast_unsigned",
    "unwrap.primitive.wrapper.types": "unwrap_wrappers",
    "retain.empty.message.types": "retain_empty",
    "convert.any.fields.to.json": "any_as_json",
}
_DEPTH: Final = "recursive.fields.max.depth"


@final
@dataclass(frozen=True, slots=True)
class ProtobufSettings:
    """How messages become structs; ``max_recursion`` is 0 where recursion is refused."""

    emit_defaults: bool = False
    enums_as_ints: bool = False
    upcast_unsigned: bool = False
    unwrap_wrappers: bool = False
    retain_empty: bool = False
    any_as_json: bool = False
    max_recursion: int = 0


def protobuf_settings(options: ValueOptions) -> ProtobufSettings:
    """Return the settings of a column's options.

    :raises OptionsError: if one is unknown or invalid.
    """
    flags: dict[str, bool] = {}
    depth, problems = 0, []
    for name, value in options.settings:
        try:
            if name in _BOOLEANS:
                flags[_BOOLEANS[name]] = _boolean(name, value)
            elif name == _DEPTH:
                depth = _depth(value)
            else:
                problems.append(f"Protobuf has no option '{name}'. {_KNOWN}")
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise OptionsError(problems)
    return ProtobufSettings(**flags, max_recursion=depth)


_KNOWN: Final = f"Its options are {', '.join(sorted((*_BOOLEANS, _DEPTH)))}."


def _boolean(name: str, value: str) -> bool:
    if value.lower() not in {"true", "false"}:
        raise ValueError(f"The option '{name}' is true or false, got '{value}'.")
    return value.lower() == "true"


def _depth(value: str) -> int:
    try:
        depth = int(value)
    except ValueError:
        depth = MAX_RECURSION + 1
    if depth > MAX_RECURSION:
        raise ValueError(
            f"The option '{_DEPTH}' is a number up to {MAX_RECURSION}, got '{value}'."
        ) from None
    return max(depth, 0)
