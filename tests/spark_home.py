"""A Spark whose Python starts fast."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def unzipped_spark_home(directory: Path) -> Path:
    """Return a home of the installed Spark, in a new directory, in which pyspark is not zipped.

    A Python that Spark starts, as it does for each stream, compiles pyspark anew if it comes out of
    a zip. That takes longer than the rest of its start.
    """
    installed = Path(str(files("pyspark")))
    unzipped = directory / "python" / "lib" / "pyspark.zip"
    unzipped.mkdir(parents=True)
    for package in ("pyspark", "py4j"):
        (unzipped / package).symlink_to(str(files(package)))
    for name in ("bin", "jars"):
        (directory / name).symlink_to(installed / name)
    return directory
