"""Errors as Spark's Python workers show them."""

import traceback

import pytest

from pyspark_kafka.adapters.spark.tasks import strip_tracebacks
from pyspark_kafka.domain.errors import KafkaRequestError, PysparkKafkaError
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.text import find_error


def shown(cause: Exception | None) -> str:
    """Return what Spark shows of an error with a cause."""
    with pytest.raises(PysparkKafkaError) as caught, strip_tracebacks():
        raise DataLossError("SOME", "it is gone") from cause
    return "".join(traceback.format_exception(caught.value))


def test_a_cause_that_is_an_error_of_this_library_is_one_line():
    cause = KafkaRequestError("a fetch", "refused")
    text = shown(cause)
    assert text.endswith(f"Reason: it is gone\nCaused by: {cause}\n")
    assert str(cause).startswith("[KAFKA_")
    assert "direct cause" not in text
    found = find_error(text)
    assert found is not None
    assert found.kind == "DataLossError"
    assert found.text.startswith("[KAFKA_DATA_LOSS.SOME]")


@pytest.mark.parametrize("cause", [OSError("a client's own"), None])
def test_any_other_cause_is_left_out(cause):
    text = shown(cause)
    assert text.endswith("Reason: it is gone\n")
    assert "a client's own" not in text
    frames = [line for line in text.splitlines() if line.startswith("  File")]
    assert len(frames) == 2  # of the block, and of what strips
