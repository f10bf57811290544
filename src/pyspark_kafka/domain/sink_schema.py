"""Which columns rows need to become records, as Spark's ``KafkaWriter.validateQuery`` has it.

Types are spelled as Spark's ``simpleString`` does; upper and lower case of a column's name differ.
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
"""The columns that a record is made of, in the order in which they are checked, and their types."""


def check_sink_schema(columns: Mapping[str, str], *, has_topic_option: bool) -> None:
    """Check the columns' types by their names; other columns are left alone.

    :raises SinkSchemaError: with everything that is wrong, in the JVM connector's words.
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
