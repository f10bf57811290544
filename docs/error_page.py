"""The page with an entry for each error condition."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from error_entries import DATA_LOSSES, SECTIONS

from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.security.errors import TlsError, TlsFailure

if TYPE_CHECKING:
    from error_entries import Entry

    from pyspark_kafka.domain.errors import PysparkKafkaError

ERRORS_HEAD: Final = """\
<!-- make docs makes this page from the errors of the code; do not edit it. -->

# Errors

To find the cause and the fix of an error, search this page for its condition, which is in brackets
at the beginning of the error. Names, offsets and sizes are examples.
"""

SUB_CONDITIONS_HEAD: Final = """
| sub-condition | {heading} |
|---|---|
"""


def errors_page() -> str:
    """Return the page with an entry for each error condition."""
    return ERRORS_HEAD + "".join(
        f"\n## {title}\n" + "".join(map(_error, entries)) for title, entries in SECTIONS.items()
    )


def _error(entry: Entry) -> str:
    error = entry.error
    message = "\n".join(_wrapped(line, width=80) for line in str(error).splitlines())
    steps = "".join(f"{_wrapped(step, '- ')}\n" for step in entry.steps)
    return (
        f"\n### {error.condition}\n\n{_wrapped(entry.cause)}\n\n"
        f"```text\n{message}\n```\n\nWho can fix it: {error.fault.value}. What to do:\n\n{steps}"
        + _sub_conditions(error)
    )


def _sub_conditions(error: PysparkKafkaError) -> str:
    match error:
        case DataLossError():
            rows = {loss.condition: loss.reason.partition("\n")[0] for loss in DATA_LOSSES}
            heading = "message"
        case TlsError():
            rows = {failure.name: failure.value for failure in TlsFailure}
            heading = "what to do"
        case _:
            return ""
    table = "".join(f"| `{name}` | {text} |\n" for name, text in rows.items())
    return SUB_CONDITIONS_HEAD.format(heading=heading) + table


def _wrapped(text: str, first: str = "", *, width: int = 100) -> str:
    indent = " " * len(first)
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
