"""The results of cells, as a file that the documentation is made from."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self
from xml.etree import ElementTree as ET

from .project import ROOT

RESULTS: Final = ROOT / "verification" / "matrix" / "results.json"


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests passed, were skipped, and failed, errors included."""

    passed: int = 0
    skipped: int = 0
    failed: int = 0

    @classmethod
    def of_junit(cls, report: Path) -> Self:
        suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314 - pytest's own

        def total(name: str) -> int:
            return sum(int(suite.get(name, "0")) for suite in suites)

        failed = total("failures") + total("errors")
        return cls(total("tests") - total("skipped") - failed, total("skipped"), failed)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a cell: when, with which versions, and how long its tests took.

    ``reason`` says why tests did not run. ``versions`` has Python, Kafka, Java and the packages.
    """

    cell: str
    outcome: Outcome
    date: str
    versions: Mapping[str, str] = field(default_factory=dict)
    counts: Counts = Counts()
    seconds: int = 0
    reason: str = ""


def merged(before: Iterable[Result], fresh: Iterable[Result], names: Iterable[str]) -> list[Result]:
    by_name = {result.cell: result for result in (*before, *fresh)}
    return [by_name[name] for name in names if name in by_name]


def read_results(path: Path = RESULTS) -> list[Result]:
    """Return the results in a file, none if there is no file."""
    return [_result(one) for one in json.loads(path.read_text())] if path.exists() else []


def write_results(results: Iterable[Result], path: Path = RESULTS) -> None:
    path.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


def _result(content: dict[str, Any]) -> Result:
    counts, outcome = Counts(**content["counts"]), Outcome(content["outcome"])
    return Result(**{**content, "counts": counts, "outcome": outcome})
