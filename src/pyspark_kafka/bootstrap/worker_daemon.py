"""What Spark starts its Python workers from, with the readers loaded once for all of them.

Spark's own daemon forks each worker before anything but pyspark is imported, so that each pays
anew for what a first task needs: clients, numba, and kernels out of its cache. Set it as
``spark.python.daemon.module``; ``pyspark_kafka.session`` does.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark import daemon

from ..adapters.system.garbage import freeze_gc
from .container import preload

if __name__ == "__main__":
    # What is missing is for the task to say that needs it: here it would stop every worker.
    with suppress(ImportError):
        preload()
    freeze_gc()
    daemon.manager()
