"""Registration of data sources with a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

_PYTHONPATH = "PYTHONPATH"


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a data source with a session."""
    archive = _archive_of(Path(__file__))
    if archive is None:
        spark.dataSource.register(source)
        return
    with _python_path(spark, archive):
        spark.dataSource.register(source)


def _archive_of(module: Path) -> Path | None:
    return next((parent for parent in module.parents if parent.is_file()), None)


@contextmanager
def _python_path(spark: SparkSession, archive: Path) -> Iterator[None]:
    """Put the archive that this package was imported from on the workers' ``PYTHONPATH``.

    The driver's Python process of a streaming source looks for files of ``addPyFile`` in a
    directory of the query, ``userFiles-*/streaming_job``, which is empty (seen with 4.3.0; the path
    comes from ``SparkFiles`` and the query's ``JobArtifactSet``). It gets the environment of the
    registered function.
    """
    environment: dict[str, str] = spark.sparkContext.environment
    before = environment.get(_PYTHONPATH)
    environment[_PYTHONPATH] = os.pathsep.join(filter(None, [str(archive), before]))
    try:
        yield
    finally:
        if before is None:
            del environment[_PYTHONPATH]
        else:
            environment[_PYTHONPATH] = before
