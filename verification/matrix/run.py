"""Run the tests of one cell."""

import datetime as dt
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from pyspark_kafka.brokers.java import find_java, major_version, version_answer
from tests.packaging.installed import VARIABLE as INSTALLED
from tests.servers.tested_kafka import VARIABLE

from .cells import Cell
from .environments import InstallError, find_python, installed_versions, make_environment
from .project import ROOT, Project
from .results import Counts, Outcome, Result

LOGS: Final = ROOT / "build" / "matrix"

_OF_THE_CALLER: Final = ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME", "VIRTUAL_ENV")
"""Variables that would let an environment import the packages of another one."""


def run_cell(cell: Cell, project: Project) -> Result:
    """Make the environment of a cell, run its tests there, and return what they came to."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    python = find_python(cell.environment.python)
    if python is None:
        missing = f"this machine has no Python {cell.environment.python}"
        return Result(cell.name, Outcome.NOT_RUN, today, reason=missing)
    try:
        made = make_environment(cell.environment, python, project)
    except InstallError as error:
        return Result(cell.name, Outcome.FAILED, today, reason=str(error))
    counts, code, seconds = _run_tests(cell, made)
    return Result(
        cell.name,
        Outcome.PASSED if code == 0 else Outcome.FAILED,
        today,
        _versions(cell, made, project),
        counts,
        seconds,
        "" if code == 0 or counts.failed else f"pytest ended with {code}",
    )


def log_of(cell: Cell) -> Path:
    return LOGS / f"{cell.name}.log"


def _run_tests(cell: Cell, python: Path) -> tuple[Counts, int, int]:
    LOGS.mkdir(parents=True, exist_ok=True)
    report = log_of(cell).with_suffix(".xml")
    report.unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_CALLER}
    is_of_wheel = cell.environment.is_of_wheel
    given = {INSTALLED: str(python)} if is_of_wheel else {}
    runner = Path(sys.executable) if is_of_wheel else python
    begin = time.monotonic()
    with log_of(cell).open("wb") as output:
        code = subprocess.run(
            [runner, "-m", "pytest", "--nightly", f"--junitxml={report}", *cell.tests],
            stdout=output,
            stderr=output,
            check=False,
            cwd=ROOT,
            env={**kept, VARIABLE: cell.broker, **given},
        ).returncode
    seconds = round(time.monotonic() - begin)
    return Counts.of_junit(report) if report.exists() else Counts(), code, seconds


def _versions(cell: Cell, python: Path, project: Project) -> dict[str, str]:
    found = installed_versions(python)
    packages = sorted(project.packages(project.extras) & found.keys())
    return {
        "python": _python_version(python),
        "java": str(major_version(version_answer(find_java(17)))),
        "kafka": cell.broker,
        **{name: found[name] for name in packages},
    }


def _python_version(python: Path) -> str:
    program = "import platform; print(platform.python_version())"
    return subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()
