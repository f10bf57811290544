"""Alternating rounds of programs, each in its own process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

from .environments import FOLDER, ROOT
from .task import Answer, Orders, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .competitors import Competitor

LAST_CHARACTERS: Final = 300


@final
@dataclass(frozen=True, slots=True)
class Run:
    """Records per second, and for a program's first case the seconds before it began."""

    rate: float
    start: float | None = None


@final
@dataclass(slots=True)
class Outcome:
    """The runs of the competitors in a case, and why some have none."""

    case: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, competitor: str, found: Run | str) -> None:
        """Add a run, or the reason why there is none, which drops the competitor's other runs."""
        if isinstance(found, str):
            self.failures[competitor] = found
            self.runs.pop(competitor, None)
        elif competitor not in self.failures:
            self.runs.setdefault(competitor, []).append(found)


Measure: TypeAlias = "Callable[[Competitor], Sequence[Run | str]]"
"""Runs a competitor in each case, and returns its runs, or the reasons why there are none."""


def run_rounds(
    cases: Sequence[str], competitors: Sequence[Competitor], rounds: int, measure: Measure
) -> tuple[Outcome, ...]:
    """Run each competitor once per round, unless it failed in all cases."""
    outcomes = tuple(Outcome(case) for case in cases)
    for number in range(rounds):
        for one in competitors:
            if all(one.name in outcome.failures for outcome in outcomes):
                continue
            for outcome, found in zip(outcomes, measure(one), strict=True):
                outcome.add(one.name, found)
                said = found if isinstance(found, str) else f"{found.rate:,.0f} records/s"
                print(
                    f"{number + 1}/{rounds}: {one.name}, {outcome.case}: {said}",
                    file=sys.stderr,
                    flush=True,
                )
    return outcomes


def run_program(
    python: Path, program: str, orders: Orders, limit: float
) -> tuple[Sequence[Answer], float, str]:
    """Run a program; return its answers, when it was launched, and why it has no more answers."""
    name = f"benchmarks.alternatives.programs.{program}"
    log = FOLDER / f"{program}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="alternatives-") as directory, log.open("wb") as output:
        answers = Path(directory) / "answers"
        answers.touch()
        launched = time.time()
        process = subprocess.Popen(  # noqa: S603 - a program of ours
            [str(python), "-m", name, orders.to_json(), str(answers)],
            stdout=output,
            stderr=output,
            cwd=ROOT,
            env=_variables(os.environ),
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
            reason = f"ended with {code}: {_last_line(log)}"
        except subprocess.TimeoutExpired:
            reason = f"did not end within {limit:.0f} s"
        finally:
            _end_group(process)
        found = [Answer.from_json(line) for line in answers.read_text().splitlines()]
    return found, launched, reason


def with_ports(task: Task, processes: int) -> Task:
    """Return a task with a free port for each of several processes."""
    if processes == 1:
        return task
    with ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(processes)
        ]
        return replace(task, ports=tuple(server.getsockname()[1] for server in servers))


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {**environment, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the processes that a program leaves running, such as a JVM."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:LAST_CHARACTERS] if lines else "it said nothing"
