"""A standalone cluster, and an environment for its executors, made by the commands of the pages."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark_kafka.brokers.settings import free_ports
from tests.documents import DOCS
from tests.servers.java_server import listens, running
from tests.spark_home.home import java_options

from .environments import output_of, see_dependencies

COMMANDS: Final = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
MASTER, WORKER = COMMANDS.findall((DOCS / "deploy" / "standalone.md").read_text())
_INSTALL, PACK, SUBMIT, _ZIP = COMMANDS.findall((DOCS / "deploy" / "environment.md").read_text())

_PLACE: Final = "master:7077"
_TWO_WORKERS: Final[Sequence[Mapping[str, str]]] = ({}, {})
_SETTINGS: Final = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_MASTER_WEBUI_PORT": "0",
    "SPARK_WORKER_WEBUI_PORT": "0",
    "SPARK_WORKER_CORES": "1",
    "SPARK_WORKER_MEMORY": "1g",
    "SPARK_DAEMON_MEMORY": "128m",
    "SPARK_DAEMON_JAVA_OPTS": java_options(),
}


@contextmanager
def standalone_cluster(
    directory: Path, workers: Sequence[Mapping[str, str]] = _TWO_WORKERS
) -> Iterator[str]:
    """Run a master, and workers with variables of their own; yield the master's URL."""
    (port,) = free_ports(1)
    place = f"127.0.0.1:{port}"
    master = MASTER.replace("--host master --port 7077", f"--host 127.0.0.1 --port {port}")
    variables = {**_SETTINGS, "SPARK_WORKER_DIR": str(directory / "work")}
    daemons = {
        f"worker{number}": _daemon(WORKER.replace(_PLACE, place), {**variables, **own})
        for number, own in enumerate(workers)
    }
    with (
        # A worker that finds no master tries again after ten seconds or so.
        running(
            "Spark's master",
            {"master": _daemon(master, variables)},
            directory,
            lambda: listens(port),
        ),
        running("Spark's workers", daemons, directory, lambda: True),
    ):
        yield f"spark://{place}"


def _daemon(command: str, variables: Mapping[str, str]) -> list[str]:
    assignments = [f"{name}={value}" for name, value in variables.items()]
    return ["/usr/bin/env", *assignments, "bash", "-c", command]


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
