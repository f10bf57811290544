"""The options of typed values, as values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ..security.secrets import hides_secrets

if TYPE_CHECKING:
    from ..checkpoints.storage_path import StoragePath
    from .data_types import StructType
    from .registry import Schema

BYTES: Final = "bytes"
"""The format of values that are not decoded."""

LATEST: Final = -1
"""The number of the latest version of a subject, as in Confluent's clients."""


class Framing(enum.Enum):
    """Where the id of a value's schema is."""

    NONE = "none"
    CONFLUENT = "confluent"
    CONFLUENT_HEADER = "confluent-header"
    APICURIO = "apicurio"
    APICURIO_GLOBAL = "apicurio-global"

    @property
    def is_apicurios(self) -> bool:
        """Whether Apicurio's serializers write it, and we do not."""
        return self in {Framing.APICURIO, Framing.APICURIO_GLOBAL}

    @property
    def uses_headers(self) -> bool:
        """Whether ids may be in the headers of records."""
        return self is Framing.CONFLUENT_HEADER or self.is_apicurios


class ParseMode(enum.Enum):
    """The handling of values that cannot be decoded (``ParseMode`` of Spark)."""

    FAILFAST = "FAILFAST"
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"


class OnNewSchema(enum.Enum):
    """The handling of values with a newer schema than the query's."""

    IGNORE = "ignore"
    FAIL = "fail"


class SubjectNameStrategy(enum.Enum):
    """How the subject of a topic's schemas is named."""

    TOPIC_NAME = "TopicNameStrategy"
    RECORD_NAME = "RecordNameStrategy"
    TOPIC_RECORD_NAME = "TopicRecordNameStrategy"


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class ValueOptions:
    """How one column, ``key`` or ``value``, is decoded or encoded.

    ``schema`` is the text of the option: DDL, Avro JSON, or what a file of it holds;
    ``descriptor`` is a Protobuf ``FileDescriptorSet``. ``schema_file`` is a file that holds one of
    them, until the driver has read it. ``settings`` are the options of the format itself, by their
    names in lower case. ``auto_register_schemas`` and ``use_latest_version`` are of a write.
    """

    column: str
    format: str
    schema: str | None = None
    descriptor: bytes | None = field(default=None, repr=False)
    schema_file: StoragePath | None = None
    message: str | None = None
    framing: Framing = Framing.NONE
    subject: str | None = None
    subject_name_strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME
    schema_version: int | None = None
    auto_register_schemas: bool = True
    use_latest_version: bool = False
    mode: ParseMode = ParseMode.FAILFAST
    corrupt_record_column: str | None = None
    include_errors: bool = False
    on_new_schema: OnNewSchema = OnNewSchema.IGNORE
    flatten: bool = False
    settings: tuple[tuple[str, str], ...] = ()


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


def writer_subject(options: ValueOptions, topic: str | None) -> str | None:
    """Return the subject that gives the ids in a topic's values their context, if known.

    Subjects that are named by records are not known before the schema is.
    """
    by_topic = options.subject_name_strategy is SubjectNameStrategy.TOPIC_NAME
    return subject_of(options, topic, None) if by_topic or options.subject else None


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
