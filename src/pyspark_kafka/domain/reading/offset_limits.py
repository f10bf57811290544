"""Starting offsets, ending offsets of batch queries, and where the newest records begin."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from ..json_text import is_integer, partition_number, read_json_pairs
from ..options.option import INT64_MAX, did_you_mean, integer
from ..partition_offsets import EARLIEST, EXAMPLE, LATEST, PartitionOffsets
from ..topic_partition import TopicPartition

TIMESTAMPS_EXAMPLE: Final = (
    '{"topicA": {"0": 123456789, "1": 123456789},\n"topicB": {"0": 123456789, "1": 123456789}}'
)

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


@final
@dataclass(frozen=True, slots=True)
class Earliest:
    """The earliest offset of every partition."""


@final
@dataclass(frozen=True, slots=True)
class Latest:
    """The latest offset of every partition."""


@final
@dataclass(frozen=True, slots=True)
class Specific:
    """An offset for each partition; -1 is latest and -2 earliest.

    ``topics`` are offsets for all partitions of a topic (SPARK-58774): ``(("topicA", -2),)``.
    """

    offsets: PartitionOffsets
    topics: tuple[tuple[str, int], ...] = ()

    def of(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return the offsets of those ``partitions`` that have one."""
        topics = dict(self.topics)
        found = ((part, self.offsets.get(part, topics.get(part.topic))) for part in partitions)
        return PartitionOffsets((part, offset) for part, offset in found if offset is not None)


class OnNoMatch(enum.Enum):
    """The handling of a partition that has no record at or after a timestamp."""

    ERROR = "error"
    LATEST = "latest"


@final
@dataclass(frozen=True, slots=True)
class GlobalTimestamp:
    """The first record at or after a timestamp in every partition (milliseconds since epoch)."""

    timestamp: int
    on_no_match: OnNoMatch


Timestamps = tuple[tuple[TopicPartition, int], ...]
"""Milliseconds since the epoch by partition, in the order of the partitions."""


@final
@dataclass(frozen=True, slots=True)
class ByTimestamp:
    """A timestamp for each partition, as in ``GlobalTimestamp``."""

    timestamps: Timestamps
    on_no_match: OnNoMatch


class OnMissingCommit(enum.Enum):
    """The handling of a partition without a committed offset."""

    ERROR = "error"
    EARLIEST = "earliest"
    LATEST = "latest"


@final
@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The committed offset of a consumer group in every partition."""

    group_id: str
    on_missing_commit: OnMissingCommit = OnMissingCommit.ERROR


GROUP: Final = CommittedOffsets("")
"""The value of ``group`` before the group id is known."""

OffsetLimit = Earliest | Latest | Specific | GlobalTimestamp | ByTimestamp
StartingOffsets = OffsetLimit | CommittedOffsets
EndingOffsets = Latest | Specific | GlobalTimestamp | ByTimestamp


def starts_at_latest(limit: StartingOffsets, partition: TopicPartition) -> bool:
    """Return whether a stream starts at the latest offset of a partition."""
    match limit:
        case Latest():
            return True
        case Specific():
            return limit.of([partition]).get(partition) == LATEST
        case _:
            return False


def can_move(limit: StartingOffsets, partition: TopicPartition) -> bool:
    """Return whether new records or commits can change where a stream starts in a partition."""
    is_fixed = isinstance(limit, Earliest | Specific)
    return not is_fixed or starts_at_latest(limit, partition)


def parse_offset_limit(text: str) -> Earliest | Latest | Specific:
    """Parse ``earliest``, ``latest`` (case-insensitive) or offsets as JSON.

    :raises ValueError: with the message of Spark's ``JsonUtils``, if it is anything else.
    """
    trimmed = text.strip()
    match trimmed.lower():
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
        case word if meant := _meant(word, _LIMITS):
            raise ValueError(f"Expected e.g. {EXAMPLE}, got {trimmed}.{meant}")
        case _:
            return _parse_specific(trimmed)


def parse_starting_offsets(text: str) -> Earliest | Latest | Specific | CommittedOffsets:
    """Parse what ``parse_offset_limit`` parses, or ``group`` (case-insensitive).

    :raises ValueError: as ``parse_offset_limit``.
    """
    trimmed = text.strip()
    if trimmed.lower() == _GROUP:
        return GROUP
    if meant := _meant(trimmed.lower(), {_GROUP: _GROUP}):
        raise ValueError(f"Expected e.g. {EXAMPLE}, got {trimmed}.{meant}")
    return parse_offset_limit(text)


_GROUP: Final = "group"
_LIMITS: Final = {
    **dict.fromkeys(("earliest", "beginning", "first", "oldest", "smallest"), "earliest"),
    **dict.fromkeys(("latest", "end", "last", "largest", "newest", "now"), "latest"),
}
"""The words for offsets, and those that other tools and people use for them."""


def _meant(word: str, known: Mapping[str, str]) -> str:
    """Return a question for the word that was meant, or no text."""
    return did_you_mean(word, known) if word.isalpha() else ""


def parse_on_missing_commit(text: str) -> OnMissingCommit:
    """Parse what to do with partitions without a committed offset.

    :raises ValueError: if it is not ``error``, ``earliest`` or ``latest``.
    """
    try:
        return OnMissingCommit(text.strip().lower())
    except ValueError as error:
        known = ", ".join(f"'{one.value}'" for one in OnMissingCommit)
        raise ValueError(
            f"startingOffsetsGroupFallback must be one of {known}, got '{text}'"
        ) from error


def parse_global_timestamp(text: str) -> int:
    """Parse milliseconds since the epoch.

    :raises ValueError: with the message of Spark's ``KafkaSourceProvider``.
    """
    trimmed = text.strip()
    try:
        return integer(trimmed)
    except ValueError as error:
        raise ValueError(f"Expected a single long value, got {trimmed}") from error


def parse_timestamps(text: str) -> Timestamps:
    """Parse ``{"topicA":{"0":123456789}}``.

    :raises ValueError: with the message of Spark's ``JsonUtils``, if it has any other shape.
    """
    text = text.strip()
    pairs = read_json_pairs(text, TIMESTAMPS_EXAMPLE)
    try:
        _require_single(name for name, _ in pairs)
        return tuple(
            sorted(
                (TopicPartition(topic, partition_number(number)), _timestamp(value))
                for topic, partitions in pairs
                for number, value in partitions.items()
            )
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"Expected e.g. {TIMESTAMPS_EXAMPLE}, got {text}") from error


def parse_on_no_match(text: str) -> OnNoMatch:
    """Parse what to do with partitions without a matching record.

    :raises ValueError: with the message of Scala's ``Enumeration``, if it is neither value.
    """
    try:
        return OnNoMatch(text.lower())
    except ValueError as error:
        raise ValueError(f"No value found for '{text.upper()}'") from error


def _parse_specific(text: str) -> Specific:
    pairs = read_json_pairs(text, EXAMPLE)
    words = [(topic, value) for topic, value in pairs if isinstance(value, str)]
    numbers = [(topic, value) for topic, value in pairs if not isinstance(value, str)]
    clashing = sorted({topic for topic, _ in words} & {topic for topic, _ in numbers})
    if clashing:
        raise ValueError(
            f"Topic '{clashing[0]}' has both a topic-level offset and offsets of partitions, "
            f"got {text}"
        )
    try:
        _require_single(topic for topic, _ in pairs)
        return Specific(
            PartitionOffsets.from_dict(dict(numbers)),
            tuple(sorted((topic, _WORDS[word.lower()]) for topic, word in words)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"Expected e.g. {EXAMPLE}, got {text}") from error


def _require_single(names: Iterable[str]) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise ValueError("duplicate topic")


def _timestamp(value: Any) -> int:
    if not is_integer(value) or abs(value) > INT64_MAX:
        raise ValueError(f"not a timestamp: {value!r}")
    return int(value)


@final
@dataclass(frozen=True, slots=True)
class AtOffset:
    """An offset for every partition; a negative one counts from the end."""

    offset: int

    def within(self, earliest: int, latest: int) -> int:
        """Return the offset to begin at: the nearest one that the leader holds."""
        wanted = latest + self.offset if self.offset < 0 else self.offset
        return min(max(wanted, earliest), latest)
