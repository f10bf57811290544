"""A standalone cluster of Spark, started by the commands of its page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark_kafka.brokers.settings import free_ports

from ..documents import DOCS
from ..spark_home.home import java_options
from .java_server import listens, running

COMMANDS: Final = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MASTER, _WORKER = COMMANDS.findall((DOCS / "deploy" / "standalone.md").read_text())

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
    master = _MASTER.replace("--host master --port 7077", f"--host 127.0.0.1 --port {port}")
    variables = {**_SETTINGS, "SPARK_WORKER_DIR": str(directory / "work")}
    daemons = {
        f"worker{number}": _daemon(_WORKER.replace(_PLACE, place), {**variables, **own})
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
