"""The kinds of faults, and those that a schedule may have."""

import enum
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Self

from ..engine.settings import Settings


class Fault(enum.Enum):
    """A kind of fault; the values are the words of a story."""

    RECREATED = "the topic is deleted and created again"
    LATE_LEADER = "the leaders of a new topic serve it late"
    SLOW_REPLICAS = "is appended, and fails: replicas do not confirm it in time"
    REFUSED = "is refused: another leader is elected"
    SLOW = "is answered late"
    PAUSE = "the query waits for records"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings(Settings):
    """The sizes of a schedule."""

    is_continuous: bool
    partitions: int
    writes: int
    rows: int
    """Of each write, at most."""

    batch_records: int
    """Of each of the producer's batches, at most."""

    linger_ms: int
    max_in_flight: int

    @classmethod
    def of(cls, seed: int) -> Self:
        random = Random(seed)  # noqa: S311
        return cls(
            seed=seed,
            kinds=frozenset(random.sample(list(Fault), random.choice((0, 1, 2, 3, 4)))),
            rate=random.choice((0.02, 0.1, 0.3)),
            focus="",
            is_continuous=random.random() < 0.5,
            partitions=random.randint(1, 3),
            writes=random.randint(1, 6),
            rows=random.randint(1, 8),
            batch_records=random.randint(1, 3),
            linger_ms=random.choice((0, 5)),
            max_in_flight=random.choice((1, 2, 5)),
        )

    def smaller(self) -> list[Self]:
        less = (
            replace(self, writes=max(1, self.writes - 1)),
            replace(self, rows=max(1, self.rows - 1)),
            replace(self, partitions=max(1, self.partitions - 1)),
        )
        # Without slots, ``super()`` would be enough: the class is made twice.
        return [*Settings.smaller(self), *(each for each in less if each != self)]


RETRY_MS: Final = 100
"""librdkafka's ``retry.backoff.ms``."""
