"""How the columns of a sink are encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from .value_options import SubjectNameStrategy

if TYPE_CHECKING:
    from .data_types import StructType
    from .registered_schema import Schema
    from .value_options import ValueOptions


@final
@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A struct column with the schema that the driver has registered for it.

    ``schema`` is the registry's, or ``None`` if the encoder derives its own. ``schema_id`` is
    ``None`` where the subject depends on the topic of a row: then tasks register the schema.
    ``guid`` is ``None`` if the registry has none, or ids are in front of values.
    """

    options: ValueOptions
    data_type: StructType
    schema: Schema | None = None
    schema_id: int | None = None
    guid: str | None = None


def subject_of(options: ValueOptions, topic: str | None, record_name: str | None) -> str | None:
    """Return the subject of a topic's schemas, as Confluent's strategies name it.

    It is ``None`` where it depends on the topic and that is not known.

    :raises ValueError: if the strategy needs the name of a record, and the schema has none.
    """
    if options.subject is not None:
        return options.subject
    strategy = options.subject_name_strategy
    if strategy is SubjectNameStrategy.TOPIC_NAME:
        return None if topic is None else f"{topic}-{options.column}"
    if record_name is None:
        raise ValueError(
            f"'subjectNameStrategy' {strategy.value} needs a schema with the name of a record"
        )
    if strategy is SubjectNameStrategy.RECORD_NAME:
        return record_name
    return None if topic is None else f"{topic}-{record_name}"
