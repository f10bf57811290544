"""The columns of a sink, as in Spark's ``KafkaWriter.validateQuery``.

Types are in the form of Spark's ``simpleString``; column names are case-sensitive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .errors import SinkSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def check_sink_schema(columns: Mapping[str, str], *, has_topic_option: bool) -> None:
    """Check the types of columns, ``{name: type}``; other columns are ignored.

    :raises SinkSchemaError: with all problems, each with the JVM connector's message.
    """
    problems = []
    if not has_topic_option and "topic" not in columns:
        problems.append(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    for name, kinds in TYPES.items():
        if name not in columns:
            if name == "value":
                problems.append("Required attribute 'value' not found")
        elif columns[name] not in kinds and not (name == "topic" and has_topic_option):
            problems.append(
                f"{name} attribute unsupported type {columns[name]}. "
                f"{name} must be a(n) {' or '.join(kinds)}"
            )
    if problems:
        raise SinkSchemaError(problems)
