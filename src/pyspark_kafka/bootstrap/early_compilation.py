"""Compiling the kernels of most queries while Spark starts, in a process of its own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

from .. import adapters
from ..adapters.kernels.cache_directories import SUFFIX, cache_directories

log = logging.getLogger("pyspark_kafka")


def compile_while_spark_starts() -> None:
    """Compile kernels in another process, unless this machine has compiled some already.

    Workers that need one of them wait for it.
    """
    Thread(target=_run, name="pyspark-kafka-compilation", daemon=True).start()


def _run() -> None:
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    try:
        subprocess.run(  # noqa: S603  # Spark's workers run the same command
            [python, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except Exception:
        log.debug("The first of Spark's workers compiles the kernels", exc_info=True)


def has_kernels() -> bool:
    """Return whether any kernel of records is in the cache, without loading what compiles them."""
    folder = Path(adapters.__path__[0], "kafka_format")
    return any(any(place.glob(f"*{SUFFIX}")) for place in cache_directories(folder))


def main() -> None:
    """Compile the kernels of records for kafka-python."""
    if has_kernels():
        return
    from .kernels import compile_kernels

    for _ in compile_kernels(("kafka_format", "partitioning")):
        pass


if __name__ == "__main__":
    main()
