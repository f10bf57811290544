"""The errors of typed values and of schema registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Fault, PysparkKafkaError
from .failure_reason import TEXTS

if TYPE_CHECKING:
    from ..topic_partition import TopicPartition
    from .failure_reason import FailureReason
    from .registered_schema import SubjectVersion


class RegistryUnavailableError(PysparkKafkaError, ConnectionError):
    """A schema registry did not answer in time, or not as a schema registry does."""

    condition = "KAFKA_SCHEMA_REGISTRY_UNAVAILABLE"
    fault = Fault.CLUSTER

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"The schema registry at {url} cannot be used: {reason}. Check the option "
            "'schema.registry.url', that the registry is running, and that this machine can reach "
            "it. No record was skipped."
        )


class RegistryRefusedError(PysparkKafkaError, PermissionError):
    """A schema registry refused a login or a request."""

    condition = "KAFKA_SCHEMA_REGISTRY_REFUSED"
    fault = Fault.USER

    def __init__(self, url: str, operation: str, reason: str) -> None:
        super().__init__(
            f"The schema registry at {url} refused {operation}: {reason}. Check the schema, "
            "the login ('schema.registry.basic.auth.user.info', "
            "'schema.registry.bearer.auth.token') and its rights."
        )


class UnknownSchemaError(PysparkKafkaError, LookupError):
    """A schema registry has no such schema; ``what`` names it."""

    condition = "KAFKA_UNKNOWN_SCHEMA"
    fault = Fault.DATA

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"The schema registry at {url} has no {what}. Check the options "
            "'schema.registry.url', 'valueSubject' and 'valueSchemaVersion', and that the "
            "producers use this registry."
        )


class IncompatibleSchemaError(PysparkKafkaError, ValueError):
    """A schema cannot be registered, or cannot be read as another one."""

    condition = "KAFKA_INCOMPATIBLE_SCHEMA"
    fault = Fault.USER

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"{what} cannot be used: {reason}. Change the schema so that the field is compatible, "
            "or lower the compatibility level of the subject."
        )


class MalformedValueError(PysparkKafkaError, ValueError):
    """A record's value or key cannot be decoded, and ``mode`` is ``FAILFAST``."""

    condition = "KAFKA_MALFORMED_VALUE"
    fault = Fault.DATA

    def __init__(
        self, column: str, partition: TopicPartition, offset: int, description: str
    ) -> None:
        self.partition, self.offset = partition, offset
        super().__init__(
            f"The {column} of the record at offset {offset} of {partition} cannot be decoded: "
            f"{description}. To keep reading, set the option 'mode' to PERMISSIVE (the {column} "
            "becomes null) or DROPMALFORMED, or name a 'deadLetterTopic'."
        )


class NewSchemaError(PysparkKafkaError, ValueError):
    """A record has a newer schema than the query's, and ``onNewSchema`` is ``fail``."""

    condition = "KAFKA_NEW_SCHEMA"
    fault = Fault.USER

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
            "'latest' so that each start reads the latest version. To go on with version "
            f"{version.version}, set 'onNewSchema' to 'ignore'."
        )


class DeadLetterLoopError(PysparkKafkaError, ValueError):
    """A record that cannot be decoded is in the dead-letter topic itself."""

    condition = "KAFKA_DEAD_LETTER_LOOP"
    fault = Fault.USER

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"The query reads its own dead-letter topic '{topic}', so that each letter would "
            "become another one. Correct the option 'deadLetterTopic', or 'subscribe', "
            "'subscribePattern' or 'assign' so that the topic is not read."
        )


class DecodedTooLargeError(PysparkKafkaError, OverflowError):
    """Decoded values exceed what the offsets of an Arrow array can address: 2 GiB, or 2^31 rows."""

    condition = "KAFKA_DECODED_VALUES_TOO_LARGE"
    fault = Fault.DATA

    def __init__(self, rows: int) -> None:
        super().__init__(
            f"The decoded values of {rows} records exceed 2 GiB in one column. Lower "
            "'maxRecordBytes', or read fewer fields."
        )


class UnencodableValueError(PysparkKafkaError, ValueError):
    """A row does not fit the schema of its topic."""

    condition = "KAFKA_UNENCODABLE_VALUE"
    fault = Fault.USER

    def __init__(self, column: str, row: int, field: str, reason: str) -> None:
        self.column, self.row, self.field, self.reason = column, row, field, reason
        super().__init__(
            f"The {column} of row {row} of a batch cannot be encoded: field '{field}' {reason}. "
            "Change the query so that the column fits the schema."
        )


def describe_failure(reason: FailureReason, field: str = "", schema_id: int | str = "") -> str:
    """Return what is wrong with a value, with its field and schema where they are known."""
    where = f" (field '{field}')" if field else ""
    schema = f", schema id {schema_id}" if schema_id != "" else ""
    return f"{TEXTS[reason]}{where}{schema}"
