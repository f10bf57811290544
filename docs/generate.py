"""Writes the pages that are made from the code; ``--check`` only says whether they are current."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark_kafka.domain import producer_settings
from pyspark_kafka.domain.java_settings import REFUSED, WITHOUT_EFFECT
from pyspark_kafka.domain.kafka_settings import API_TIMEOUT_MS, DEFAULT_API_TIMEOUT_MS
from pyspark_kafka.domain.options import SINK_TABLE, TABLE, Option, QueryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DOCS: Final = Path(__file__).parent

HEAD: Final = """\
# Options

Made from the table in `pyspark_kafka.domain.options` by `make docs`; do not edit.

Names do not distinguish upper from lower case. An option that is not listed is refused. One of
reading that is given to a write is ignored with a warning, and so is one of writing that is given
to a read: both can have the same options.

## Reading
"""

OPTIONS_HEAD: Final = """
| option | values | default | queries | meaning |
|---|---|---|---|---|
"""

WRITING: Final = """
## Writing
"""

SETTINGS: Final = f"""
## The client's own settings

`kafka.*` goes to the client without its prefix, in Kafka's spelling; `kafka.bootstrap.servers` is
needed. A setting that the client does not know is refused by name, and so are those that would
change what a read promises: `auto.offset.reset`, `enable.auto.commit`, `interceptor.classes`,
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

PRODUCER: Final = """
## The producer's settings

In a write, `kafka.*` holds the producer's settings as well. They mean what they mean to Kafka's
Java client, and contradict each other as there: with `acks` other than `all`, no `retries`, or
more than {most} requests in flight, a producer is not idempotent, and `enable.idempotence` that is
set to `true` is refused. `partitioner.class` is Java's `RoundRobinPartitioner`, or a function of
Python's as `module:function`.

Settings of consumers are no mistake in a write and change nothing there. What the section above
says of `auto.offset.reset`, `enable.auto.commit` and deserializers is for reads.

| setting | default |
|---|---|
"""

REFUSED_HEAD: Final = """
### Refused

| setting | because, and what to do instead |
|---|---|
"""


JAVA_DEFAULTS: Final = {
    "batch.size": "16384",
    "max.block.ms": "60000",
    "transaction.timeout.ms": "60000",
}
"""Those of Java's producer that are not ours."""


def options_page() -> str:
    """Give the reference page of the options."""
    return (
        HEAD
        + _options(TABLE)
        + WRITING
        + _options(SINK_TABLE)
        + SETTINGS
        + WITHOUT_EFFECT_HEAD
        + _settings(WITHOUT_EFFECT)
        + REFUSED_HEAD
        + _settings(REFUSED)
        + _producer()
    )


def _options(table: Iterable[Option[Any]]) -> str:
    return OPTIONS_HEAD + "".join(_row(option) for option in table)


def _producer() -> str:
    others = producer_settings.WITHOUT_EFFECT.keys() | producer_settings.REFUSED.keys()
    effective = sorted(producer_settings.OF_PRODUCERS - others)
    return (
        PRODUCER.format(most=producer_settings.MAX_IN_FLIGHT)
        + "".join(f"| `kafka.{name}` | {_producer_default(name)} |\n" for name in effective)
        + WITHOUT_EFFECT_HEAD.replace("effect", "effect in a write")
        + _settings(producer_settings.WITHOUT_EFFECT)
        + REFUSED_HEAD.replace("Refused", "Refused in a write")
        + _settings(producer_settings.REFUSED)
    )


def _producer_default(name: str) -> str:
    if name not in producer_settings.FIELDS:
        return "the codec's own"
    value = getattr(producer_settings.ProducerSettings(), producer_settings.FIELDS[name])
    default = "`all`" if name == "acks" else _default(value)
    return f"{default} (Java: `{JAVA_DEFAULTS[name]}`)" if name in JAVA_DEFAULTS else default


def _settings(reasons: Mapping[str, str]) -> str:
    return "".join(f"| `kafka.{name}` | {reason} |\n" for name, reason in sorted(reasons.items()))


def _row(option: Option[object]) -> str:
    default = option.default_text or _default(option.default)
    queries = ", ".join(query.value for query in QueryKind if query in option.queries)
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
