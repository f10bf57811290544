"""The page of versions, from ``pyproject.toml`` and from the results of ``make matrix``."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyspark_kafka.adapters.spark.spark_api import FEATURES, SparkFeature

from .cells import Cell, all_cells
from .project import ROOT, Project
from .results import Outcome, Result, read_results

HEAD: Final = """\
<!-- make docs makes this page from pyproject.toml and results of make matrix; do not edit it. -->

# Compatibility

| | needed | tested |
|---|---|---|
| Spark | {spark} | {tested_spark} |
| Python | {python} | {tested_python} |
| Java, for Spark | 17 or newer | {tested_java} |
| Kafka brokers | 2.1 or newer | {tested_kafka} |

Python 3.14 is not tested. Each package that is always installed has a wheel for it, or is pure
Python, as is Spark (looked up in November 2026).

Checkpoints, offsets and the initial offsets of a stream have the format of Spark's JVM connector,
and [can be exchanged](../get-started/migrate.md) with it.
"""

RUN: Final = """
## What older releases of Spark lack

Everything else works with each release. A query that needs what its Spark lacks is refused, or as
the table says.

| | since Spark | before |
|---|---|---|
{features}
## Tested versions

`make matrix` runs tests with each of these versions in an environment of its own, and writes the
results. A version is listed as tested if all tests of a run with it passed.

- `kafka-…`: the contract tests of offsets, reading, writing, transactions and streams with both
  clients, with a broker of this version. Kafka 2.8 runs with ZooKeeper, newer versions with KRaft.
- `spark-…`: batch queries, streams, sinks, exactly-once writes, continuous queries, typed values
  and the demo in Spark, most of them with both clients and compared with the JVM connector of this
  Spark (since 4.2: of 4.2.0); Spark Connect, a Declarative Pipeline, what older releases lack; and
  a round of kills of brokers, workers and drivers, for both guarantees.
- `lowest`: every package in the lowest version that `pyproject.toml` allows, with the unit tests,
  the contract tests and the tests of `spark-…`. It has no s3fs, because each release of s3fs needs
  one of fsspec; `lowest-s3` tests storage with both. gssapi is not part of the matrix.
- `installed-…`: the built wheel and what pip installs with it, each time in an environment that has
  nothing else: with no extra (`base`), with the ones named, and with `all`. The examples of the
  README and of these pages, and the commands, run there as they are written.

| run | Python | PySpark | Kafka | result | passed | skipped | failed | seconds | date |
|---|---|---|---|---|---|---|---|---|---|
"""

PACKAGES: Final = """
## Packages

| package | versions | tested | comes with | notes |
|---|---|---|---|---|
"""

COLUMNS: Final = 10
"""Of the table of runs."""

_QUOTED: Final = re.compile(r'"([^"]+)"')

REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?(.*)")


def compatibility_page() -> str:
    return page_of((ROOT / "pyproject.toml").read_text(), all_cells(Project.read()), read_results())


def page_of(settings: str, cells: Iterable[Cell], results: Iterable[Result]) -> str:
    project = tomllib.loads(settings)["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    by_cell = {result.cell: result for result in results}
    tested = _tested(by_cell.values())
    notes = notes_of(settings)
    [spark] = extras["spark"]
    return "".join(
        [
            HEAD.format(
                spark=_versions(spark)[1],
                python=_versions(f"python{project['requires-python']}")[1],
                tested_spark=_listed(tested, "pyspark"),
                tested_python=_listed(tested, "python"),
                tested_java=_listed(tested, "java"),
                tested_kafka=_listed(tested, "kafka"),
            ),
            RUN.format(features="".join(map(_feature, FEATURES))),
            *(_run(cell, by_cell.get(cell.name)) for cell in cells),
            PACKAGES,
            *_rows(project["dependencies"], "always", tested, notes),
            *(
                row
                for extra, requirements in extras.items()
                if extra != "all"
                for row in _rows(requirements, f"the extra `{extra}`", tested, notes)
            ),
        ]
    )


def _feature(feature: SparkFeature) -> str:
    return f"| {feature.name} | {feature.since} | {feature.before} |\n"


def _run(cell: Cell, result: Result | None) -> str:
    if result is None:
        return _row(f"`{cell.name}`", cell.environment.python, "", cell.broker, "not run")
    told = str(result.outcome)
    if result.reason:
        told += f": {result.reason.splitlines()[0]}"
    versions, counts = result.versions, result.counts
    return _row(
        f"`{cell.name}`",
        versions.get("python", cell.environment.python),
        versions.get("pyspark", ""),
        cell.broker,
        told,
        *((counts.passed, counts.skipped, counts.failed, result.seconds) if versions else [""] * 4),
        result.date,
    )


def _row(*columns: object) -> str:
    texts = [str(text) for text in columns] + [""] * (COLUMNS - len(columns))
    return f"| {' | '.join(texts)} |\n"


def _tested(results: Iterable[Result]) -> dict[str, set[str]]:
    tested: dict[str, set[str]] = {}
    for result in results:
        if result.outcome is Outcome.PASSED:
            for name, version in result.versions.items():
                tested.setdefault(name, set()).add(version)
    return tested


def _listed(tested: Mapping[str, set[str]], name: str) -> str:
    *most, last = sorted(tested.get(name, {"not tested"}), key=_numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def notes_of(settings: str) -> dict[str, str]:
    """Return the comments above requirements: what a package is for, and why no older one is."""
    notes: dict[str, str] = {}
    comment: list[str] = []
    for line in map(str.strip, settings.splitlines()):
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
            continue
        if comment:
            notes = dict.fromkeys(_QUOTED.findall(line), " ".join(comment)) | notes
        comment = []
    return notes


def _rows(
    requirements: list[str], where: str, tested: Mapping[str, set[str]], notes: Mapping[str, str]
) -> Iterator[str]:
    for requirement in requirements:
        name, versions = _versions(requirement)
        note = notes.get(requirement, "")
        yield f"| `{name}` | {versions} | {_listed(tested, name)} | {where} | {note} |\n"


def _versions(requirement: str) -> tuple[str, str]:
    match = REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise ValueError(f"not a requirement: {requirement}")
    words = {">=": "{} or newer", "<": "older than {}"}
    bounds = re.findall(r"(>=|<)([\w.]+)", match[2])
    return match[1], ", ".join(words[sign].format(version) for sign, version in bounds)
