"""A daemon for Spark's Python workers that loads clients and kernels before it forks.

Spark's own daemon forks before anything but pyspark is imported, so that every worker loads
clients, numba and compiled kernels again for its first task. ``pyspark_kafka.session`` sets this
module as ``spark.python.daemon.module``.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark import daemon

from ..adapters.memory.cluster import MemoryCluster
from .clients import CLIENTS, client_named
from .pool import freeze_gc
from .value_formats import FORMATS, value_format_named


def preload() -> None:
    """Load what a first task needs, for every installed client and format, without connecting.

    Kernels of formats are not loaded: if they are not in the cache yet, that takes long.
    """
    for name in FORMATS:
        value_format_named(name)
    for name in CLIENTS:
        client = client_named(name, MemoryCluster)
        if client.preload is not None:
            # A task that needs a missing package reports it; here it would stop every worker.
            with suppress(ImportError):
                client.preload()


if __name__ == "__main__":
    preload()
    freeze_gc()
    daemon.manager()
