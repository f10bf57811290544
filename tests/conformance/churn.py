"""Topics that change at random while a query reads them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.topic_partition import TopicPartition

from .start_offsets import write

if TYPE_CHECKING:
    from pyspark_kafka.testing import KafkaWorld

STEPS: Final = 60


@dataclass(slots=True)
class Churn:
    """Creates, deletes, recreates, truncates and writes topics; no number is written twice.

    One topic only grows and one is only truncated: what is left in both has to be read.
    """

    world: KafkaWorld
    prefix: str
    written: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311
    _alive: list[str] = field(default_factory=list)
    _deleted: list[str] = field(default_factory=list)
    _staying: set[int] = field(default_factory=set)
    _truncated: list[int] = field(default_factory=list)

    @property
    def pattern(self) -> str:
        """The pattern of all topics."""
        return f"{self.prefix}-.*"

    @property
    def kept(self) -> set[int]:
        """The numbers that no deletion touched."""
        return {*self._staying, *self._truncated[-1:]}

    def begin(self) -> None:
        """Create the topics that stay."""
        for name in ("stays", "truncated"):
            self.world.create(f"{self.prefix}-{name}")

    def step(self) -> None:
        """Change something."""
        match self._chance.randrange(10):
            case 0:
                self._create(f"{self.prefix}-{len(self._alive) + len(self._deleted)}")
            case 1 | 2 if self._alive:
                self._delete(self._alive.pop(self._chance.randrange(len(self._alive))))
            case 3 if self._deleted:
                self._create(self._deleted.pop(self._chance.randrange(len(self._deleted))))
            case 4:
                self._truncate()
            case _:
                self._write_all()

    def mark(self) -> set[int]:
        """Write a number to each topic, and return them."""
        return {
            self._write(topic, 1).start
            for topic in (f"{self.prefix}-stays", f"{self.prefix}-truncated", *self._alive)
        }

    def _create(self, topic: str) -> None:
        self.world.create(topic)
        self._alive.append(topic)

    def _delete(self, topic: str) -> None:
        self._write(topic, 5)
        self.world.delete_topic(topic)
        self._deleted.append(topic)

    def _truncate(self) -> None:
        """Delete records that were only just written, but for the last one."""
        topic = f"{self.prefix}-truncated"
        self._truncated += self._write(topic, 5)
        self.world.delete_records(TopicPartition(topic, 0), len(self._truncated) - 1)

    def _write_all(self) -> None:
        for topic in self._alive:
            self._write(topic, self._chance.randrange(10))
        self._staying.update(self._write(f"{self.prefix}-stays", self._chance.randrange(10)))

    def _write(self, topic: str, count: int) -> range:
        numbers = range(self.written, self.written + count)
        self.written += count
        write(self.world, topic, 0, *numbers)
        return numbers
