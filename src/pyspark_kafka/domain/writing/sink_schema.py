"""The columns of a sink, as in Spark's ``KafkaWriter.validateQuery``.

Types are in the form of Spark's ``simpleString``; column names are case-sensitive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from .errors import SinkSchemaError

HEADERS: Final = "array<struct<key:string,value:binary>>"
TYPES: Final[Mapping[str, Sequence[str]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (HEADERS,),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""The columns of a record with their types, in the order of the checks."""


_STRUCT: Final = "struct<"


def check_sink_schema(
    columns: Mapping[str, str],
    *,
    has_topic_option: bool,
    encoded: Collection[str] = (),
    names: Iterable[str] = (),
) -> None:
    """Check the types of columns, ``{name: type}``; other columns are ignored.

    ``encoded`` are the columns that have a format: they must be structs. ``names`` are those of all
    columns; a join may repeat some.

    :raises SinkSchemaError: with all problems, each with the JVM connector's message.
    """
    counts = Counter(names)
    problems = [
        f"Column '{name}' exists {counts[name]} times. Drop or rename all but one of them"
        for name in TYPES
        if counts[name] > 1 and not (name == "topic" and has_topic_option)
    ]
    if not has_topic_option and "topic" not in columns:
        problems.append(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    for name, kinds in TYPES.items():
        if name not in columns:
            if name == "value":
                problems.append("Required attribute 'value' not found")
        elif name in encoded:
            if not columns[name].startswith(_STRUCT):
                problems.append(
                    f"{name} attribute unsupported type {columns[name]}. "
                    f"{name} must be a struct, as '{name}Format' is set"
                )
        elif columns[name] not in kinds and not (name == "topic" and has_topic_option):
            problems.append(_unsupported(name, columns[name], kinds))
    if problems:
        raise SinkSchemaError(problems)


def _unsupported(name: str, kind: str, kinds: Sequence[str]) -> str:
    problem = f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(kinds)}"
    if kind.startswith(_STRUCT) and name in {"key", "value"}:
        return f"{problem}. To write a struct, set the option '{name}Format'"
    return problem
