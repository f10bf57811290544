"""An interpreter of this or of another Python, which runs the examples of a page one by one.

Another Python runs the source of this module, so that it sees neither this checkout nor its
packages: the module imports the standard library only.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Run = Callable[[str], str]
    """Runs statements, and returns what they print."""


def interpreter() -> Run:
    """Return an interpreter in this process."""
    names: dict[str, Any] = {"__name__": "__main__"}

    def run(source: str) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(source, names)  # noqa: S102 - an example of ours
        return printed.getvalue()

    return run


@contextmanager
def interpreter_of(python: Path, directory: Path, environment: Mapping[str, str]) -> Iterator[Run]:
    """Yield an interpreter of another Python, which ends without an error after the block."""
    log = directory / "interpreter.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [python, "-c", Path(__file__).read_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=directory,
            env=environment,
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        sources, answers = process.stdin, process.stdout

        def run(source: str) -> str:
            print(json.dumps(source), file=sources, flush=True)
            answer = answers.readline()
            assert answer, log.read_text()
            return json.loads(answer)

        yield run
    assert process.returncode == 0, log.read_text()


def _serve() -> None:
    """Answer each line of JSON with what its statements print."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Spark's JVM prints, too
    run = interpreter()
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
