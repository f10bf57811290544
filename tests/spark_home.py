"""A Spark that starts fast."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The second compiler, and threads for garbage, cost tests more than they save."""


def unzipped_spark_home(directory: Path) -> Path:
    """Return a home of the installed Spark, in a new directory, in which pyspark is not zipped.

    A Python that Spark starts, as it does for each stream, compiles pyspark again if it comes out
    of a zip. That takes longer than the rest of its start. JVMs have options that a short run gains
    by, before a session's options.
    """
    installed = Path(str(files("pyspark")))
    unzipped = directory / "python" / "lib" / "pyspark.zip"
    unzipped.mkdir(parents=True)
    for package in ("pyspark", "py4j"):
        (unzipped / package).symlink_to(str(files(package)))
    for name in ("bin", "jars"):
        (directory / name).symlink_to(installed / name)
    defaults = directory / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text(
        f"spark.driver.defaultJavaOptions {_JAVA_OPTIONS}\n"
        f"spark.executor.defaultJavaOptions {_JAVA_OPTIONS}\n"
    )
    return directory
