"""The outcome of the mutants of a layer, by module."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

FOUND: Final = ("killed", "timeout")
"""Outcomes, in mutmut's words, of mutants that a test found.

It failed; or it did not end, or could not be imported: for mutmut both are time-outs.
"""

MISSED: Final = ("survived", "no tests", "suspicious", "segfault")

NOT_TRIED: Final = "not checked"

SHOWN_MODULES: Final = 10


@dataclass(frozen=True, slots=True)
class Score:
    """The outcomes of the mutants that were tried, by the names of their modules."""

    outcomes: Mapping[str, Counter[str]]

    @classmethod
    def of(cls, outcomes: Mapping[str, str]) -> Self:
        of_modules: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for mutant, outcome in outcomes.items():
            of_modules[module_of(mutant)][outcome] += 1
        return cls(of_modules)

    @property
    def percent(self) -> float:
        return percent_found(self._total)

    @property
    def _total(self) -> Counter[str]:
        return sum(self.outcomes.values(), Counter())

    def table(self, layer: str) -> str:
        """Return the outcomes of the layer and of the modules with the lowest scores, as text."""
        worst = sorted(self.outcomes.items(), key=lambda item: percent_found(item[1]))
        rows = [(layer, self._total), *worst[:SHOWN_MODULES]]
        header = f"{'':44}{'score':>7}" + "".join(f"{outcome:>13}" for outcome in FOUND + MISSED)
        return "\n".join([header, *(_row(name, counts) for name, counts in rows)])

    def summary(self, layer: str) -> str:
        """Return the score in a line."""
        return f"{layer}: {self.percent:.1f} % of {self._total.total()} mutants were found"


def module_of(mutant: str) -> str:
    """Return the module of a mutant, such as ``pyspark_kafka.domain.lag.lag.x_sum__mutmut_1``."""
    return mutant.rpartition(".")[0]


def percent_found(counts: Counter[str]) -> float:
    return 100 * sum(counts[outcome] for outcome in FOUND) / max(1, counts.total())


def _row(name: str, counts: Counter[str]) -> str:
    numbers = "".join(f"{counts[outcome]:>13}" for outcome in FOUND + MISSED)
    return f"{name:44}{percent_found(counts):>6.1f}%{numbers}"
