"""The input of a query: partitions, topics, or topics whose name matches a pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, final

from .json_text import is_integer, read_json_object
from .topic_partition import TopicPartition

ASSIGN_EXAMPLE: Final = '{"topicA":[0,1],"topicB":[0,1]}'

_JAVA_TOKENS: Final = re.compile(r"\\0[0-3][0-7]{2}|\\[^0]|\[\^?\]?|\]|&&", re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class Assign:
    """Exactly these partitions (option ``assign``)."""

    option: ClassVar[str] = "assign"
    partitions: frozenset[TopicPartition]

    def __post_init__(self) -> None:
        if not self.partitions:
            raise ValueError("an assignment needs at least one partition")

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the partitions."""
        return frozenset(partition.topic for partition in self.partitions)

    @classmethod
    def from_json(cls, text: str) -> Assign:
        """Parse ``{"topicA":[0,1]}``.

        :raises ValueError: with the message of Spark's ``JsonUtils``, if it has any other shape.
        """
        topics = read_json_object(text, ASSIGN_EXAMPLE)
        try:
            return cls(
                frozenset(
                    TopicPartition(topic, _number(partition))
                    for topic, partitions in topics.items()
                    for partition in partitions
                )
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"Expected e.g. {ASSIGN_EXAMPLE}, got {text}") from error

    def __str__(self) -> str:
        return f"Assign[{', '.join(map(str, sorted(self.partitions)))}]"


@final
@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics (option ``subscribe``)."""

    option: ClassVar[str] = "subscribe"
    topics: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.topics:
            raise ValueError("a subscription needs at least one topic")

    @classmethod
    def from_text(cls, text: str) -> Subscribe:
        """Parse topics separated by commas; blanks around them and empty names are ignored.

        :raises ValueError: if no topic is left.
        """
        names = (name.strip() for name in text.split(","))
        return cls(tuple(dict.fromkeys(name for name in names if name)))

    def __str__(self) -> str:
        return f"Subscribe[{', '.join(self.topics)}]"


@final
@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics that match a pattern (option ``subscribePattern``)."""

    option: ClassVar[str] = "subscribePattern"
    pattern: str

    def __post_init__(self) -> None:
        if not self.pattern:
            raise ValueError("a pattern must not be empty")
        found = _java_only(self.pattern)
        if found is not None:
            raise ValueError(
                f"not the same regular expression in Python as in Java: {self.pattern!r}: "
                f"'{found}' means something else in Java. Patterns are Python's: escape it, or "
                "write the pattern without it"
            )
        try:
            re.compile(self.pattern)
        except (re.error, OverflowError, RecursionError) as error:
            # The others are a repetition such as {99999999999}, and thousands of parentheses.
            raise ValueError(f"not a regular expression: {self.pattern!r}: {error}") from error

    def matches(self, topic: str) -> bool:
        """Return whether the pattern matches anywhere in the topic's name.

        Unanchored, as in Spark's ``ConsumerStrategy.SubscribePatternStrategy``.
        """
        return re.search(self.pattern, topic) is not None

    def __str__(self) -> str:
        return f"SubscribePattern[{self.pattern}]"


def _java_only(pattern: str) -> str | None:
    """Return the part of a pattern that has another meaning in Python than in Java, if any.

    These are sets within sets, their intersections, and octal escapes of three digits.
    """
    is_in_set = False
    for found in _JAVA_TOKENS.finditer(pattern):
        token = found[0]
        if token.startswith("\\0") or (is_in_set and token[0] in "[&"):
            return "[" if token[0] == "[" else token
        if token[0] in "[]":
            is_in_set = token[0] == "["
    return None


Subscription = Assign | Subscribe | SubscribePattern


def _number(value: object) -> int:
    if not is_integer(value):
        raise ValueError(f"not a partition number: {value!r}")
    return value
