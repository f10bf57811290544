"""Run tests with each supported version, and write the results for the documentation.

    python -m verification.matrix
    python -m verification.matrix --list
    python -m verification.matrix --only 'kafka-*' --only lowest

Each cell has its own virtual environment in ``.venv/matrix``, and its output in ``build/matrix``.
A cell whose Python is missing is reported as not run. Results of cells that are not chosen are
kept. ``make docs`` then makes the page.
"""

import argparse
import sys

from .cells import Cell, all_cells, chosen
from .project import Project
from .results import Outcome, Result, merged, read_results, write_results
from .run import log_of, run_cell


def main(arguments: list[str]) -> int:
    """Run the command, and return 1 if a cell failed, and 2 if there is no such cell."""
    options = argparse.ArgumentParser(
        "python -m verification.matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--only", action="append", default=[], metavar="PATTERN")
    options.add_argument("--list", action="store_true", help="print the names of the cells")
    given = options.parse_args(arguments)
    project = Project.read()
    cells = all_cells(project)
    to_run = chosen(cells, given.only)
    if not to_run:
        options.error(f"no cell matches {', '.join(given.only)}")
    if given.list:
        _say(*(cell.name for cell in to_run))
        return 0
    fresh = [_run(cell, project, [one.name for one in cells]) for cell in to_run]
    return int(any(result.outcome is Outcome.FAILED for result in fresh))


def _run(cell: Cell, project: Project, names: list[str]) -> Result:
    """Run a cell, and write its result at once: a later one may be interrupted."""
    _say(f"{cell.name} ...")
    result = run_cell(cell, project)
    write_results(merged(read_results(), [result], names))
    counts = result.counts
    _say(
        f"{cell.name}: {result.outcome}, {counts.passed} passed, {counts.skipped} skipped, "
        f"{counts.failed} failed in {result.seconds} s"
    )
    if result.reason:
        _say(result.reason)
    if result.outcome is Outcome.FAILED:
        _say(f"The output is in {log_of(cell)}.")
    return result


def _say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
