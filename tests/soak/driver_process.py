"""A driver as a process that can be killed whole."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark_kafka

from .processes import Process, kill_session, workers_of

_PATHS: Final = (Path(__file__).parents[2], Path(str(pyspark_kafka.__file__)).parents[1])
_LAST_WORDS: Final = 6_000
_END_S: Final = 30.0


class DriverProcess:
    """A program in a session of its own; after its end, it can be started again."""

    def __init__(
        self, program: Path, config: Path, log: Path, environment: Mapping[str, str]
    ) -> None:
        """Take a program, its argument, and its log; no process is started yet."""
        self._program = program
        self._config = config
        self._log = log
        self._added = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._logged = 0

    @property
    def pid(self) -> int:
        """Its process, and its session."""
        return self._process.pid if self._process else 0

    def launch(self) -> None:
        """Start the process."""
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
        """Return its log, since its last start."""
        return self._log.read_bytes()[self._logged :].decode(errors="replace")

    def last_words(self) -> str:
        """Return the end of its log, since its last start."""
        return self.log()[-_LAST_WORDS:]

    def workers(self) -> list[Process]:
        """Return its Python workers."""
        return workers_of(self._process.pid) if self._process else []

    def kill(self) -> None:
        """End all of its processes."""
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
        return {**os.environ, **self._added, "PYTHONPATH": os.pathsep.join(path)}
