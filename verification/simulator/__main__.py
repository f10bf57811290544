"""Simulate many schedules, and print the stories of those that break a promise.

    python -m verification.simulator sink --schedules 300000 --seed 1
    python -m verification.simulator sink --replay 4711
    python -m verification.simulator sink --planted

``--planted`` puts faults into the product, one after another, and shows after how many schedules
each was found.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable

from .engine.search import in_parts, simulator_of
from .engine.simulator import Simulator

SIMULATORS = ("sink", "source", "reading", "delivery")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("simulator", choices=SIMULATORS)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--strict", action="store_true", help="what is known is a violation, too")
    parser.add_argument(
        "--planted", nargs="?", const="", metavar="NAME", help="look for planted faults, or for one"
    )
    parser.add_argument("--replay", type=int, metavar="SEED", help="print the story of a schedule")
    chosen = parser.parse_args()
    if chosen.planted is not None:
        seeds = range(chosen.seed, chosen.seed + chosen.schedules)
        return find_planted(simulator_of(chosen.simulator), chosen.planted, seeds)
    if chosen.replay is not None:
        return replay(simulator_of(chosen.simulator), chosen.replay, is_strict=chosen.strict)
    return search(chosen)


def replay(simulator: Simulator, seed: int, *, is_strict: bool) -> int:
    """Print the story of a schedule; return 1 if it breaks a promise."""
    outcome = simulator.run(seed, is_strict=is_strict)
    _print(simulator.story_of(simulator.shrink(outcome) if outcome.violation else outcome))
    return int(outcome.violation is not None)


def search(chosen: argparse.Namespace) -> int:
    """Simulate schedules; return 1 if one breaks a promise."""
    began, schedules = time.monotonic(), chosen.schedules
    known, kinds, sizes = Counter[str](), Counter[str](), Counter[str]()
    for part in in_parts(
        chosen.simulator, chosen.seed, schedules, chosen.processes, is_strict=chosen.strict
    ):
        known += part.known
        sizes |= part.sizes
        for kind, story in part.stories:
            kinds[kind] += 1
            if kinds[kind] <= 3:
                _print([*story, ""])
    _print([f"{count:7} x {kind}" for kind, count in kinds.most_common()])
    _print([f"{count:7} x known: {kind}" for kind, count in known.most_common()])
    took_s = time.monotonic() - began
    speed = f"{took_s:.0f} s ({1000 * took_s / schedules:.1f} ms each)"
    most = "".join(f", {size} {name} at most" for name, size in sorted(sizes.items()))
    _print([f"{schedules} schedules in {speed}: {kinds.total()} violations{most}"])
    return int(bool(kinds))


def find_planted(simulator: Simulator, part: str, seeds: range) -> int:
    """Look for planted faults with a part of a name; return 1 if one is not found."""
    missed = 0
    for name in (each for each in simulator.planted if part in each):
        found = simulator.first_found(name, seeds)
        missed += found is None
        tried = f"{found.settings.seed - seeds.start + 1} schedules" if found else "not found"
        story = simulator.story_of(found) if found else []
        _print([f"{name:45} {tried:>16}", *story, ""])
    return int(missed > 0)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
