"""The failures of typed values and of schema registries: reasons, counts and errors."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from ..errors import FactsError, Fault, PysparkKafkaError, Recovery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..topic_partition import TopicPartition
    from .registry import SubjectVersion


class FailureReason(enum.IntEnum):
    """The reasons, as kernels write them for each row; ``NONE`` is a value that was decoded."""

    NONE = 0
    MALFORMED = 1
    TRUNCATED = 2
    TRAILING_BYTES = 3
    BAD_UTF8 = 4
    TYPE_MISMATCH = 5
    OUT_OF_RANGE = 6
    TOO_DEEP = 7
    TOO_LARGE = 8
    BAD_VARINT = 9
    BAD_LENGTH = 10
    BAD_UNION = 11
    BAD_ENUM = 12
    NO_FRAMING = 13
    UNKNOWN_SCHEMA = 14
    INCOMPATIBLE_SCHEMA = 15
    UNKNOWN_MESSAGE = 16


FAILURE_TEXTS: Final = {
    FailureReason.MALFORMED: "it is malformed",
    FailureReason.TRUNCATED: "it ends too early",
    FailureReason.TRAILING_BYTES: "there are bytes after its end",
    FailureReason.BAD_UTF8: "a text is not valid UTF-8",
    FailureReason.TYPE_MISMATCH: "it has another type than the schema",
    FailureReason.OUT_OF_RANGE: "it does not fit the schema's type",
    FailureReason.TOO_DEEP: "it is nested too deeply",
    FailureReason.TOO_LARGE: "it is too large when decoded",
    FailureReason.BAD_VARINT: "a varint has more bytes than its type",
    FailureReason.BAD_LENGTH: "a length does not fit",
    FailureReason.BAD_UNION: "a union has no such branch",
    FailureReason.BAD_ENUM: "an enum has no such symbol",
    FailureReason.NO_FRAMING: "it has no schema id (check 'valueFraming' or 'keyFraming')",
    FailureReason.UNKNOWN_SCHEMA: "the schema registry has no schema with its id",
    FailureReason.INCOMPATIBLE_SCHEMA: "its schema cannot be read as the schema of the query",
    FailureReason.UNKNOWN_MESSAGE: "its schema has no such message (check 'valueFraming' or "
    "'keyFraming': Apicurio's serializers name messages in their own way)",
}
"""The problem of a value, for error messages."""


@final
@dataclass(frozen=True, slots=True)
class BadRecordStats:
    """The numbers of bad records by reason, and of the dead letters that are acknowledged.

    A record with a bad key and a bad value counts once, with the key's reason.
    """

    by_reason: Mapping[FailureReason, int] = field(default_factory=dict)
    dead_letters: int = 0

    def __post_init__(self) -> None:
        if any(count < 0 for count in (self.dead_letters, *self.by_reason.values())):
            raise ValueError("a count of bad records is negative")
        counted = {reason: self.by_reason[reason] for reason in sorted(self.by_reason)}
        object.__setattr__(self, "by_reason", MappingProxyType(counted))

    def __reduce__(self) -> tuple[type[BadRecordStats], tuple[dict[FailureReason, int], int]]:
        return BadRecordStats, (dict(self.by_reason), self.dead_letters)

    def __add__(self, other: BadRecordStats) -> BadRecordStats:
        return BadRecordStats(
            Counter(self.by_reason) + Counter(other.by_reason),
            self.dead_letters + other.dead_letters,
        )

    def __str__(self) -> str:
        return ", ".join(f"{count} {reason}" for reason, count in self.by_name().items())

    @property
    def total(self) -> int:
        """The number of bad records."""
        return sum(self.by_reason.values())

    def by_name(self) -> dict[str, int]:
        """Return the numbers of bad records by the names of their reasons."""
        return {reason.name: count for reason, count in self.by_reason.items()}

    @classmethod
    def from_names(cls, by_name: Mapping[str, int], dead_letters: int) -> BadRecordStats:
        """Return the numbers of ``by_name``.

        :raises ValueError: if there is no such reason, or a number is negative.
        """
        unknown = by_name.keys() - FailureReason.__members__.keys()
        if unknown:
            raise ValueError(f"unknown reasons of bad records: {sorted(unknown)}")
        return cls({FailureReason[name]: by_name[name] for name in by_name}, dead_letters)


class RegistryUnavailableError(FactsError, ConnectionError):
    """A schema registry did not answer in time, or not as a schema registry does."""

    condition = "KAFKA_SCHEMA_REGISTRY_UNAVAILABLE"
    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE
    text = (
        "The schema registry at {url} cannot be used: {reason}. Check the option "
        "'schema.registry.url', that the registry is running, and that this machine can reach "
        "it. No record was skipped."
    )
    url: str
    reason: str


class RegistryRefusedError(FactsError, PermissionError):
    """A schema registry refused a login or a request."""

    condition = "KAFKA_SCHEMA_REGISTRY_REFUSED"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = (
        "The schema registry at {url} refused {operation}: {reason}. Check the schema, "
        "the login ('schema.registry.basic.auth.user.info', "
        "'schema.registry.bearer.auth.token') and its rights."
    )
    url: str
    operation: str
    reason: str


class UnknownSchemaError(FactsError, LookupError):
    """A schema registry has no such schema; ``what`` names it."""

    condition = "KAFKA_UNKNOWN_SCHEMA"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    text = (
        "The schema registry at {url} has no {what}. Check the options "
        "'schema.registry.url', 'valueSubject' and 'valueSchemaVersion', and that the "
        "producers use this registry."
    )
    url: str
    what: str


class IncompatibleSchemaError(FactsError, ValueError):
    """A schema cannot be registered, or cannot be read as another one."""

    condition = "KAFKA_INCOMPATIBLE_SCHEMA"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = (
        "{what} cannot be used: {reason}. Change the schema so that the field is compatible, "
        "or lower the compatibility level of the subject."
    )
    what: str
    reason: str


class MalformedValueError(FactsError, ValueError):
    """A record's value or key cannot be decoded, and ``mode`` is ``FAILFAST``."""

    condition = "KAFKA_MALFORMED_VALUE"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    tolerated_by = ("mode=PERMISSIVE", "mode=DROPMALFORMED")
    text = (
        "The {column} of the record at offset {offset} of {partition} cannot be decoded: "
        "{description}. To keep reading, set the option 'mode' to PERMISSIVE (the {column} "
        "becomes null) or DROPMALFORMED, or name a 'deadLetterTopic'."
    )
    column: str
    partition: TopicPartition
    offset: int
    description: str


class NewSchemaError(PysparkKafkaError, ValueError):
    """A record has a newer schema than the query's, and ``onNewSchema`` is ``fail``."""

    condition = "KAFKA_NEW_SCHEMA"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    tolerated_by = ("onNewSchema=ignore",)

    def __init__(
        self,
        column: str,
        partition: TopicPartition,
        offset: int,
        version: SubjectVersion,
        found: int,
    ) -> None:
        self.partition, self.offset = partition, offset
        option = f"{column}SchemaVersion"
        super().__init__(
            f"The {column} of the record at offset {offset} of {partition} has version {found} of "
            f"the subject '{version.subject}', and the query reads version {version.version}. "
            f"To read its new fields, restart the query with '{option}' set to {found}, or to "
            "'latest' so that each start reads the latest version. To continue with version "
            f"{version.version}, set 'onNewSchema' to 'ignore'."
        )


class DeadLetterLoopError(FactsError, ValueError):
    """A record that cannot be decoded is in the dead-letter topic itself."""

    condition = "KAFKA_DEAD_LETTER_LOOP"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = (
        "The query reads its own dead-letter topic '{topic}', so that each letter would "
        "become another one. Correct the option 'deadLetterTopic', or 'subscribe', "
        "'subscribePattern' or 'assign' so that the topic is not read."
    )
    topic: str


class DecodedTooLargeError(FactsError, OverflowError):
    """Decoded values exceed what the offsets of an Arrow array can address: 2 GiB, or 2^31 rows."""

    condition = "KAFKA_DECODED_VALUES_TOO_LARGE"
    fault = Fault.DATA
    recovery = Recovery.PERMANENT
    text = (
        "The decoded values of {rows} records exceed 2 GiB in one column. Lower "
        "'maxRecordBytes', or read fewer fields."
    )
    rows: int


class UnencodableValueError(FactsError, ValueError):
    """A row does not fit the schema of its topic."""

    condition = "KAFKA_UNENCODABLE_VALUE"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = (
        "The {column} of row {row} of a batch cannot be encoded: field '{field}' {reason}. "
        "Change the query so that the column fits the schema."
    )
    column: str
    row: int
    field: str
    reason: str


_NO_REGISTRYS_ID: Final = 0
"""An id that no registry gives: the first half of one with 8 bytes."""


def describe_failure(reason: FailureReason, field: str = "", schema_id: int | str = "") -> str:
    """Return what is wrong with a value, with its field and schema where they are known."""
    where = f" (field '{field}')" if field else ""
    schema = f", schema id {schema_id}" if schema_id != "" else ""
    if reason is FailureReason.UNKNOWN_SCHEMA and schema_id == _NO_REGISTRYS_ID:
        schema += (
            ". If Apicurio's serializers wrote it, the id has 8 bytes: set 'valueFraming' or "
            "'keyFraming' to apicurio-global, or to apicurio if it is a content id"
        )
    return f"{FAILURE_TEXTS[reason]}{where}{schema}"
