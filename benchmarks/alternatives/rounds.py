"""Alternating rounds of programs in processes of their own; a program that fails leaves a case."""

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
from .task import Answer, Order, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .competitors import Competitor

LAST_CHARACTERS: Final = 300


class RunError(Exception):
    """A program failed, did not end in time, or did not do its task."""


@final
@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program: records per second, and the seconds before it began to read."""

    rate: float
    start: float


@final
@dataclass(slots=True)
class Outcome:
    """The runs of the competitors of a case, and why some have none."""

    case: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


Measure: TypeAlias = "Callable[[Competitor], Run]"


def run_rounds(
    case: str, competitors: Sequence[Competitor], rounds: int, measure: Measure
) -> Outcome:
    """Run each competitor once per round; one that fails is not run again.

    It is reported with what it says, and its runs are dropped.
    """
    outcome = Outcome(case)
    for number in range(rounds):
        for one in competitors:
            if one.name in outcome.failures:
                continue
            try:
                run = measure(one)
            except RunError as error:
                outcome.failures[one.name] = str(error)
                outcome.runs.pop(one.name, None)
            else:
                outcome.runs.setdefault(one.name, []).append(run)
                print(
                    f"{case}, {number + 1}/{rounds}: {one.name}: {run.rate:,.0f} records/s, "
                    f"start {run.start:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return outcome


def run_program(python: Path, program: str, order: Order, limit: float) -> tuple[Answer, float]:
    """Run a program to its end, and return its answer and the seconds until it began.

    :raises RunError: if it fails, or does not end within the limit.
    """
    name = f"benchmarks.alternatives.programs.{program}"
    log = FOLDER / f"{program}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="alternatives-") as directory, log.open("wb") as output:
        answer = Path(directory) / "answer.json"
        launched = time.time()
        process = subprocess.Popen(  # noqa: S603 - a program of ours
            [str(python), "-m", name, order.to_json(), str(answer)],
            stdout=output,
            stderr=output,
            cwd=ROOT,
            env=_variables(os.environ),
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise RunError(f"did not end within {limit:.0f} s") from None
        finally:
            _end_group(process)
        if code:
            raise RunError(f"ended with {code}: {_last_line(log)}")
        found = Answer.from_json(answer.read_text())
    return found, found.began_at - launched


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
    """End what a program leaves running, such as a JVM."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:LAST_CHARACTERS] if lines else "it said nothing"
