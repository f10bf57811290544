import pytest

from pyspark_kafka.cli.spark import SparkQueryError
from pyspark_kafka.domain.errors import Fault, OptionsError, UnknownTopicError
from pyspark_kafka.domain.reading.errors import OffsetsMismatchError
from pyspark_kafka.domain.topic_partition import TopicPartition

UNKNOWN_TOPIC = UnknownTopicError(["nope"], "subscribe", "h:9092")
TWO_OPTIONS = OptionsError(["Option 'a' is not known.", "Option 'b' is not known."])
STARTING_OFFSETS = OffsetsMismatchError([TopicPartition("t", 0)], [TopicPartition("t", 1)])

DRIVER = """\
[STREAM_FAILED] Query [id = e3d8, runId = d749] terminated with exception: \
[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform \
initialOffset: Traceback (most recent call last):
  File "stream_reader.py", line 42, in initialOffset
    return self._stream().initial_offset().to_dict()
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
pyspark_kafka.domain.errors.{name}: {error}
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = e3d8, runId = d749]
"""
"""The error of a streaming query whose driver-side reader fails."""

DRIVER_TWICE = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] \
Failed to plan Python data source initialize source: Traceback (most recent call last):
pyspark_kafka.domain.errors.{name}: {error}

During handling of the above exception, another exception occurred:

UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
 SQLSTATE: 38000 SQLSTATE: XXKST
"""
"""The same if Spark's own handling of the error fails."""

TASK = """\
Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 33, in read_range
pyspark_kafka.domain.errors.{name}: {error}
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
"""
"""The error of a task."""


@pytest.mark.parametrize("text", [DRIVER, DRIVER_TWICE, TASK])
@pytest.mark.parametrize("error", [UNKNOWN_TOPIC, TWO_OPTIONS, STARTING_OFFSETS])
def test_only_our_error_is_kept(text, error):
    kept = SparkQueryError.from_spark(text.format(name=type(error).__name__, error=error))
    assert (str(kept), kept.fault) == (str(error), error.fault)


def test_an_error_at_the_end_of_a_text():
    text = f"pyspark_kafka.domain.errors.UnknownTopicError: {UNKNOWN_TOPIC}"
    assert str(SparkQueryError.from_spark(text)) == str(UNKNOWN_TOPIC)


def test_an_error_that_is_not_ours():
    kept = SparkQueryError.from_spark("\n[X] It broke.\n\tat org.apache.Spark\n")
    assert str(kept) == (
        "[SPARK_QUERY_FAILED] Spark failed: [X] It broke. "
        "(--spark-log FILE keeps all that Spark logs)"
    )
    assert kept.fault is Fault.ENVIRONMENT
