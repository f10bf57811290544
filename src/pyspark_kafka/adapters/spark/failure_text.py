"""The useful line of the errors that Spark's jobs end with."""

from __future__ import annotations

import re
from typing import Final

from ...domain.error_text import find_error, one_line

_TRACEBACK: Final = "Traceback (most recent call last):"

_STAGE_FAILURE: Final = re.compile(r"most recent failure: (?P<reason>[^\n]+)")
"""What Spark's scheduler says of a task that did not fail in Python: its worker died, say."""

_JAVA_ERROR: Final = re.compile(r"^: (?:[\w.$]+: )?(?P<text>[^\n]+)", re.MULTILINE)
"""The line of a Java exception as Py4J prints it, without the exception's class."""


def summarize_failure(text: str) -> str:
    """Return one line: this library's error in it, or a task's exception, or Spark's reason."""
    ours = find_error(text)
    if ours is not None:
        return one_line(ours.text)
    if _TRACEBACK in text:
        return _exception_line(text.rpartition(_TRACEBACK)[2])
    found = _STAGE_FAILURE.search(text)
    if found is not None:
        return found["reason"].strip()
    java = _JAVA_ERROR.search(text)
    return java["text"].strip() if java is not None else text.strip().partition("\n")[0]


def _exception_line(traceback: str) -> str:
    """Return what follows the frames of a traceback: these are indented."""
    lines = [line for line in traceback.splitlines() if line.strip() and not line[0].isspace()]
    return lines[0].strip() if lines else one_line(traceback)
