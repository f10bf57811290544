"""How many tasks a batch has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How the offsets of a batch are divided among tasks. Each is positive, ``None`` is no limit.

    ``max_partitions`` is none of Spark's. With it, small ranges are joined later, so that the
    number of ranges does not say how many tasks there are.
    """

    min_partitions: int | None = None
    max_partitions: int | None = None
    max_records_per_partition: int | None = None

    @property
    def splits_largest(self) -> bool:
        """Whether ranges are split that are larger than a task's share, however many there are."""
        return self.min_partitions is not None and self.max_partitions is not None
