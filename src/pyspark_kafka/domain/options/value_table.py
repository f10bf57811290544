"""Every option of typed values, once, like the source's options in ``table``.

Names, defaults and values of the formats' own options are Spark's (``JSONOptions``,
``AvroOptions``, ``ProtobufOptions``), and those of the registry are Confluent's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from ..topic_partition import topic_name
from ..values.value_options import (
    BYTES,
    LATEST,
    Framing,
    OnNewSchema,
    ParseMode,
    SubjectNameStrategy,
)
from .option import REGISTRY_PREFIX, Option, boolean, positive_integer, required
from .source_table import TABLE as SOURCE_TABLE
from .source_table import text_option

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Mapping

    E = TypeVar("E", bound=enum.Enum)

JSON: Final = "json"
AVRO: Final = "avro"
PROTOBUF: Final = "protobuf"

_FORMAT_NAME: Final = re.compile(r"[A-Za-z][\w.-]*")


def _choice(name: str, kind: type[E]) -> Callable[[str], E]:
    """Return a parser of the values of an enum, in any case."""
    members = {member.value.lower(): member for member in kind}

    def parse(text: str) -> E:
        # Confluent's serializers take the class of a strategy, as in Java.
        found = members.get(text.strip().lower().rpartition(".")[2])
        if found is None:
            known = ", ".join(f"'{member.value}'" for member in kind)
            raise ValueError(f"{name} must be one of {known}, got '{text}'")
        return found

    return parse


def _format(name: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not _FORMAT_NAME.fullmatch(text.strip()):
            raise ValueError(f"{name} must be the name of a format, got '{text}'")
        return text.strip().lower()

    return parse


def _version(name: str) -> Callable[[str], int]:
    positive = positive_integer(name)

    def parse(text: str) -> int:
        return LATEST if text.strip().lower() == "latest" else positive(text.strip())

    return parse


@final
@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The options of one column, ``key`` or ``value``."""

    column: str
    format: Option[str]
    schema: Option[str | None]
    message: Option[str | None]
    framing: Option[Framing | None]
    subject: Option[str | None]
    schema_version: Option[int | None]
    flatten: Option[bool]

    @property
    def reading(self) -> tuple[Option[Any], ...]:
        """The options of a read."""
        return (*self.writing, self.flatten)

    @property
    def writing(self) -> tuple[Option[Any], ...]:
        """The options of a write."""
        return (
            self.format,
            self.schema,
            self.message,
            self.framing,
            self.subject,
            self.schema_version,
        )


def _column(column: str) -> ColumnOptions:
    def text(name: str, values: str, doc: str) -> Option[str | None]:
        parse = required(f"{column}{name} must not be empty")
        return Option(f"{column}{name}", parse, None, values, doc)

    return ColumnOptions(
        column,
        Option(
            f"{column}Format",
            _format(f"{column}Format"),
            BYTES,
            "`bytes`, `json`, `avro`, `protobuf`, or the name of an entry point",
            f"The format of the {column}s. A read decodes them: `{column}` is a struct then. A "
            "write encodes a struct column. Entry points of the group "
            "`pyspark_kafka.value_formats` add formats.",
        ),
        text(
            "Schema",
            "a schema, or the path of a file",
            f"The schema of the {column}s: columns as in DDL for `json`, the JSON of a schema for "
            "`avro`. A text that ends with `.avsc`, `.proto`, `.desc` or `.pb` is the path of a "
            "file, local or as a URL for fsspec, which the driver reads once. Not needed with a "
            "registry, or if the query sets a schema of its own. Values that are written as `json` "
            "have the type of the rows.",
        ),
        text(
            "Message",
            "the full name of a message",
            f"The Protobuf message of the {column}s, if its file has several.",
        ),
        Option(
            f"{column}Framing",
            _choice(f"{column}Framing", Framing),
            None,
            "`none`, `confluent`, `confluent-header`, `apicurio`, `apicurio-global`",
            f"Where the id of the schema of each {column} is: nowhere, in front of it as with "
            "Confluent's serializers, in a header of the record, or where Apicurio's serializers "
            "write it. Headers name the kind of their ids; in front of values, `apicurio` reads "
            "content ids and `apicurio-global` global ids. Both are for reads only.",
            "`confluent` with a registry, otherwise `none`",
        ),
        text(
            "Subject",
            "a subject of the registry",
            f"The subject of the {column}s' schema, if `{column}Schema` is not set.",
        ),
        Option(
            f"{column}SchemaVersion",
            _version(f"{column}SchemaVersion"),
            None,
            "a positive number, `latest`",
            f"The version of the subject with which the {column}s are read or written. `latest` is "
            "the latest version at each start of the query. If not set, a stream with "
            "`metadataPath` stores the version that was the latest at its first start, and keeps "
            "it; a write has the schema of its rows.",
            "the latest version at the first start; in writes the rows' schema",
        ),
        Option(
            f"flatten{column.title()}",
            boolean,
            False,
            "`true`, `false`",
            f"Whether the fields of the {column} are columns of their own, at the place of "
            f"`{column}`.",
        ),
    )


KEY: Final = _column("key")
VALUE: Final = _column("value")
BY_COLUMN: Final = (KEY, VALUE)

REGISTRY_URL: Final[Option[str | None]] = Option(
    f"{REGISTRY_PREFIX}url",
    required(f"{REGISTRY_PREFIX}url must not be empty"),
    None,
    "URLs, separated by commas",
    "The schema registry. Further options with the prefix `schema.registry.` are the settings of "
    "Confluent's clients, such as `schema.registry.basic.auth.user.info`.",
)
SUBJECT_NAME_STRATEGY: Final = Option(
    "subjectNameStrategy",
    _choice("subjectNameStrategy", SubjectNameStrategy),
    SubjectNameStrategy.TOPIC_NAME,
    "`TopicNameStrategy`, `RecordNameStrategy`, `TopicRecordNameStrategy`",
    "How subjects are named, if `valueSubject` or `keySubject` is not set. The default is "
    "`<topic>-value` and `<topic>-key`. A read needs one of these options with the other "
    "strategies, unless a schema is given.",
    "`TopicNameStrategy`",
)
MODE: Final[Option[ParseMode | None]] = Option(
    "mode",
    _choice("mode", ParseMode),
    None,
    "`FAILFAST`, `PERMISSIVE`, `DROPMALFORMED`",
    "What to do with records that cannot be decoded: fail the query, keep the row with null for "
    "what could not be decoded, or drop the row.",
    "`FAILFAST`; `PERMISSIVE` with `includeErrors` or `columnNameOfCorruptRecord`, else "
    "`DROPMALFORMED` with `deadLetterTopic`",
)
CORRUPT_RECORD: Final[Option[str | None]] = Option(
    "columnNameOfCorruptRecord",
    required("columnNameOfCorruptRecord must not be empty"),
    None,
    "the name of a field",
    "The field of a struct of the format `json` that holds the text of values that cannot be "
    "decoded. It is added unless the schema has it as a `string`.",
)
INCLUDE_ERRORS: Final = Option(
    "includeErrors",
    boolean,
    False,
    "`true`, `false`",
    "Whether rows have the columns `valueError` and `valueBytes` (and `keyError` and `keyBytes`): "
    "what is wrong with a value that cannot be decoded, and its bytes. They are null otherwise.",
)
DEAD_LETTER_TOPIC: Final[Option[str | None]] = Option(
    "deadLetterTopic",
    topic_name("deadLetterTopic"),
    None,
    "a topic",
    "Writes records that cannot be decoded to this topic, unchanged and with headers that say what "
    "is wrong, before their task ends.",
    field="dead_letter_topic",
)
ON_NEW_SCHEMA: Final = Option(
    "onNewSchema",
    _choice("onNewSchema", OnNewSchema),
    OnNewSchema.IGNORE,
    "`ignore`, `fail`",
    "What to do with a record whose schema is a newer version of the subject than the query's: "
    "read it as the query's schema, or fail the query so that a restart can read the new one.",
    "`ignore`",
)

COMMON: Final[tuple[Option[Any], ...]] = (
    MODE,
    CORRUPT_RECORD,
    INCLUDE_ERRORS,
    DEAD_LETTER_TOPIC,
    ON_NEW_SCHEMA,
)
"""Options of both columns of a read."""


def _flag(name: str, doc: str, *, default: bool) -> Option[bool]:
    return Option(name, boolean, default, "`true`, `false`", doc)


_TIME_FORMATS: Final = (
    text_option("dateFormat", "a pattern of Spark", "The format of dates."),
    text_option("timestampFormat", "a pattern of Spark", "The format of timestamps."),
    text_option(
        "timestampNTZFormat", "a pattern of Spark", "The format of timestamps without a zone."
    ),
)

FORMAT_OPTIONS: Final[Mapping[str, tuple[Option[Any], ...]]] = {
    JSON: (
        _flag("allowComments", "Ignores comments as in Java and C++.", default=False),
        _flag("allowUnquotedFieldNames", "Accepts names without quotes.", default=False),
        _flag("allowSingleQuotes", "Accepts single quotes for double ones.", default=True),
        _flag("allowNumericLeadingZeros", "Accepts numbers such as 00012.", default=False),
        _flag(
            "allowNonNumericNumbers", "Accepts `NaN`, `+INF`, `-Infinity` and others.", default=True
        ),
        _flag(
            "allowBackslashEscapingAnyCharacter",
            "Accepts a backslash in front of every character.",
            default=False,
        ),
        _flag("allowUnquotedControlChars", "Accepts control characters in texts.", default=False),
        _flag(
            "enableDateTimeParsingFallback",
            "Reads dates and timestamps in the formats of Spark 1.x and 2.0, too.",
            default=True,
        ),
        text_option(
            "timeZone", "a time zone", "The zone of timestamps that name none, by default `UTC`."
        ),
        *_TIME_FORMATS,
        text_option("locale", "`en-US`", "The language of names of months and days."),
        text_option("maxNestingDepth", "a number, 1000", "How deeply a value may be nested."),
        text_option("maxNumLen", "a number, 1000", "How many digits a number may have."),
    ),
    AVRO: (
        text_option(
            "avroSchema",
            "the JSON of a schema",
            "The schema with which values are read, if they were written with another one.",
        ),
        _flag(
            "enableStableIdentifiersForUnionType",
            "Names the members of a union by their types, not by their positions.",
            default=False,
        ),
        text_option("stableIdentifierPrefixForUnionType", "a text", "The prefix of such names."),
        text_option(
            "recursiveFieldMaxDepth", "a number", "How often a recursive type may contain itself."
        ),
    ),
    PROTOBUF: (
        text_option(
            "recursive.fields.max.depth",
            "a number",
            "How often a recursive message may contain itself.",
        ),
        _flag("emit.default.values", "Whether unset fields have their default.", default=False),
        _flag("enums.as.ints", "Whether enums are numbers, not names.", default=False),
        _flag(
            "upcast.unsigned.ints", "Reads unsigned numbers as the next larger type.", default=False
        ),
        _flag(
            "unwrap.primitive.wrapper.types",
            "Reads wrappers such as Int32Value as values.",
            default=False,
        ),
        _flag("retain.empty.message.types", "Keeps messages without fields.", default=False),
        _flag("convert.any.fields.to.json", "Reads `Any` as JSON.", default=False),
    ),
}
"""The options of formats of a read, by the format."""

SINK_FORMAT_OPTIONS: Final[Mapping[str, tuple[Option[Any], ...]]] = {
    JSON: (
        _flag("ignoreNullFields", "Whether fields that are null are left out.", default=True),
        text_option("timeZone", "a time zone", "The zone of timestamps, by default the session's."),
        *_TIME_FORMATS,
        _flag(
            "writeNonAsciiCharacterAsCodePoint",
            "Whether characters that are not ASCII are escaped.",
            default=False,
        ),
    ),
    AVRO: (),
    PROTOBUF: (),
}
"""The options of formats of a write, by the format."""

AUTO_REGISTER: Final = _flag(
    "autoRegisterSchemas",
    "Whether the schema of rows is registered. If not, the subject must have it already.",
    default=True,
)
USE_LATEST: Final = _flag(
    "useLatestVersion",
    "Whether values have the latest schema of the subject, which the rows have to fit. Nothing is "
    "registered then.",
    default=False,
)

_FORMATS: Final = tuple(option for options in FORMAT_OPTIONS.values() for option in options)

TABLE: Final[tuple[Option[Any], ...]] = (
    *VALUE.reading,
    *KEY.reading,
    REGISTRY_URL,
    SUBJECT_NAME_STRATEGY,
    *COMMON,
    *_FORMATS,
)
"""The options of a read."""

SINK_TABLE: Final[tuple[Option[Any], ...]] = (
    *VALUE.writing,
    *KEY.writing,
    REGISTRY_URL,
    SUBJECT_NAME_STRATEGY,
    AUTO_REGISTER,
    USE_LATEST,
    *(option for options in SINK_FORMAT_OPTIONS.values() for option in options),
)
"""The options of a write."""

ALL_SOURCE_OPTIONS: Final = (*SOURCE_TABLE, *TABLE)
"""The options that a read accepts, in the order of the reference page."""
