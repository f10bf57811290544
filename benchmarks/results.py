"""The results of measurements: the figures of competitors, case by case."""

from __future__ import annotations

import statistics
from dataclasses import astuple, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a figure, and whether higher figures are better."""

    name: str
    higher_is_better: bool

    def times_as_good(self, figure: float, peer: float) -> float:
        """Return the ratio of a figure to a peer's, above 1 if it is better."""
        return figure / peer if self.higher_is_better else peer / figure


RECORDS_PER_SECOND: Final = Unit("records/s", higher_is_better=True)
MILLISECONDS: Final = Unit("ms", higher_is_better=False)
MEGABYTES: Final = Unit("MB", higher_is_better=False)
PAGE_FAULTS: Final = Unit("page faults", higher_is_better=False)


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
        """The median of all rounds."""
        return statistics.median(self.figures)

    @property
    def min(self) -> float:
        """The minimum of all rounds."""
        return min(self.figures)

    @property
    def max(self) -> float:
        """The maximum of all rounds."""
        return max(self.figures)


@final
@dataclass(frozen=True, slots=True)
class Percentiles:
    """The latencies of one run, in milliseconds."""

    p50: float
    p90: float
    p99: float
    max: float


@final
@dataclass(frozen=True, slots=True)
class Latencies:
    """One competitor's latencies, for each counted round."""

    competitor: str
    rounds: tuple[Percentiles, ...]

    def __post_init__(self) -> None:
        if not self.rounds:
            raise ValueError(f"'{self.competitor}' was never measured")

    @property
    def median(self) -> Percentiles:
        """The median of all rounds, for each percentile on its own."""
        return Percentiles(
            *(statistics.median(one) for one in zip(*map(astuple, self.rounds), strict=True))
        )


@final
@dataclass(frozen=True, slots=True)
class LatencyComparison:
    """Competitors whose latencies were measured in the same rounds, under the same load."""

    case: str
    latencies: tuple[Latencies, ...]

    def of(self, competitor: str) -> Latencies:
        """Return one competitor's latencies."""
        return next(one for one in self.latencies if one.competitor == competitor)


@final
@dataclass(frozen=True, slots=True)
class LatencySection:
    """The results of one measurement of latencies."""

    name: str
    title: str
    about: str
    comparisons: tuple[LatencyComparison, ...]
    peers: tuple[str, ...] = ()
    """The competitors whose p50 others are compared with."""

    is_plotted: bool = False

    @property
    def unit(self) -> Unit:
        """The unit of latencies."""
        return MILLISECONDS

    @property
    def medians(self) -> Mapping[str, Mapping[str, float]]:
        """The median p50 and p99 of each competitor, by case."""
        return {
            f"{comparison.case}; {name}": {
                one.competitor: getattr(one.median, name) for one in comparison.latencies
            }
            for comparison in self.comparisons
            for name in ("p50", "p99")
        }


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """Competitors that were measured in the same rounds, on the same data."""

    case: str
    samples: tuple[Samples, ...]
    bytes_per_record: float | None = None
    """The bytes per record, if figures are rates of records."""

    def has(self, competitor: str) -> bool:
        """Return whether the competitor was measured in this case."""
        return any(one.competitor == competitor for one in self.samples)

    def of(self, competitor: str) -> Samples:
        """Return one competitor's figures."""
        return next(one for one in self.samples if one.competitor == competitor)


@final
@dataclass(frozen=True, slots=True)
class Section:
    """The results of one measurement."""

    name: str
    title: str
    about: str
    unit: Unit
    comparisons: tuple[Comparison, ...]
    peers: tuple[str, ...] = ()
    """The competitors that others are compared with."""

    limit: str | None = None
    """The competitor without Kafka; its rate is the most that Spark allows."""

    def __post_init__(self) -> None:
        for comparison in self.comparisons:
            missing = [peer for peer in self.peers if not comparison.has(peer)]
            if missing:
                raise ValueError(f"'{missing[0]}' was not measured in '{comparison.case}'")

    @property
    def competitors(self) -> Sequence[str]:
        """All competitors; only the peers have been measured in every case."""
        samples = chain.from_iterable(comparison.samples for comparison in self.comparisons)
        return list(dict.fromkeys(one.competitor for one in samples))

    @property
    def medians(self) -> Mapping[str, Mapping[str, float]]:
        """The median of each competitor, by case."""
        return {
            comparison.case: {one.competitor: one.median for one in comparison.samples}
            for comparison in self.comparisons
        }


AnySection: TypeAlias = Section | LatencySection
