"""Alternating runs, so that a temporary disturbance affects every competitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .results import Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .plan import Plan

K = TypeVar("K")
T = TypeVar("T")


def run_rounds(competitors: Mapping[K, Callable[[], T]], plan: Plan) -> Mapping[K, tuple[T, ...]]:
    """Run every competitor once per round, and return the results of the counted rounds."""
    for _ in range(plan.warm_up_rounds):
        for run in competitors.values():
            run()
    rounds = [[run() for run in competitors.values()] for _ in range(plan.runs)]
    return dict(zip(competitors, zip(*rounds, strict=True), strict=True))


def alternate(competitors: Mapping[str, Callable[[], float]], plan: Plan) -> tuple[Samples, ...]:
    """Run every competitor once per round, and return the figures of the counted rounds."""
    return tuple(Samples(name, figures) for name, figures in run_rounds(competitors, plan).items())
