"""A partition of a topic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from .options.option import INT32_MAX

_TOPIC: Final = re.compile("[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Return whether Kafka may have a topic of this name (Java's ``Topic.validate``)."""
    return _TOPIC.fullmatch(text) is not None and text not in {".", ".."}


@final
@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A topic and a partition number; ordered by topic, then by number."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if not self.topic:
            raise ValueError("a topic's name must not be empty")
        if not 0 <= self.partition <= INT32_MAX:
            raise ValueError(f"not a partition number: {self.partition}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
