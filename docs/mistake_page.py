"""The page of common mistakes, from the table that the tests use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.mistakes import MISTAKES

if TYPE_CHECKING:
    from tests.mistakes import Mistake

HEAD: Final = """\
<!-- make docs makes this page from tests/mistakes.py; do not edit it. -->

# Usual mistakes

Find the message that you see, and its cause. Commands print this message first. Spark puts its own
condition and a few lines of a traceback before it: search the text for `[KAFKA_`.
[Errors](errors.md) has an entry for each condition.

Spark reports two mistakes itself. `format("pyspark-kafka")` and other spellings fail with
`DATA_SOURCE_NOT_FOUND`: the format is `pyspark_kafka`. Spark 3 has no Python data sources: this
library needs Spark 4.
"""

_PLACES: Final = {"missing": "/no/such/file", "topic": "orders", "tls": "", "sasl": ""}


def mistakes_page() -> str:
    """Return the page of mistakes."""
    return HEAD + "".join(
        f"\n## {title}\n\n| what causes it | what you see |\n|---|---|\n{''.join(map(_row, group))}"
        for title, group in MISTAKES.items()
    )


def _row(mistake: Mistake) -> str:
    seen = mistake.sees.format(**_PLACES).replace("|", "\\|")
    return f"| {mistake.does} | `{seen}` |\n"
