"""Generate pages from code and results; ``--check`` reports pages that are not current."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capability_map import capability_map
from command_page import cli_page
from error_page import errors_page
from retry_page import retries_page

from pyspark_kafka.adapters.kafka_python.settings import OWN_SETTINGS as KAFKA_PYTHON_SETTINGS
from pyspark_kafka.bootstrap.option_policy import SPARK_SETTING, VARIABLE
from pyspark_kafka.domain.options import value_table
from pyspark_kafka.domain.options.client_settings import MAX_IN_FLIGHT, ProducerSettings
from pyspark_kafka.domain.options.option import REGISTRY_PREFIX, Option, QueryKind
from pyspark_kafka.domain.options.settings_table import (
    API_TIMEOUT_MS,
    DEFAULT_API_TIMEOUT_MS,
    KAFKA_PYTHON_IGNORED,
    KAFKA_PYTHON_NAMES,
    SETTINGS,
    Ignored,
    Number,
    ProducerField,
    Refused,
    Setting,
    Text,
)
from pyspark_kafka.domain.options.sink_table import SINK_TABLE
from pyspark_kafka.domain.options.source_table import STRATEGIES, TABLE
from pyspark_kafka.domain.security.policy import OWN_SETTINGS, RESTRICTED, AllowList, Restricted
from pyspark_kafka.domain.values.registry import REGISTRY_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.run import Run

DOCS: Final = Path(__file__).parent
BENCHMARKS: Final = DOCS / "reference" / "benchmarks.json"

HEAD: Final = """\
<!-- make docs makes this page from the tables in pyspark_kafka.domain; do not edit it. -->

# Options

Look up each option of a query here. Every query needs
[`kafka.bootstrap.servers`](#settings-of-the-kafka-client), and a read one of `subscribe`,
`subscribePattern` and `assign`. The other options have defaults.

Option names are not case-sensitive. Unknown options are refused. You can use the same options for
a read and a write: a write ignores read options with a warning, and vice versa.

An option that neither a batch nor a stream accepts fails in `load()`. All other errors of options
are raised by the first action of a batch, or when a stream starts: Spark does not pass the kind of
query to a Python source before. If you set your own schema, this applies to every option.

## Reading
"""

OPTIONS_HEAD: Final = """
| option | values | default | queries | meaning |
|---|---|---|---|---|
"""

TYPED_READS: Final = """
## Reading typed values

With `valueFormat` or `keyFormat` a read decodes the values or the keys. The other options here
require one of them.
"""

REGISTRY: Final = """
### Settings of the schema registry

| setting | meaning |
|---|---|
"""

TYPED_WRITES: Final = """
## Writing typed values
"""

WRITING: Final = """
## Writing
"""

KAFKA: Final = f"""
## Settings of the Kafka client

`kafka.*` options are passed to the client without their prefix; `kafka.bootstrap.servers` is
required. `kafka.{API_TIMEOUT_MS}` (milliseconds, default {DEFAULT_API_TIMEOUT_MS}) is the time-out
of every call to a cluster. Settings that the client does not know are refused, and reads refuse
{{refused}}, as Spark's JVM connector does.

Use the names of Kafka's Java client. They are translated for the client, including key stores,
trust stores and JAAS lines; a number outside of the client's range becomes the nearest valid one.
Many names of librdkafka and kafka-python
[work, too](#settings-of-librdkafka-and-kafka-python). With either client you may write `_` for `.`,
as in `kafka.group_id`.

| setting | values | `kafka-python` | `confluent` (librdkafka) |
|---|---|---|---|
"""

IGNORED_HEAD: Final = """
### Accepted without effect{where}

| setting | reason |
|---|---|
"""

REFUSED_HEAD: Final = """
### Refused{where}

| setting | reason, and what to do instead |
|---|---|
"""

PRODUCER: Final = f"""
## Settings of the producer

In a write, `kafka.*` options include the producer's settings. Their meaning and conflicts
are the same as in Kafka's Java client: with `acks` other than `all`, no `retries`, or more than
{MAX_IN_FLIGHT} requests in flight, a producer is not idempotent, and setting `enable.idempotence`
to `true` is refused. `partitioner.class` is Java's `RoundRobinPartitioner`, or
a Python function as `module:function`.

Consumer settings are ignored in a write, including {{refused}}.

| setting | default |
|---|---|
"""

PERMISSION_HEAD: Final = """
## Settings that need permission

These settings load code, run commands, or read files and URLs, with the rights of Spark's
processes. They are refused with every client, unless the operator of Spark lists the setting in
`{options}`, or its value in the list of the last column.
[Security](../connect/security.md#what-options-may-do) explains the lists. The other settings on
this page need no permission.

| setting | what it does | operator's list |
|---|---|---|
"""

OWN: Final = """
## Settings of librdkafka and kafka-python

In addition to Java's settings, queries may set these of the client `kafka-python`, also with `_`
for `.`:
{kafka_python}.
It accepts these without effect:
{ignored}.

Queries may set these of the client `confluent`:
{librdkafka}.

Other settings of librdkafka are refused, unless the operator of Spark lists them in `{options}`.
"""

OPERATORS: Final = f"""
## Forbidding settings

The operator of a Spark installation can forbid settings of the Kafka client for all queries. Set
the environment variable `{VARIABLE}` of Spark's driver (in `spark-env.sh`,
`spark.kubernetes.driverEnv.*` or `spark.yarn.appMasterEnv.*`) to a list of names, separated by
commas, without the prefix `kafka.`:

```sh
export {VARIABLE}=debug,ssl.keystore.location
```

A query that sets one of them fails with `KAFKA_DISALLOWED_OPTION` when it is planned, whether it
reads or writes. Case does not matter, and neither does the choice of `_` or `.`. The list does not
cover a client's own name of a setting: list `ssl.ca.location` together with
`ssl.truststore.location`. No query runs while an entry has the prefix: it would have no effect.

Neither options nor SQL can change the list: Spark starts the Python workers that plan queries with
the environment of its driver. The list does not restrict code: a program that runs Python on the
driver can connect to Kafka without this library.

Spark 4.3 has the static setting `{SPARK_SETTING}` for the JVM
connector, and does not pass it to Python data sources. Here it applies to continuous queries, and
to sessions that call `pyspark_kafka.register(spark)`. Set the variable to forbid settings
everywhere.
"""


def options_page() -> str:
    """Return the reference page of the options."""
    reads = [setting for setting in SETTINGS if isinstance(setting.read, Refused)]
    consumers = [setting for setting in reads if setting.write is None]
    return (
        HEAD
        + _options(TABLE)
        + WRITING
        + _options(SINK_TABLE, "write")
        + TYPED_READS
        + _options(value_table.TABLE)
        + REGISTRY
        + "".join(
            f"| `{REGISTRY_PREFIX}{name}` | {doc} |\n" for name, doc in REGISTRY_SETTINGS.items()
        )
        + TYPED_WRITES
        + _options(value_table.SINK_TABLE, "write")
        + KAFKA.format(refused=_names(reads))
        + "".join(_translations(setting) for setting in sorted(SETTINGS, key=_name))
        + IGNORED_HEAD.format(where="")
        + _reasons((one.name, one.read.reason) for one in SETTINGS if isinstance(one.read, Ignored))
        + REFUSED_HEAD.format(where="")
        + _reasons((one.name, one.jvm.instead) for one in SETTINGS if one.jvm)
        + PRODUCER.format(refused=_names(consumers))
        + _reasons(
            (one.name, _producer_default(one.write))
            for one in SETTINGS
            if isinstance(one.write, ProducerField)
        )
        + IGNORED_HEAD.format(where=" in a write")
        + _reasons(
            (one.name, one.write.reason) for one in SETTINGS if isinstance(one.write, Ignored)
        )
        + REFUSED_HEAD.format(where=" in a write")
        + _reasons(
            (one.name, one.write.message) for one in SETTINGS if isinstance(one.write, Refused)
        )
        + PERMISSION_HEAD.format(options=AllowList.OPTIONS.variable)
        + "".join(_restricted(setting) for setting in RESTRICTED)
        + OWN.format(
            options=AllowList.OPTIONS.variable,
            kafka_python=_listed(KAFKA_PYTHON_SETTINGS.keys() | KAFKA_PYTHON_NAMES.keys()),
            ignored=_listed(KAFKA_PYTHON_IGNORED),
            librdkafka=_listed(OWN_SETTINGS["confluent"]),
        )
        + OPERATORS
    )


def _options(table: Iterable[Option[Any]], queries: str = "option") -> str:
    # What every query needs comes first.
    in_order = sorted(table, key=lambda option: option not in STRATEGIES)
    return OPTIONS_HEAD + "".join(
        f"| {_anchor(queries, option.name)} | {_option(option)} |\n" for option in in_order
    )


def _anchor(kind: str, name: str) -> str:
    """Return an anchor that links can point to."""
    return f'<a id="{kind}-{name}"></a>`{name}`'


def _option(option: Option[object]) -> str:
    default = option.default_text or _default(option.default)
    queries = ", ".join(query.value for query in QueryKind if query in option.queries)
    return f"{option.values} | {default} | {queries} | {option.doc}"


def _default(value: object) -> str:
    if value is None or value == ():
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _names(settings: Iterable[Setting]) -> str:
    *names, last = sorted(f"`{setting.name}`" for setting in settings)
    return f"{', '.join(names)} and {last}"


def _translations(setting: Setting) -> str:
    clients = (setting.kafka_python, setting.librdkafka)
    if not any(clients) or isinstance(setting.write, ProducerField):
        return ""
    values = setting.values.text if setting.values else "a text"
    kafka_python = _translation(setting.kafka_python, setting.name.replace(".", "_"))
    librdkafka = _translation(setting.librdkafka, setting.name)
    name = _anchor("option", f"kafka.{setting.name}")
    return f"| {name} | {values} | {kafka_python} | {librdkafka} |\n"


def _translation(client: Number | Text | Ignored | None, name: str) -> str:
    match client:
        case Number():
            return f"`{client.name or name}`, {client.minimum} to {client.maximum}"
        case Ignored():
            return f"no effect: {client.reason}"
        case _:
            return f"`{name}`"


def _restricted(setting: Restricted) -> str:
    harmless = ", ".join(f"`{value}`" for value in sorted(setting.harmless - {""}))
    effect = f"{setting.effect}, unless it is {harmless}" if harmless else setting.effect
    return f"| `kafka.{setting.name}` | {effect} | `{setting.by.variable}` |\n"


def _listed(names: Iterable[str]) -> str:
    text = ", ".join(f"`kafka.{name}`" for name in sorted(names))
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _name(setting: Setting) -> str:
    return setting.name


def _reasons(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"| `kafka.{name}` | {reason} |\n" for name, reason in sorted(rows))


def _producer_default(field: ProducerField) -> str:
    if not field.name:
        return "the codec's own"
    value = getattr(ProducerSettings(), field.name)
    default = "`all`" if field.name == "acks" else _default(value)
    return f"{default} (Java: `{field.java_default}`)" if field.java_default else default


def mistakes_page() -> str:
    """Return the page of common mistakes."""
    import mistake_page

    return mistake_page.mistakes_page()


def conformance_page() -> str:
    """Return the page that lists the JVM connector's tests and ours side by side."""
    from tests.conformance import report

    return report.conformance_page()


def compatibility_page() -> str:
    """Return the page of versions."""
    from verification.matrix import page

    return page.compatibility_page()


def nightly_page() -> str:
    """Return the page of the last nightly run."""
    from verification.nightly import results

    return results.nightly_page()


def logins_page() -> str:
    """Return the page of logins, clients and the features that work with them."""
    from tests.spark import secured_matrix

    return secured_matrix.logins_page()


def serializers_part() -> str:
    """Return the table of serializers and registries that the tests run."""
    from tests.integration import serializer_matrix

    return serializer_matrix.serializers_part()


def benchmarks_page() -> str:
    """Return the page of the last run of all benchmarks."""
    from benchmarks.page import page

    return page(_run())


def benchmarks_table() -> str:
    """Return the README's table of the benchmarks."""
    from benchmarks.quotes import readme_table

    return readme_table(_run())


def benchmarks_sentence() -> str:
    """Return the first page's sentence about the benchmarks."""
    from benchmarks.quotes import index_sentence

    return index_sentence(_run())


def _run() -> Run:
    from benchmarks.run import Run

    return Run.from_json(BENCHMARKS.read_text())


PAGES: Final = {
    "docs/troubleshoot/errors.md": errors_page,
    "docs/troubleshoot/mistakes.md": mistakes_page,
    "docs/troubleshoot/retries.md": retries_page,
    "docs/reference/benchmarks.md": benchmarks_page,
    "docs/reference/options.md": options_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/compatibility.md": compatibility_page,
    "docs/reference/conformance.md": conformance_page,
    "docs/project/nightly.md": nightly_page,
    "docs/connect/logins.md": logins_page,
}

PARTS: Final = {
    "README.md": benchmarks_table,
    "docs/index.md": benchmarks_sentence,
    "docs/project/architecture.md": capability_map,
    "docs/guides/typed-values.md": serializers_part,
}
"""The generated part of pages that are otherwise written by hand, between comments."""

_PART: Final = re.compile(
    r"(<!-- make docs makes this \w+ -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL
)


def main(arguments: list[str], root: Path = DOCS.parent) -> int:
    """Write the pages, or report which are not current."""
    sys.path.insert(0, str(DOCS.parent))
    pages = {root / name: make() for name, make in PAGES.items()}
    pages |= {root / name: _with_part(root / name, make()) for name, make in PARTS.items()}
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path.relative_to(root)} is not current: run make docs\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path])
    return 0


def _with_part(path: Path, text: str) -> str:
    page, count = _PART.subn(lambda found: f"{found[1]}{text}{found[2]}", path.read_text())
    if count != 1:
        raise ValueError(f"{path} has {count} parts that are made, not 1")
    return page


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
