"""The oldest Spark that is supported, beside the newest one that runs the other tests."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from .conftest import ROOT, made_once
from .environments import output_of

SPARK: Final = "4.0.2"

TESTS: Final = (
    "tests/spark/test_batch.py",
    "tests/spark/test_sink.py",
    "tests/spark/test_older_spark.py",
)
CHOSEN: Final = (
    "rows_are_those_of_the_jvm_connector or exactly_once or hold_over_a_restart"
    " or unless_it_is_allowed or ends_after_a_limited_batch"
)


@pytest.fixture
def packages(tmp_path_factory):
    """Return a directory with the older PySpark, and with a pandas that cannot be imported."""
    return made_once(tmp_path_factory, "older-spark", install)


def install(directory: Path) -> Path:
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--target", directory)
    subprocess.run([*command, f"pyspark=={SPARK}"], check=True)
    (directory / "pandas.py").write_text('raise ModuleNotFoundError("pandas", name="pandas")\n')
    return directory


@pytest.mark.timeout(900)  # a pip install, a broker and a Spark of its own, on a loaded machine
def test_the_oldest_spark_reads_and_writes_without_pandas(packages):
    """Batches, streams over restarts, exactly-once sinks and the refusals, with one client."""
    options = (
        "-q",
        "-W=ignore:unclosed <socket:ResourceWarning",
        f"-k=not confluent and ({CHOSEN})",
    )
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = (sys.executable, "-m", "pytest", *options, *TESTS)
    assert " skipped" not in output_of(command, cwd=ROOT, env=environment)
