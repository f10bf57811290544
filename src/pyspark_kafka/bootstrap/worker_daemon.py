"""A daemon for Spark's Python workers that loads clients and kernels before it forks.

Spark's own daemon forks before anything but pyspark is imported, so that every worker loads the
worker's modules, clients and compiled kernels again for its first task. ``pyspark_kafka.session``
sets this module as ``spark.python.daemon.module``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, ParamSpec

from ..domain.text import describe_error

log = logging.getLogger("pyspark_kafka")

_P = ParamSpec("_P")

ARCHIVES: Final = Path("pyspark", "python", "lib")
"""The directory of an installed PySpark's archives, which Spark puts on its workers' path."""

MODULES: Final = (
    "pyspark.worker",
    "pyspark_kafka.adapters.spark.batch_reader",
    "pyspark_kafka.adapters.spark.sink_writers",
    "pyspark_kafka.adapters.spark.stream_reader",
    "pyspark_kafka.application.writing.sink_task",
    "pyspark_kafka.bootstrap.pool",
    "pyspark_kafka.bootstrap.spark",
)
"""The modules that a first task imports, without those of its client."""


def archives_last(path: Sequence[str]) -> list[str]:
    """Return a module path with Spark's archives after the installation that they belong to.

    The archives have the same modules. Python keeps the bytecode of installed modules, while it
    compiles an archive's in every process, which takes half a second.
    """
    installed = {Path(entry) / ARCHIVES for entry in path if _has_pyspark(entry)}
    archives = [entry for entry in path if Path(entry).parent in installed]
    return [*(entry for entry in path if entry not in archives), *archives]


def _has_pyspark(entry: str) -> bool:
    return (Path(entry) / "pyspark" / "__init__.py").is_file()


def prefer_installed() -> None:
    """Import PySpark from where it is installed, if Spark's archives are a part of that."""
    sys.path[:] = archives_last(sys.path)


def preload() -> None:
    """Load the modules for a first task, for every installed client, without connecting.

    Formats of values are not loaded, as most queries have none.
    """
    import pyarrow as pa

    from ..adapters.kernels.library import kernel_library
    from ..adapters.memory.cluster import MemoryCluster
    from .plugins import CLIENTS, client_named

    for module in MODULES:
        import_module(module)
    for name in CLIENTS:
        client = client_named(name, MemoryCluster)
        if client.preload is not None:
            # A task that needs a missing package reports it; here it would stop every worker.
            with suppress(ImportError):
                client.preload()
    kernel_library()
    # PyArrow imports pandas, where it is installed, for the first Python value that it converts:
    # 0.15 s of each first task. A pandas that does not fit numpy raises more than ImportError.
    with suppress(Exception):
        pa.scalar("")


def ends_with_its_socket(worker: Callable[_P, int]) -> Callable[_P, int]:
    """Return a function that runs Spark's worker, and fails quietly if Spark closed its socket.

    Spark closes the sockets of idle workers, and of tasks that need no more rows. The worker then
    writes an error that nobody reads. On a Unix domain socket that write fails at once, and Spark's
    daemon prints its traceback, although no task has failed.
    """

    def run(*args: _P.args, **kwargs: _P.kwargs) -> int:
        try:
            return worker(*args, **kwargs)
        except BrokenPipeError:
            return 1

    return run


def main() -> None:
    """Serve Spark's requests for workers, of this package and of others."""
    prefer_installed()
    from pyspark import daemon

    if hasattr(daemon, "worker"):  # undocumented, and only for quiet logs
        daemon.worker = ends_with_its_socket(daemon.worker)
    try:
        from .pool import freeze_gc

        preload()
        freeze_gc()
    except Exception as error:  # noqa: BLE001 - workers of other functions need nothing of this
        log.warning(
            "Tasks of pyspark_kafka load their modules themselves: %s", describe_error(error)
        )
    daemon.manager()


if __name__ == "__main__":
    main()
