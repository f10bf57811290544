"""Simulate many schedules, and tell the stories of those that break a promise.

    python -m verification.simulator --schedules 300000 --seed 1
    python -m verification.simulator --replay 4711
    python -m verification.simulator --planted

``--planted`` puts faults into the product, one after another, and shows after how many schedules
each was found.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from .faults import Settings
from .planted import PLANTED, STRICT, planted
from .search import in_parts
from .shrinking import shrink
from .simulation import Outcome, simulate
from .story import story_of


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--strict", action="store_true", help="what is known is a violation, too")
    parser.add_argument(
        "--planted", nargs="?", const="", metavar="NAME", help="look for planted faults, or for one"
    )
    parser.add_argument("--replay", type=int, metavar="SEED", help="tell the story of a schedule")
    chosen = parser.parse_args()
    if chosen.planted is not None:
        return find_planted(chosen.planted, chosen.schedules, chosen.seed)
    if chosen.replay is not None:
        outcome = simulate(replace(Settings.of(chosen.replay), is_strict=chosen.strict))
        _print(story_of(shrink(outcome) if outcome.violation else outcome))
        return int(outcome.violation is not None)
    return search(chosen.seed, chosen.schedules, chosen.processes, is_strict=chosen.strict)


def search(first: int, schedules: int, processes: int, *, is_strict: bool) -> int:
    """Simulate schedules; return 1 if one breaks a promise."""
    began, known, kinds, ids = time.monotonic(), Counter[str](), Counter[str](), 0
    for part in in_parts(first, schedules, processes, is_strict=is_strict):
        known += part.known
        ids = max(ids, part.ids)
        for kind, story in part.stories:
            kinds[kind] += 1
            if kinds[kind] <= 3:
                _print([*story, ""])
    _print([f"{count:7} x {kind}" for kind, count in kinds.most_common()])
    _print([f"{count:7} x known: {kind}" for kind, count in known.most_common()])
    took_ms = 1000 * (time.monotonic() - began)
    speed = f"{took_ms / 1000:.0f} s ({took_ms / schedules:.1f} ms each)"
    _print([f"{schedules} schedules in {speed}: {kinds.total()} violations, {ids} ids at most"])
    return int(bool(kinds))


def find_planted(part: str, schedules: int, first: int) -> int:
    """Look for planted faults with a part of a name; return 1 if one is not found."""
    missed = 0
    for name in (each for each in PLANTED if part in each):
        found = first_found(name, range(first, first + schedules))
        missed += found is None
        tried = f"{found.settings.seed - first + 1} schedules" if found else "not found"
        _print([f"{name:45} {tried:>16}", *(story_of(found) if found else []), ""])
    return int(missed > 0)


def first_found(name: str, seeds: Iterable[int]) -> Outcome | None:
    """Return the first schedule that breaks a promise because of a planted fault, shrunk."""
    is_strict = name in STRICT
    for settings in (replace(Settings.of(seed), is_strict=is_strict) for seed in seeds):
        with planted(name):
            outcome = simulate(settings)
            found = shrink(outcome) if outcome.violation else None
        if found and not simulate(settings).violation:
            return found
    return None


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
