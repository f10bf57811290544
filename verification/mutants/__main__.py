"""Change the domain and the use cases in many small ways, and look for tests that fail.

    python -m verification.mutants
    python -m verification.mutants --layer domain --score 90
    python -m verification.mutants --layer application --sample 700
    python -m verification.mutants --layer application --sample 700 --seed 1 --again

mutmut keeps its results in ``build/mutants``: a further run tries the mutants of functions that
have changed, and with ``--again`` those that survived.
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from .layer import LAYERS, Layer
from .score import MISSED, NOT_TRIED, Score

FOLDER = Path("build/mutants")


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--layer", choices=LAYERS, action="append", help="all if not given")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--score", type=float, default=0, help="the lowest that passes, in %%")
    options.add_argument("--sample", type=int, help="how many mutants to try, from all modules")
    options.add_argument("--seed", type=int, help="of the sample; if not given, that of the day")
    options.add_argument("--again", action="store_true", help="try what survived, too")
    chosen = options.parse_args()
    seed = chosen.seed or datetime.now(UTC).toordinal()
    scores = []
    for name in chosen.layer or LAYERS:
        layer = Layer(name, FOLDER / name)
        sample = layer.sample(chosen.sample, seed) if chosen.sample else None
        try_mutants(layer, chosen.processes, sample, again=chosen.again)
        outcomes = layer.outcomes()
        score = Score.of({mutant: outcomes[mutant] for mutant in sample or outcomes})
        print(score.table(name), score.summary(name), sep="\n\n")  # noqa: T201
        scores.append(score.percent)
    return int(any(percent < chosen.score for percent in scores))


def try_mutants(layer: Layer, processes: int, sample: list[str] | None, *, again: bool) -> None:
    """Try the mutants of the layer or the sample that have no outcome, or that survived."""
    if sample is None:
        layer.try_all(processes)
    outcomes = layer.outcomes()
    wanted = (*((NOT_TRIED,) if sample else ()), *(MISSED if again else ()))
    layer.try_some(processes, [name for name in sample or outcomes if outcomes[name] in wanted])


if __name__ == "__main__":
    sys.exit(main())
