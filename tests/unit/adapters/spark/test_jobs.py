"""One line out of what Spark says of a job that failed."""

import pytest

from pyspark_kafka.adapters.spark.jobs import summarize_failure

PYTHON = """
 An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "query.py", line 3, in f
KeyError: 'a'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "query.py", line 5, in f
    raise ValueError("two\\nlines")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: two
lines
"""
OURS = """
 An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "task.py", line 33, in run
pyspark_kafka.domain.errors.OptionsError: [KAFKA_INVALID_OPTIONS] 2 options cannot be used:
  - one
  - two
"""
CRASHED = """An error occurred while calling o182.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 6.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 6.0 (TID 12) (10.0.0.1 executor 3): \
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1136)
"""
CANCELLED = """An error occurred while calling o54.collectToPython.
: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 0 cancelled  SQLSTATE: XXKDA
\tat org.apache.spark.errors.SparkCoreErrors$.sparkJobCancelled(SparkCoreErrors.scala:222)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PYTHON, "ValueError: two"),
        (OURS, "[KAFKA_INVALID_OPTIONS] 2 options cannot be used: - one - two"),
        (
            CRASHED,
            (
                "Lost task 0.0 in stage 6.0 (TID 12) (10.0.0.1 executor 3): "
                "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."
            ),
        ),
        (CANCELLED, "[SPARK_JOB_CANCELLED] Job 0 cancelled  SQLSTATE: XXKDA"),
        ("Answer from Java side is empty\nmore", "Answer from Java side is empty"),
        ("Traceback (most recent call last):\n  cut", "cut"),
        ("", ""),
    ],
)
def test_the_useful_line_is_kept(text, line):
    assert summarize_failure(text) == line
