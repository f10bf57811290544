"""The parts of a night, their results, and the page that shows them."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.nightly_selection import NIGHTLY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT: Final = Path(__file__).parents[2]
LOGS: Final = ROOT / "build" / "nightly"
RESULTS: Final = Path(__file__).parent / "results.json"

HEAD: Final = """\
<!-- make docs makes this page from results of make nightly; do not edit it. -->

# Nightly

`make test` leaves out what takes long and rarely finds something new:

| why | tests |
|---|---|
{left_out}| they do not depend on the client | most of `spark` and `conformance` with `confluent` |

`make test ARGS=--nightly` runs them, too. `make nightly` does so, and runs programs that search
for faults with random seeds. These are its last results:

| part | result | seconds | date | summary |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A program that runs every night: arguments of ``python -m``."""

    name: str
    command: str

    @property
    def arguments(self) -> Sequence[str]:
        """The arguments, one by one."""
        return shlex.split(self.command)

    @property
    def log(self) -> Path:
        """Where its output is."""
        return LOGS / f"{self.name}.log"

    def is_one_of(self, patterns: Sequence[str]) -> bool:
        """Return whether a pattern names it, or there is none."""
        return not patterns or any(fnmatchcase(self.name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Result:
    """How a part ended, and a sentence on what it did."""

    part: str
    status: int
    seconds: int
    date: str
    summary: str

    @property
    def has_passed(self) -> bool:
        """Whether it found no fault."""
        return self.status == 0

    @property
    def outcome(self) -> str:
        """The result in a word or two."""
        return "passed" if self.has_passed else f"failed ({self.status})"


PARTS: Final = (
    Part(
        "tests",
        "pytest --nightly --stock-spark -q -p no:cacheprovider --numprocesses auto --dist loadfile"
        " --no-loadscope-reorder",
    ),
    Part(
        "coverage",
        "pytest -q -p no:cacheprovider --numprocesses auto --cov=pyspark_kafka.domain --cov-report="
        " --cov-fail-under=100 tests/unit/domain tests/unit/test_errors.py"
        " tests/unit/test_imports.py",
    ),
    Part("simulator", "verification.simulator sink --schedules 100000 --processes 2"),
    Part("simulator-source", "verification.simulator source --schedules 200000 --processes 2"),
    Part("simulator-reading", "verification.simulator reading --schedules 100000 --processes 2"),
    Part("simulator-delivery", "verification.simulator delivery --schedules 100000 --processes 2"),
    Part("soak-kills", "verification.soak --rounds 15"),
    Part("soak-write-stage", "verification.soak --write-stage --rounds 10 --keep-going"),
    Part("soak-continuous", "verification.soak --continuous --rounds 10"),
    Part("soak-secured", "verification.soak --secured --minutes 10"),
    Part("soak-hostile", "verification.soak --hostile --rounds 15 --keep-going"),
    Part("soak-racks", "verification.soak --hostile continuous --racks --rounds 15 --keep-going"),
    Part("trials-differential", "verification.trials differential --minutes 15"),
    Part("trials-schedules", "verification.trials schedules --minutes 15"),
    Part("trials-secrets", "verification.trials secrets --minutes 10"),
    Part("trials-values", "verification.trials values --minutes 15"),
    Part("trials-spark-values", "verification.trials spark-values --minutes 15"),
    *(
        Part(f"fuzz-{target}", f"verification.fuzz --target {target} --minutes 10")
        for target in (
            *("decoder", "kernels", "exchange", "responses", "files", "json", "protobuf", "avro"),
            *("encode-json", "encode-avro", "encode-protobuf"),
        )
    ),
    # Another sample each night, and whole layers only now and then: they have 19,000 mutants.
    Part("mutants-domain", "verification.mutants --layer domain --sample 300 --score 88"),
    Part("mutants-application", "verification.mutants --layer application --sample 300 --score 80"),
    Part("mutants-memory", "verification.mutants --layer adapters/memory --sample 100 --score 80"),
)


def read_results() -> list[Result]:
    """Return the last result of each part that has run."""
    return [Result(**each) for each in json.loads(RESULTS.read_text())] if RESULTS.exists() else []


def write_results(fresh: Result) -> None:
    """Replace the result of a part."""
    by_name = {result.part: result for result in (*read_results(), fresh)}
    kept = [asdict(by_name[part.name]) for part in PARTS if part.name in by_name]
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def summary_of(output: str) -> str:
    """Return the last line of an output with the tests that failed, or what its rounds counted."""
    lines = [line.strip(" =") for line in output.replace("\r", "\n").split("\n")]
    rounds = [json.loads(line) for line in lines if line.startswith('{"seed"')]
    if rounds:
        return _sum_of(rounds)
    last = next((line for line in reversed(lines) if line), "")
    failed = [line.split()[1] for line in lines if line.startswith("FAILED ")]
    return f"{last}: {', '.join(failed)}" if failed else last


def _sum_of(rounds: Sequence[dict[str, Any]]) -> str:
    counted = ", ".join(
        f"{_total(rounds, name):,} {text}"
        for name, text in {
            "records": "records",
            "missing": "missing",
            "duplicates": "duplicates",
            "vanished": "deleted by retention or compaction",
        }.items()
    )
    errors = [str(each["error"]) for each in rounds if each["error"] is not None]
    failed = f"; failed: {', '.join(errors)}" if errors else ""
    return f"{len(rounds)} rounds: {counted}{failed}"


def _total(value: object, name: str, *, counts: bool = False) -> int:
    """Return the sum of the numbers under a name, at any depth."""
    match value:
        case dict():
            return sum(
                _total(each, name, counts=counts or key == name) for key, each in value.items()
            )
        case list():
            return sum(_total(each, name, counts=counts) for each in value)
        case int() if counts:
            return value
        case _:
            return 0


def nightly_page() -> str:
    """Return the page of the last night."""
    return page_of(read_results())


def page_of(results: Iterable[Result]) -> str:
    """Return a page with a row for each part, also for those that have not run."""
    by_name = {result.part: result for result in results}
    return HEAD.format(left_out=_left_out()) + "".join(
        _row(part, by_name.get(part.name)) for part in PARTS
    )


def _left_out() -> str:
    by_reason: dict[str, list[str]] = {}
    for pattern, why in NIGHTLY.items():
        shown = pattern.replace("\\", "").replace("|", "\\|")
        by_reason.setdefault(why, []).append(f"`{shown}`")
    return "".join(f"| {why} | {', '.join(tests)} |\n" for why, tests in by_reason.items())


def _row(part: Part, result: Result | None) -> str:
    if result is None:
        return f"| {part.name} | not run | | | |\n"
    summary = result.summary.replace("|", "\\|").replace("`", "")
    return f"| {part.name} | {result.outcome} | {result.seconds:,} | {result.date} | {summary} |\n"
