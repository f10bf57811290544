"""One line out of what Spark says of a job that failed."""

from pathlib import Path

import pytest

from pyspark_kafka.adapters.spark.jobs import summarize_failure

FAILURES = (Path(__file__).parent / "failures.txt").read_text(encoding="utf-8").split("=== ")[1:]
"""Messages of Spark, each behind the line that is kept of it."""


@pytest.mark.parametrize("failure", FAILURES)
def test_the_useful_line_is_kept(failure):
    line, _, text = failure.partition("\n")
    assert summarize_failure(text) == line
