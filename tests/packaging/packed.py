"""An environment for executors, packed and submitted by the commands of the pages."""

import os
import sys
from pathlib import Path

from tests.documents import DOCS
from tests.servers.standalone_spark import COMMANDS

from .environments import output_of, see_dependencies

_INSTALL, PACK, SUBMIT, _ZIP = COMMANDS.findall((DOCS / "deploy" / "environment.md").read_text())


def pack_environment(directory: Path, wheel: Path) -> None:
    """Pack an environment with a wheel, which sees the dependencies that are installed here."""
    python = directory / "venv" / "bin" / "python"
    activate = ". venv/bin/activate\n"
    make, install, *rest = PACK.replace(activate, "").splitlines()
    _run(make, directory)
    see_dependencies(python)
    _run(activate + install.replace("pyspark-kafka", f"--no-index {wheel}"), directory)
    _run(activate + "\n".join(rest), directory)


def submit(directory: Path, master: str, program: Path, *arguments: str | Path) -> None:
    """Submit a program, from the directory with the packed environment."""
    job = " ".join(f"'{argument}'" for argument in (program, *arguments))
    _run(SUBMIT.replace("spark://master:7077", master).replace("job.py", job), directory)


def _run(commands: str, directory: Path) -> None:
    """Run commands in a shell that finds this run's Python and Spark."""
    tools = [f"{os.environ['SPARK_HOME']}/bin", str(Path(sys.executable).parent)]
    path = os.pathsep.join([*tools, os.environ["PATH"]])
    output_of(["bash", "-e", "-c", commands], cwd=directory, env={**os.environ, "PATH": path})
