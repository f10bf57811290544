"""Writes the pages that are made from the code; ``--check`` only says whether they are current."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.java_settings import REFUSED, WITHOUT_EFFECT
from pyspark_kafka.domain.kafka_settings import API_TIMEOUT_MS, DEFAULT_API_TIMEOUT_MS
from pyspark_kafka.domain.options import TABLE, Option, Query

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS: Final = Path(__file__).parent

HEAD: Final = """\
# Options

Made from the table in `pyspark_kafka.domain.options` by `make docs`; do not edit.

Names do not distinguish upper from lower case. An option that is not listed is refused.

| option | values | default | queries | meaning |
|---|---|---|---|---|
"""

SETTINGS: Final = f"""
## The client's own settings

`kafka.*` goes to the client without its prefix, in Kafka's spelling; `kafka.bootstrap.servers` is
needed. A setting that the client does not know is refused by name, and so are those that would
change what the source promises: `auto.offset.reset`, `enable.auto.commit`, `interceptor.classes`,
`key.deserializer` and `value.deserializer`. `kafka.{API_TIMEOUT_MS}` (milliseconds, default
{DEFAULT_API_TIMEOUT_MS}) bounds every call to a cluster.

The names are those of Kafka's Java client; where a client spells one otherwise it is translated,
TLS stores and JAAS lines included. librdkafka's and kafka-python's own names work as well.
"""

WITHOUT_EFFECT_HEAD: Final = """
### Accepted without effect

| setting | because |
|---|---|
"""

REFUSED_HEAD: Final = """
### Refused

| setting | because, and what to do instead |
|---|---|
"""


def options_page() -> str:
    """Give the reference page of the options."""
    return (
        HEAD
        + "".join(_row(option) for option in TABLE)
        + SETTINGS
        + WITHOUT_EFFECT_HEAD
        + _settings(WITHOUT_EFFECT)
        + REFUSED_HEAD
        + _settings(REFUSED)
    )


def _settings(reasons: Mapping[str, str]) -> str:
    return "".join(f"| `kafka.{name}` | {reason} |\n" for name, reason in sorted(reasons.items()))


def _row(option: Option[object]) -> str:
    default = option.default_text or _default(option.default)
    queries = ", ".join(query.value for query in Query if query in option.queries)
    return f"| `{option.name}` | {option.values} | {default} | {queries} | {option.doc} |\n"


def _default(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def conformance_page() -> str:
    """Give the page that sets the JVM connector's tests beside ours."""
    sys.path.insert(0, str(DOCS.parent))
    from tests.conformance import report

    return report.conformance_page()


PAGES: Final = {"options.md": options_page, "conformance.md": conformance_page}


def main(arguments: list[str]) -> int:
    """Write the pages, or tell which are not current."""
    pages = {DOCS / name: make() for name, make in PAGES.items()}
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path.name} is not current: run make docs\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
