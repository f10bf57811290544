"""A run: the results of its measurements, its size, and its machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

from .plan import Plan
from .results import (
    Comparison,
    Latencies,
    LatencyComparison,
    LatencySection,
    Percentiles,
    Samples,
    Section,
    Unit,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .results import AnySection


@final
@dataclass(frozen=True, slots=True)
class Run:
    """The results of a run, or of a part of it, with every counted round."""

    command: str
    plan: Plan
    machine: Mapping[str, str]
    """The machine, the versions of packages and the commit, by name."""

    sittings: tuple[str, ...]
    """When it began, and when it was continued after an interruption."""

    sections: tuple[AnySection, ...] = ()

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Run:
        """Return the run that was written as JSON.

        :raises ValueError: if it is not JSON.
        :raises KeyError: if something is missing in it.
        :raises TypeError: if something in it has a wrong type.
        """
        found = _with_tuples(json.loads(text))
        sections = tuple(map(_section, found["sections"]))
        return cls(**{**found, "plan": Plan(**found["plan"]), "sections": sections})


def _with_tuples(value: Any) -> Any:
    """Return a value with tuples instead of JSON's lists."""
    match value:
        case list():
            return tuple(map(_with_tuples, value))
        case dict():
            return {name: _with_tuples(each) for name, each in value.items()}
        case _:
            return value


def _section(found: Mapping[str, Any]) -> AnySection:
    if "unit" in found:
        comparisons = tuple(map(_comparison, found["comparisons"]))
        return Section(**{**found, "unit": Unit(**found["unit"]), "comparisons": comparisons})
    latencies = tuple(map(_latency_comparison, found["comparisons"]))
    return LatencySection(**{**found, "comparisons": latencies})


def _comparison(found: Mapping[str, Any]) -> Comparison:
    samples = tuple(Samples(**each) for each in found["samples"])
    return Comparison(**{**found, "samples": samples})


def _latency_comparison(found: Mapping[str, Any]) -> LatencyComparison:
    return LatencyComparison(found["case"], tuple(map(_latencies, found["latencies"])))


def _latencies(found: Mapping[str, Any]) -> Latencies:
    rounds = tuple(Percentiles(**each) for each in found["rounds"])
    return Latencies(found["competitor"], rounds)
