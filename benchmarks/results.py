"""What a measure gives: the figures of its competitors, case by case."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """What a figure counts, and which of two is the better one."""

    name: str
    more_is_better: bool

    def times_as_good(self, figure: float, peer: float) -> float:
        """How many times as good a figure is as a peer's."""
        return figure / peer if self.more_is_better else peer / figure


RECORDS_A_SECOND: Final = Unit("records/s", more_is_better=True)
MILLISECONDS: Final = Unit("ms", more_is_better=False)
MEGABYTES: Final = Unit("MB", more_is_better=False)


@final
@dataclass(frozen=True, slots=True)
class Samples:
    """One competitor's figures, one for each counted round."""

    competitor: str
    figures: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.figures:
            raise ValueError(f"'{self.competitor}' was never measured")

    @property
    def median(self) -> float:
        """The figure that is shown."""
        return statistics.median(self.figures)

    @property
    def least(self) -> float:
        """The smallest figure of all rounds."""
        return min(self.figures)

    @property
    def most(self) -> float:
        """The largest figure of all rounds."""
        return max(self.figures)


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """Competitors that were measured in the same rounds, on the same data."""

    case: str
    samples: tuple[Samples, ...]
    bytes_a_record: float | None = None
    """What makes bytes of records, where figures are rates."""

    def of(self, competitor: str) -> Samples:
        """Return one competitor's figures."""
        return next(one for one in self.samples if one.competitor == competitor)


@final
@dataclass(frozen=True, slots=True)
class Section:
    """One measure's results, as they are printed and published."""

    name: str
    title: str
    about: str
    unit: Unit
    comparisons: tuple[Comparison, ...]
    peers: tuple[str, ...] = ()
    """Competitors to which ratios are given."""
