"""Registration of data sources with a session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from .job_group import is_classic
from .log_filter import hide_secrets, hide_secrets_of_statements
from .spark_api import REGISTRATION

_PYTHONPATH = "PYTHONPATH"


def register_source(
    spark: SparkSession, source: type[DataSource], variables: Mapping[str, str]
) -> None:
    """Register a data source with a session, with environment variables for its Python workers.

    Spark Connect ignores the variables: its workers have the server's environment.

    :raises UnsupportedFeatureError: if Spark keeps a source that it has found by its name, as 4.0
        does, and so cannot take variables.
    """
    path: dict[str, str] = {}
    if is_classic(spark):
        hide_secrets(spark)
        archive = _archive_of(Path(__file__))
        path = {} if archive is None else _python_path(spark, archive)
    else:
        hide_secrets_of_statements(spark)
    given = {**path, **variables}
    with worker_variables(spark, given):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
            if given and is_classic(spark):
                raise REGISTRATION.refusal() from None


def _archive_of(module: Path) -> Path | None:
    return next((parent for parent in module.parents if parent.is_file()), None)


def _python_path(spark: SparkSession, archive: Path) -> dict[str, str]:
    """Return a ``PYTHONPATH`` for workers with the archive that this package was imported from.

    The driver's Python process of a streaming source looks for files of ``addPyFile`` in a
    directory of the query, ``userFiles-*/streaming_job``, which is empty (seen with 4.3.0; the path
    comes from ``SparkFiles`` and the query's ``JobArtifactSet``). It gets the environment of the
    registered function.
    """
    before = spark.sparkContext.environment.get(_PYTHONPATH)
    return {_PYTHONPATH: os.pathsep.join(filter(None, [str(archive), before]))}


@contextmanager
def worker_variables(spark: SparkSession, variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the Python workers of what a session is given within.

    Spark Connect ignores them.
    """
    if not variables or not is_classic(spark):
        yield
        return
    environment: dict[str, str] = spark.sparkContext.environment
    before = {name: environment[name] for name in variables.keys() & environment.keys()}
    environment.update(variables)
    try:
        yield
    finally:
        for name in variables:
            environment.pop(name, None)
        environment.update(before)
