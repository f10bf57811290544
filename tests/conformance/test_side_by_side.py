"""What stands beside the JVM connector's words is compared with words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from .side_by_side import outcome, root_cause


@dataclass(frozen=True)
class Throwable:
    """A Java exception, as Py4J shows it."""

    message: str | None
    cause: Throwable | None = None

    def getMessage(self) -> str | None:  # noqa: N802  # Java's name
        return self.message

    def getCause(self) -> Throwable | None:  # noqa: N802  # Java's name
        return self.cause

    def toString(self) -> str:  # noqa: N802  # Java's name
        return f"Throwable: {self.message}"


class JavaError(Exception):
    """What Py4J raises for a Java exception."""

    def __init__(self, java_exception: Throwable) -> None:
        super().__init__("a Java exception")
        self.java_exception = java_exception


def test_the_root_cause_is_the_last():
    assert root_cause(JavaError(Throwable("a", Throwable(None, Throwable("b"))))) == "b"


@pytest.mark.parametrize("message", [None, ""])
def test_an_empty_message_is_refused(message):
    with pytest.raises(AssertionError, match="the JVM says nothing"):
        root_cause(JavaError(Throwable("a", Throwable(message))))


def test_an_error_of_ours_is_no_answer_of_the_jvm():
    with pytest.raises(AssertionError, match="not an exception of the JVM"):
        root_cause(ValueError("a"))


def test_an_outcome_is_what_is_returned_or_raised():
    assert outcome(lambda: 1) == 1
    assert isinstance(outcome(lambda: int("a")), ValueError)
