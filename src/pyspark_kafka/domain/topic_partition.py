"""A partition of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A topic's name and a partition's number, ordered by topic, then by number."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if not self.topic:
            raise ValueError("a topic's name is not empty")
        if self.partition < 0:
            raise ValueError(f"a partition's number is not negative: {self.partition}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
