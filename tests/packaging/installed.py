"""A Python in whose environment the wheel is installed, and nothing else."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.integration.commands import running_command
from tests.interpreter import interpreter_of
from tests.spark_home.home import java_options

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.integration.commands import Running
    from tests.interpreter import Run

VARIABLE: Final = "PYSPARK_KAFKA_INSTALLED"
"""The environment variable with the Python that ``verification.matrix`` installed the wheel for."""

_OF_THIS_RUN: Final = ("PYTHON", "PYSPARK", "SPARK", "PYTEST", "VIRTUAL_ENV", "KRB5")
"""How names of variables begin that would let it see this run's packages or settings."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.defaultJavaOptions": java_options(),
}
"""For Spark to start fast, and for few rows."""


@dataclass(frozen=True)
class Installed:
    """A Python, and a directory to run it in, which is not this checkout."""

    python: Path
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a shell in which the environment is active."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_RUN)
        }
        path = os.pathsep.join([str(self.python.parent), os.environ["PATH"]])
        settings = "".join(f"--conf '{name}={value}' " for name, value in _SETTINGS.items())
        return {
            **kept,
            "PATH": path,
            "PYSPARK_SUBMIT_ARGS": f"{settings}pyspark-shell",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def interpreter(self, **variables: str) -> AbstractContextManager[Run]:
        return interpreter_of(self.python, self.directory, {**self.environment, **variables})

    def ended(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python.parent / "pyspark-kafka", *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def printed(self, *arguments: str, status: int = 0) -> str:
        """Return what the command ``pyspark-kafka`` prints, which has nothing to complain of."""
        ended = self.ended(*arguments)
        assert (ended.returncode, ended.stderr) == (status, ""), (arguments, ended)
        return ended.stdout

    def running(self, *arguments: str) -> AbstractContextManager[Running]:
        command: list[str | Path] = [self.python.parent / "pyspark-kafka", *arguments]
        return running_command(command, self.environment, self.directory)
