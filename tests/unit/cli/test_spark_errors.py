from __future__ import annotations

import pytest

from pyspark_kafka.cli.spark_errors import plain_message
from pyspark_kafka.domain.errors import OffsetsMismatchError, OptionsError, UnknownTopicError
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
=== Streaming QueryKind ===
Identifier: [id = e3d8, runId = d749]
"""
"""What a streaming query ends with when its driver's side fails."""

DRIVER_TWICE = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] \
Failed to plan Python data source initialize source: Traceback (most recent call last):
pyspark_kafka.domain.errors.{name}: {error}

During handling of the above exception, another exception occurred:

UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
 SQLSTATE: 38000 SQLSTATE: XXKST
"""
"""The same where Spark's own handling of the error fails."""

TASK = """\
Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 33, in read_range
pyspark_kafka.domain.errors.{name}: {error}
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
"""
"""What a task fails with."""


@pytest.mark.parametrize("text", [DRIVER, DRIVER_TWICE, TASK])
@pytest.mark.parametrize("error", [UNKNOWN_TOPIC, TWO_OPTIONS, STARTING_OFFSETS])
def test_our_message_alone_is_left(
    text: str, error: UnknownTopicError | OptionsError | OffsetsMismatchError
) -> None:
    """Of all that Spark says around an error of this library its message is left, whole."""
    assert plain_message(text.format(name=type(error).__name__, error=error)) == error.message


def test_an_error_at_the_end_of_a_text() -> None:
    """A message that nothing follows is found too."""
    text = f"pyspark_kafka.domain.errors.UnknownTopicError: {UNKNOWN_TOPIC}"
    assert plain_message(text) == UNKNOWN_TOPIC.message


def test_an_error_that_is_not_ours() -> None:
    """Of any other error the first line is left, and where to find the rest."""
    assert plain_message("\n[X] It broke.\n\tat org.apache.Spark\n") == (
        "Spark failed: [X] It broke. (--spark-log FILE keeps all that it says)"
    )
