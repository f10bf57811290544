"""The page that lists the JVM connector's tests with ours, from the marks on ours."""

import importlib
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from .peer import MISSING, NOT_APPLICABLE, PEER_TESTS, Held

Key = tuple[str, str]
Claims = dict[Key, list[tuple[str, Held]]]

FOLDER: Final = Path(__file__).parent

HEAD: Final = """\
<!-- Generated from tests/conformance by make docs; do not edit. -->

# Conformance

These are the tests of the JVM connector's own suites. Beside each is the test that asserts the same
here, and how it does so, or the reason why there is none:

- **beside the JVM connector**: both get the same query, or the same call, and their answers are
  compared.
- **through Spark**: a query of Spark runs here, and the test has the expected answer.
- **without Spark**: the test calls the library as Spark would, on a real broker where it needs one.
- **embedding only**: Spark never calls this part. It is for platforms that drive a source by
  themselves. A source's custom metrics are such a part: in Spark, use the [lag
  listener](../operate/lag.md).
- **does not apply**: a Python data source cannot have what the test checks.
- **missing**: it could be here, and is not yet.

The JVM connector runs most of its suites with both of its sources, V1 and V2; by default its batch
queries use V1, and its streams V2. Spark always drives this source as it drives V2. The tests of
`test_kafka_source_v1_suite` start the legacy `KafkaSource` at the same offsets, in a driver of
their own.
"""

NOT_HELD: Final = ("does not apply", "missing")
_TABLE: Final = "| the JVM connector's test | held | here |\n|---|---|---|\n"


def conformance_page() -> str:
    claims = claimed()
    return HEAD + _counts(claims) + "".join(_section(suite, claims) for suite in PEER_TESTS)


def claimed() -> Claims:
    """Return our tests for each test of the JVM connector, by their marks, without running them."""
    claims: Claims = {}
    for module in sorted(path.stem for path in FOLDER.glob("test_*.py")):
        for test, suite, name, held in _marks(module):
            claims.setdefault((suite, name), []).append((f"{module}::{test}", held))
    return claims


def counts(claims: Claims) -> Counter[str]:
    return Counter(_how(key, claims) for key in _keys())


def _counts(claims: Claims) -> str:
    found = counts(claims)
    ways = (*(held.value for held in Held), *NOT_HELD)
    rows = "".join(f"| {way} | {found[way]} |\n" for way in ways)
    applying = found.total() - found[Held.EMBEDDED.value] - found["does not apply"]
    held = found[Held.BESIDE_JVM.value] + found[Held.SPARK.value]
    return (
        f"\n| held | tests |\n|---|---|\n{rows}| all | {found.total()} |\n\n"
        f"Of the {applying} tests that Spark lets apply to a Python data source, {held} "
        f"({held / applying:.0%}) are held through Spark or beside the JVM connector.\n"
    )


def _keys() -> Iterator[Key]:
    return ((suite, name) for suite, names in PEER_TESTS.items() for name in names)


def _how(key: Key, claims: Claims) -> str:
    ways = {held for _, held in claims.get(key, [])}
    strongest = next((held.value for held in Held if held in ways), None)
    return strongest or NOT_HELD[key in MISSING]


def _section(suite: str, claims: Claims) -> str:
    rows = "".join(
        f"| `{name}` | {_how((suite, name), claims)} | {_here((suite, name), claims)} |\n"
        for name in PEER_TESTS[suite]
    )
    return f"\n## {suite}\n\n{_TABLE}{rows}"


def _here(key: Key, claims: Claims) -> str:
    """Return the tests of a row, each with its way if the row has several."""
    tests = claims.get(key, [])
    if not tests:
        return {**NOT_APPLICABLE, **MISSING}.get(key, "")
    alike = len({held for _, held in tests}) == 1
    return ", ".join(f"`{test}`" + ("" if alike else f" ({held.value})") for test, held in tests)


def _marks(module: str) -> Iterator[tuple[str, str, str, Held]]:
    for name, member in vars(importlib.import_module(f"{__package__}.{module}")).items():
        if name.startswith("test_"):
            marks = getattr(member, "pytestmark", ())
            for mark in chain(marks, *map(_marks_of_cases, marks)):
                if mark.name == "peer":
                    suite, peer_test, held = mark.args
                    yield name, suite, peer_test, held


def _marks_of_cases(mark: pytest.Mark) -> Iterator[pytest.Mark]:
    if mark.name == "parametrize":
        for case in mark.args[1]:
            if isinstance(case, ParameterSet):
                yield from map(_plain, case.marks)


def _plain(mark: pytest.Mark | pytest.MarkDecorator) -> pytest.Mark:
    return mark if isinstance(mark, pytest.Mark) else mark.mark
