"""A driver as a process that can be killed whole."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyspark_kafka
from tests.slowness import bound_s

from .losses import Loss, losses_in
from .processes import Process, kill_session, workers_of

_PATHS: Final = (Path(__file__).parents[2], Path(str(pyspark_kafka.__file__)).parents[1])
_LAST_WORDS: Final = 6_000
_END_S: Final = bound_s(30)


class DriverProcess:
    """A program in a session of its own; after its end, it can be started again."""

    def __init__(
        self, program: Path, directory: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        """Take a program, and a directory for its settings and its log, which exists."""
        self._program = program
        self._config = directory / "config.json"
        self._log = directory / "driver.log"
        self._added = dict(variables or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._logged = 0

    @property
    def pid(self) -> int:
        """Its process, and its session."""
        return self._process.pid if self._process else 0

    def launch(self, config: Mapping[str, object]) -> None:
        """Start the process, which reads its settings from a file."""
        self._config.write_text(json.dumps(config))
        with self._log.open("ab") as log:
            self._logged = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, self._program, self._config],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )

    def log(self) -> str:
        return self._log.read_bytes()[self._logged :].decode(errors="replace")

    def losses(self) -> Iterable[Loss]:
        """Return what its queries have reported as lost, in all of its runs."""
        return losses_in(self._log.read_text(errors="replace") if self._log.exists() else "")

    def last_words(self) -> str:
        return self.log()[-_LAST_WORDS:]

    def workers(self) -> list[Process]:
        return workers_of(self._process.pid) if self._process else []

    def kill(self) -> None:
        # Another thread may start the next one meanwhile.
        process = self._process
        if process is not None:
            kill_session(process.pid)
            process.wait(_END_S)
            if process.stdin is not None:
                process.stdin.close()

    def wait(self, seconds: float) -> int | None:
        """Return its exit status, or ``None`` after some seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def has_ended(self) -> bool:
        """Whether it was killed, or has failed."""
        return self._process is None or self._process.poll() is not None

    def _environment(self) -> dict[str, str]:
        path = [*map(str, _PATHS)]
        if added := self._added.get("PYTHONPATH"):
            path.insert(0, added)
        if inherited := os.environ.get("PYTHONPATH"):
            path.append(inherited)
        given = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(path)}
        return {**os.environ, **self._added, **given}
