"""Run everything that runs every night, one part after another, and write the results.

    python -m verification.nightly
    python -m verification.nightly --only tests --only 'fuzz-*'
    python -m verification.nightly --list

The output of a part is in ``build/nightly``. Results of parts that are not chosen are kept. ``make
docs`` then makes the page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from .results import LOGS, PARTS, Part, Result, summary_of, write_results

MAX_SECONDS: Final = 6 * 3_600
"""The time after which a part is ended, so that the others run."""

TIMED_OUT: Final = 124
"""Its status then, as that of the command ``timeout``."""


def main(arguments: list[str]) -> int:
    """Run the command, and return 1 if a part failed."""
    options = argparse.ArgumentParser(
        "python -m verification.nightly",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--only", action="append", default=[], metavar="PATTERN")
    options.add_argument("--list", action="store_true", help="print the parts and their commands")
    given = options.parse_args(arguments)
    parts = [part for part in PARTS if part.is_one_of(given.only)]
    if not parts:
        options.error(f"no part matches {', '.join(given.only)}")
    if given.list:
        print(*(f"{part.name}: {part.command}" for part in parts), sep="\n")  # noqa: T201
        return 0
    results = [run(part) for part in parts]
    return int(not all(result.has_passed for result in results))


def run(part: Part) -> Result:
    """Run a part, and write its result at once: a later one may be interrupted."""
    LOGS.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    command = [sys.executable, "-m", *part.arguments]
    with part.log.open("wb") as log, suppress(subprocess.TimeoutExpired):
        status = TIMED_OUT
        status = subprocess.run(
            command, check=False, stdout=log, stderr=log, timeout=MAX_SECONDS
        ).returncode
    seconds = round(time.monotonic() - begin)
    summary = summary_of(part.log.read_text(errors="replace"))
    result = Result(part.name, status, seconds, f"{datetime.now(UTC):%Y-%m-%d}", summary)
    write_results(result)
    print(f"{part.name}: {result.outcome} in {seconds} s: {result.summary}", flush=True)  # noqa: T201
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
