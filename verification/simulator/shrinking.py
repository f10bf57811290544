"""A failing schedule is made as small as possible."""

from dataclasses import replace
from typing import Final

from .faults import Settings
from .simulation import Outcome, simulate

_MAX_RUNS: Final = 400


def shrink(failed: Outcome) -> Outcome:
    """Return a schedule with the same violation, fewer records and partitions, and fewer faults."""
    assert failed.violation is not None
    kind, smallest, runs = failed.violation.kind, failed, 0

    def is_smaller(settings: Settings) -> bool:
        nonlocal smallest, runs
        runs += 1
        outcome = simulate(settings)
        if outcome.violation is None or outcome.violation.kind != kind:
            return False
        smallest = outcome
        return True

    while runs < _MAX_RUNS and any(is_smaller(each) for each in smallest.settings.smaller()):
        pass
    size = max(1, len(smallest.fired) // 2)
    while runs < _MAX_RUNS and size:
        keys = list(smallest.fired)
        parts = [frozenset(keys[:at] + keys[at + size :]) for at in range(0, len(keys), size)]
        if not any(is_smaller(replace(smallest.settings, kept=each)) for each in parts):
            size //= 2
    return smallest
