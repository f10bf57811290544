"""The module from which Spark starts its Python workers, with clients and kernels loaded once.

Spark's own daemon forks each worker before anything but pyspark is imported, so that every worker
loads clients, numba and the kernels' cache again for its first task. Set this module as
``spark.python.daemon.module``; ``pyspark_kafka.session`` does.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark import daemon

from ..adapters.memory.cluster import MemoryCluster
from .clients import CLIENTS, client_named
from .pool import freeze_gc


def preload() -> None:
    """Load what a first task needs, for every client that is installed. Nothing connects."""
    for name in CLIENTS:
        client = client_named(name, MemoryCluster)
        if client.preload is not None:
            # A task that needs a missing package says so; here it would stop every worker.
            with suppress(ImportError):
                client.preload()


if __name__ == "__main__":
    preload()
    freeze_gc()
    daemon.manager()
