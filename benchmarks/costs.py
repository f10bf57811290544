"""The processor time of queries on clusters of several sizes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, final

from .plan import GB
from .processor_time import Group, Seconds
from .results import Samples
from .topics import B100, KB1, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MILLION: Final = 1_000_000
ROUNDS: Final = 3

RECORD_GROUPS: Final = (Group.EXECUTORS, Group.WORKERS, Group.BROKERS)
"""The processes that records pass through: the driver plans the same tasks for any number."""

READ: Final = "read"
COPY: Final = "copy"


@final
@dataclass(frozen=True, slots=True)
class Setup:
    """The executors, of one core each, and the brokers of a query, and the topic that it reads."""

    executors: int
    partitions: int
    brokers: int
    shape: Shape = B100


BASE: Final = Setup(executors=2, partitions=16, brokers=1)
BASE_KB1: Final = replace(BASE, shape=KB1)

DIMENSIONS: Final[Mapping[str, tuple[Setup, ...]]] = {
    "executors": tuple(replace(BASE, executors=count) for count in (1, 2, 4)),
    "partitions": tuple(replace(BASE, partitions=count) for count in (1, 4, 16, 64)),
    "brokers": tuple(replace(BASE, brokers=count) for count in (1, 3)),
}
"""The setups that differ in one number, by the name of its field."""

COPIED: Final = DIMENSIONS["executors"]
"""The setups in which copies are measured, too."""


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """The processor time of one competitor's queries, in each counted round."""

    competitor: str
    nearly_empty: tuple[Seconds, ...]
    """Of a query on a topic with one record in each partition."""

    full: tuple[Seconds, ...]
    more_records: int
    """How many more records the full topic has."""

    @property
    def fixed(self) -> float:
        """The seconds of a query without its records."""
        return sum(map(self._fixed_of, Group))

    @property
    def per_million(self) -> Seconds:
        """The seconds of a million records, of each group that they pass through."""
        return {group: statistics.median(self._per_million_of(group)) for group in RECORD_GROUPS}

    @property
    def per_million_in_all(self) -> Samples:
        """The seconds of a million records, of all these groups."""
        rounds = zip(*map(self._per_million_of, RECORD_GROUPS), strict=True)
        return Samples(self.competitor, tuple(map(sum, rounds)))

    def _fixed_of(self, group: Group) -> float:
        return statistics.median(one[group] for one in self.nearly_empty)

    def _per_million_of(self, group: Group) -> Sequence[float]:
        fixed = self._fixed_of(group)
        return [(one[group] - fixed) / self.more_records * MILLION for one in self.full]


Costs: TypeAlias = "Mapping[tuple[Setup, str], Sequence[Cost]]"
"""The costs of each competitor, by a setup and ``READ`` or ``COPY``."""


def cores_for_a_gigabyte(per_million: Seconds, value_bytes: int) -> Seconds:
    """Return the cores of each group that are busy with 1 GB of values per second."""
    millions = GB / value_bytes / MILLION
    return {group: seconds * millions for group, seconds in per_million.items()}
