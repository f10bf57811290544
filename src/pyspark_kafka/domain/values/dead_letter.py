"""Dead letters: records that could not be decoded, with the reason in their headers.

The headers are those of Kafka Connect's ``DeadLetterQueueReporter`` (KIP-298), all of them text,
and our header with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self, final

from ..options.option import INT32_MAX, INT64_MAX
from ..topic_partition import TopicPartition
from .errors import FailureReason

Header = tuple[str, bytes | None]

PREFIX: Final = "__connect.errors."
TOPIC: Final = f"{PREFIX}topic"
PARTITION: Final = f"{PREFIX}partition"
OFFSET: Final = f"{PREFIX}offset"
CONNECTOR_NAME: Final = f"{PREFIX}connector.name"
TASK_ID: Final = f"{PREFIX}task.id"
STAGE: Final = f"{PREFIX}stage"
CLASS_NAME: Final = f"{PREFIX}class.name"
EXCEPTION_CLASS_NAME: Final = f"{PREFIX}exception.class.name"
EXCEPTION_MESSAGE: Final = f"{PREFIX}exception.message"
REASON: Final = "__pyspark_kafka.errors.reason"

HEADERS: Final = (
    TOPIC,
    PARTITION,
    OFFSET,
    CONNECTOR_NAME,
    TASK_ID,
    STAGE,
    CLASS_NAME,
    EXCEPTION_CLASS_NAME,
    EXCEPTION_MESSAGE,
    REASON,
)
"""The headers of a letter behind the record's own, in this order."""

_STACK_TRACE: Final = f"{PREFIX}exception.stacktrace"
_NAMES: Final = frozenset((*HEADERS, _STACK_TRACE))

STAGES: Final = {"key": "KEY_CONVERTER", "value": "VALUE_CONVERTER"}
"""The stages of Kafka Connect in which a column is decoded."""

REASONS: Final = tuple(reason.name for reason in FailureReason)
"""The values of the header ``REASON``, by the numbers of ``FailureReason``."""


@final
@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """The writer of a letter: the id of the query, and the number of the task in its job.

    The defaults are of a read without Spark.
    """

    query: str = "pyspark-kafka"
    task: str = "0"


@final
@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The content of a letter's headers.

    ``origin`` and ``offset`` identify the record: retried tasks write its letter again. ``reason``
    is the name of a ``FailureReason``; in a letter of Kafka Connect it is the Java exception.
    """

    origin: TopicPartition
    offset: int
    reason: str
    query: str = ""
    error: str = ""

    @property
    def has_known_reason(self) -> bool:
        """Whether the reason is the name of a ``FailureReason``."""
        return self.reason in REASONS

    @classmethod
    def from_headers(cls, headers: Iterable[Header]) -> Self | None:
        """Return the content of a record's headers; ``None`` if it is not a letter.

        Of several headers with one name the last one counts: a letter may have been read from
        another dead-letter topic.
        """
        texts = {name: value.decode(errors="replace") for name, value in headers if value}
        try:
            origin = TopicPartition(texts[TOPIC], int(texts[PARTITION]))
            offset = int(texts[OFFSET])
        except (KeyError, ValueError):
            return None
        if not (0 <= origin.partition <= INT32_MAX and 0 <= offset <= INT64_MAX):
            return None
        reason = texts.get(REASON) or texts.get(EXCEPTION_CLASS_NAME, "unknown")
        query, error = texts.get(CONNECTOR_NAME, ""), texts.get(EXCEPTION_MESSAGE, "")
        return cls(origin, offset, reason, query, error)


def original_headers(headers: Sequence[Header]) -> list[Header]:
    """Return the headers of a letter without those that it adds, which begin with ``TOPIC``.

    Of these, the last one of each name is removed: the record may be a letter itself, of Kafka
    Connect for example.
    """
    first = max(place for place, (name, _) in enumerate(headers) if name == TOPIC)
    added = {name: place for place, (name, _) in enumerate(headers[first:], first)}
    removed = {place for name, place in added.items() if name in _NAMES}
    return [header for place, header in enumerate(headers) if place not in removed]
