"""The archive of the classes that Spark's JVMs load, which halves the time that they take to start.

Java calls it a dynamic archive of application class-data sharing (JEP 350).
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PROGRAM: Final = Path(__file__).with_name("use_spark.py")


@contextmanager
def making_class_archive() -> Iterator[None]:
    """Make the archive of Spark's home meanwhile; JVMs that start before it is there go without."""
    home = Path(os.environ["SPARK_HOME"])
    with (home / "archive.log").open("wb") as log:
        program = subprocess.Popen(
            [sys.executable, _PROGRAM, home],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
