"""Topics that change at random while a query reads them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld

from .start_offsets import write

_STEPS: Final = 56
_STEPS_BETWEEN_MARKS: Final = 8
"""The last step is followed by a mark."""


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
        return f"{self.prefix}-.*"

    @property
    def kept(self) -> set[int]:
        return {*self._staying, *self._truncated[-1:]}

    def begin(self) -> None:
        for name in ("stays", "truncated"):
            self.world.create(f"{self.prefix}-{name}")

    def steps(self) -> Iterator[set[int]]:
        """Change something at each step; yield numbers that the query has to read before the next.

        They are in all topics, so that the query has read from those that are deleted later.
        """
        yield self._mark()
        for number in range(1, _STEPS + 1):
            self._step()
            yield set() if number % _STEPS_BETWEEN_MARKS else self._mark()

    def _step(self) -> None:
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

    def _mark(self) -> set[int]:
        kept = {*self._stay(1), *self._grow(1)}
        return kept.union(*(self._write(topic, 1) for topic in self._alive))

    def _create(self, topic: str) -> None:
        self.world.create(topic)
        self._alive.append(topic)

    def _delete(self, topic: str) -> None:
        self._write(topic, 5)
        self.world.delete_topic(topic)
        self._deleted.append(topic)

    def _truncate(self) -> None:
        self._grow(5)
        part = TopicPartition(f"{self.prefix}-truncated", 0)
        self.world.delete_records(part, len(self._truncated) - 1)

    def _write_all(self) -> None:
        for topic in self._alive:
            self._write(topic, self._chance.randrange(10))
        self._stay(self._chance.randrange(10))

    def _stay(self, count: int) -> range:
        numbers = self._write(f"{self.prefix}-stays", count)
        self._staying.update(numbers)
        return numbers

    def _grow(self, count: int) -> range:
        numbers = self._write(f"{self.prefix}-truncated", count)
        self._truncated += numbers
        return numbers

    def _write(self, topic: str, count: int) -> range:
        numbers = range(self.written, self.written + count)
        self.written += count
        write(self.world, topic, 0, *numbers)
        return numbers
