"""A partition of a topic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, final

from .options.option import INT32_MAX
from .text import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

_TOPIC: Final = re.compile("[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Return whether Kafka may have a topic of this name (Java's ``Topic.validate``)."""
    return _TOPIC.fullmatch(text) is not None and text not in {".", ".."}


NAME_RULE: Final = "a name has 1 to 249 letters (A to Z), digits, '.', '_' and '-'"


def topic_name(option: str) -> Callable[[str], str]:
    """Return a parser of the topic that an option names."""

    def parse(text: str) -> str:
        trimmed = text.strip()
        if not is_topic_name(trimmed):
            given = f", got {excerpt(trimmed)!r}: {NAME_RULE}" if trimmed else ""
            raise ValueError(f"{option} must name a topic{given}")
        return trimmed

    return parse


class _Fields(NamedTuple):
    topic: str
    partition: int


@final
class TopicPartition(_Fields):
    """A topic and a partition number; ordered by topic, then by number.

    A tuple, as kafka-python's is: Python hashes and compares a dataclass by function calls, and for
    thousands of partitions these are a large part of a trigger without data.
    """

    __slots__ = ()

    def __new__(cls, topic: str, partition: int) -> TopicPartition:
        """Return the partition.

        :raises ValueError: if the topic has no name, or no partition can have this number.
        """
        if not topic:
            raise ValueError("a topic's name must not be empty")
        if not 0 <= partition <= INT32_MAX:
            raise ValueError(f"not a partition number: {partition}")
        return super().__new__(cls, topic, partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
