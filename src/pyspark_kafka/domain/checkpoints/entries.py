"""The entries of three logs, each of a line with the version of its format, and JSON.

Initial offsets: the file in which Spark's Kafka source stores where a stream starts
(``KafkaSourceInitialOffsetWriter``), with a byte in front. Spark 2.1.0 stored the length of the
text in that byte (SPARK-19517).

Schema versions, which a stream uses to read its columns. They have their own directory next to the
log of initial offsets: the JVM connector and earlier versions of this library read the only file of
that log. An entry: ``{"value":{"subject":"orders-value","version":3}}``.

The log of an exactly-once sink: the transactions of each micro-batch and their state. Entries have
consecutive numbers, and only the newest one counts. A batch goes from ``PREPARED`` (all records are
written, none is visible) to ``COMMITTED``, or to ``DROPPED`` if none of its transactions was
committed and one cannot be; a dropped batch is written again.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final

from ..errors import MetadataLogError
from ..json_text import is_integer, read_json
from ..options.option import INT16_MAX, INT64_MAX
from ..partition_offsets import PartitionOffsets
from ..text import excerpt
from ..writing.transaction import Transaction
from .checkpoint_log import require_version

VERSION: Final = 1
BATCH_ID: Final = 0
"""The only batch id of this log."""


def write_initial_offsets(offsets: PartitionOffsets) -> bytes:
    """Return the content of the file."""
    return b"\0" + f"v{VERSION}\n{offsets.to_json()}".encode()


def read_initial_offsets(content: bytes) -> PartitionOffsets:
    """Parse the content of the file; a file of Spark 2.1.0 has no version.

    :raises ValueError: with Spark's message, if it is malformed or of a later version.
    """
    try:
        text = content[1:].decode()
    except UnicodeDecodeError as error:
        raise ValueError("Log file was malformed: it is not text.") from error
    if not text.startswith("v"):
        return PartitionOffsets.from_checkpoint(text)
    version, newline, offsets = text.partition("\n")
    if not newline:
        raise ValueError("Log file was malformed: failed to detect the log file version line.")
    require_version(version, VERSION)
    return PartitionOffsets.from_checkpoint(offsets)


DIRECTORY: Final = "schemas"
"""The directory's name, below ``metadataPath``."""


@final
class SchemaVersion(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int


def write_schema_versions(versions: Mapping[str, SchemaVersion]) -> bytes:
    """Return the content of an entry; the keys are ``key`` and ``value``."""
    content = {column: found._asdict() for column, found in sorted(versions.items())}
    return f"v{VERSION}\n{json.dumps(content, separators=(',', ':'))}".encode()


def read_schema_versions(content: bytes) -> dict[str, SchemaVersion]:
    """Parse the content of an entry.

    :raises ValueError: if it is malformed or of a later version.
    """
    try:
        version, _, text = content.decode().partition("\n")
    except UnicodeDecodeError as error:
        raise ValueError("Log file was malformed: it is not text.") from error
    require_version(version, VERSION)
    try:
        parsed = read_json(text)
    except ValueError as error:
        raise ValueError(f"Log file was malformed: {excerpt(text)}") from error
    columns = parsed.items() if isinstance(parsed, dict) else ()
    found = {column: _schema_version(entry) for column, entry in columns}
    if not found or None in found.values():
        raise ValueError(f"Log file was malformed: {excerpt(text)}")
    return {column: entry for column, entry in found.items() if entry is not None}


def _schema_version(entry: object) -> SchemaVersion | None:
    match entry:
        case {"subject": str(subject), "version": version} if is_integer(version) and version > 0:
            return SchemaVersion(subject, version)
    return None


SINK_LOG: Final = "transactions"
"""The directory of the log in ``metadataPath``."""

SINK_LOG_VERSION: Final = 2
"""Version 1 has neither ``queryId`` nor ``offsets`` nor ``startedMs``; it is still read."""

_ENTRY_KEYS: Final = frozenset({"batchId", "state", "transactions"})
_NEW_KEYS: Final = frozenset({"queryId", "offsets", "startedMs"})
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_QUERY_ID: Final = re.compile("[ -~]{1,249}")
_TRANSACTION_KEYS: Final = frozenset({"transactionalId", "producerId", "producerEpoch"})


class BatchState(enum.Enum):
    """The state of a micro-batch."""

    PREPARED = "prepared"
    COMMITTED = "committed"
    DROPPED = "dropped"


@final
@dataclass(frozen=True, slots=True)
class SinkPlan:
    """Facts about the log that the tasks of the next batch need.

    ``query_id`` is the newest entry's; ``used_until_ms`` is ``SinkLogEntry.started_ms``.
    ``planned_ms`` is when the batch was planned, by the driver's clock; ``last_batch`` was the last
    batch in the checkpoint's offset log then, ``None`` if the driver could not read the log, and
    ``offsets`` is the digest of that batch's file. ``log_id`` is the part of transactional ids that
    stands for the log's location.
    """

    committed_through: int = -1
    query_id: str | None = None
    used_until_ms: int = -1
    planned_ms: int | None = None
    last_batch: int | None = None
    offsets: str | None = None
    log_id: str = ""


NO_PLAN: Final = SinkPlan()


@final
@dataclass(frozen=True, slots=True)
class SinkLogEntry:
    """A micro-batch, its state, and its transactions.

    ``offsets`` is the SHA-256 of the batch's file in the checkpoint's offset log, in hexadecimal
    digits; ``None`` if the driver cannot read the checkpoint. ``started_ms`` is when the last
    transaction of this batch or of one before it began, by the coordinators' clock.
    """

    batch_id: int
    state: BatchState
    transactions: tuple[Transaction, ...] = ()
    query_id: str | None = None
    offsets: str | None = None
    started_ms: int = -1

    @property
    def committed_through(self) -> int:
        """The last batch whose records are visible, -1 if there is none."""
        return self.batch_id if self.state is BatchState.COMMITTED else self.batch_id - 1

    def with_state(self, state: BatchState) -> SinkLogEntry:
        """Return the same batch in another state."""
        return replace(self, state=state)

    def to_bytes(self) -> bytes:
        """Return the content of a file: a line with the version, and JSON."""
        content = {
            "batchId": self.batch_id,
            "state": self.state.value,
            "queryId": self.query_id,
            "offsets": self.offsets,
            "startedMs": self.started_ms,
            "transactions": [
                {
                    "transactionalId": transaction.transactional_id,
                    "producerId": transaction.producer_id,
                    "producerEpoch": transaction.epoch,
                }
                for transaction in self.transactions
            ],
        }
        return f"v{SINK_LOG_VERSION}\n{json.dumps(content)}".encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> SinkLogEntry:
        """Parse the content of a file.

        :raises ValueError: if it is malformed or of a later version.
        """
        line, _, text = content.decode(errors="replace").partition("\n")
        version = require_version(line, SINK_LOG_VERSION)
        try:
            return _entry(read_json(text), version)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("Log file was malformed: it is not an entry of a sink log.") from error


def _entry(content: Any, version: int) -> SinkLogEntry:
    _require_keys(content, _ENTRY_KEYS if version == 1 else _ENTRY_KEYS | _NEW_KEYS)
    if not isinstance(content["transactions"], list):
        raise TypeError("not a list")
    transactions = tuple(_transaction(each) for each in content["transactions"])
    if len({each.transactional_id for each in transactions}) != len(transactions):
        raise ValueError("duplicate transactional id")
    return SinkLogEntry(
        _bounded(content["batchId"], INT64_MAX),
        BatchState(content["state"]),
        transactions,
        _text_or_none(content.get("queryId"), _QUERY_ID),
        _text_or_none(content.get("offsets"), _DIGEST),
        _bounded(content.get("startedMs", -1), INT64_MAX, minimum=-1),
    )


def _text_or_none(value: object, form: re.Pattern[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError("not a text of its form")
    return value


def _transaction(content: Any) -> Transaction:
    _require_keys(content, _TRANSACTION_KEYS)
    name = content["transactionalId"]
    # Kafka's strings have a length of 16 bits; JSON can hold characters that UTF-8 cannot.
    if not isinstance(name, str) or not 0 < len(name.encode()) <= INT16_MAX:
        raise ValueError("not a transactional id")
    return Transaction(
        name,
        _bounded(content["producerId"], INT64_MAX),
        _bounded(content["producerEpoch"], INT16_MAX),
    )


def _require_keys(content: Any, keys: frozenset[str]) -> None:
    if not isinstance(content, dict) or content.keys() != keys:
        raise ValueError("other keys")


def _bounded(value: object, maximum: int, minimum: int = 0) -> int:
    if not is_integer(value) or not minimum <= value <= maximum:
        raise ValueError("not a number of its type")
    return value


def other_query_error(path: str, logged: str, query_id: str) -> MetadataLogError:
    """Return the error for a log whose newest entry, at ``path``, is another query's."""
    return MetadataLogError(
        path,
        f"The newest entry of the sink's log is of the query '{excerpt(logged)}', and this one is "
        f"'{excerpt(query_id)}'. Nothing was written, committed or aborted. If this query has a "
        "new checkpoint, set 'metadataPath' to a new directory, or delete the log of the former "
        "query. Otherwise restore the file 'metadata' of the checkpoint",
    )
