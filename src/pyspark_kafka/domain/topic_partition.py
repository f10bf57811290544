"""A partition of a topic."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, final

from .options.option import INT32_MAX

_TOPIC: Final = re.compile("[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Return whether Kafka may have a topic of this name (Java's ``Topic.validate``)."""
    return _TOPIC.fullmatch(text) is not None and text not in {".", ".."}


class _Fields(NamedTuple):
    topic: str
    partition: int


@final
class TopicPartition(_Fields):
    """A topic and a partition number; ordered by topic, then by number.

    A tuple, as kafka-python's is: Python hashes and compares a dataclass by calls of functions,
    which of thousands of partitions are a large part of a trigger without data.
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
