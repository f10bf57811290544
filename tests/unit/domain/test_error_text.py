"""Errors on one line."""

from __future__ import annotations

import pytest

from pyspark_kafka.domain.error_text import QuotedError, describe_error, excerpt, find_error
from pyspark_kafka.domain.errors import DriverLostError, OptionsError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("two\n  lines"), "ValueError: two lines"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (
            OptionsError(["One.", "Two."]),
            "[KAFKA_INVALID_OPTIONS] 2 options cannot be used: - One. - Two.",
        ),
    ],
)
def test_an_error_is_one_line(error: BaseException, line: str) -> None:
    """Only errors of other libraries need the name of their class."""
    assert describe_error(error) == line


def test_the_condition_of_our_errors_stays() -> None:
    """The condition is searched for in the docs."""
    assert describe_error(DriverLostError("it closed")).startswith("[KAFKA_DRIVER_LOST] ")


def test_our_error_is_found_in_a_traceback_that_spark_quotes() -> None:
    quoted = (
        "An exception was thrown from the Python worker:\n"
        "pyspark_kafka.domain.errors.DriverLostError: [KAFKA_DRIVER_LOST] It closed.\n\n"
        "at org.apache.spark.Something"
    )
    assert find_error(quoted) == QuotedError("DriverLostError", "[KAFKA_DRIVER_LOST] It closed.")


def test_a_text_may_have_no_error_of_ours() -> None:
    assert find_error("ValueError: [X] y") is None


def test_an_excerpt_shows_no_control_characters() -> None:
    """What a terminal would obey is escaped, and a long text is cut."""
    assert excerpt("a\x1b[2J\n") == r"a\x1b[2J\n"
    assert excerpt("x" * 10_000).endswith("x...")
