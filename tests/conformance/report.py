"""The page that lists the JVM connector's tests with ours, from the marks on ours."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .peer import NOT_APPLICABLE, PEER_TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Claims = dict[tuple[str, str], list[str]]

FOLDER: Final = Path(__file__).parent

HEAD: Final = """\
# Conformance

Generated from `tests/conformance` by `make docs`; do not edit.

These are the tests of the JVM connector's own suites. Beside each is the test that checks the same
behaviour here, or the reason why there is none.
"""

_TABLE: Final = "| the JVM connector's test | here |\n|---|---|\n"


def conformance_page() -> str:
    """Return the page."""
    claims = claimed()
    total = sum(map(len, PEER_TESTS.values()))
    covered = sum((suite, name) in claims for suite in PEER_TESTS for name in PEER_TESTS[suite])
    counts = f"\n{covered} of {total} tests have a counterpart here.\n"
    return HEAD + counts + "".join(_section(suite, claims) for suite in PEER_TESTS)


def claimed() -> Claims:
    """Return our tests for each test of the JVM connector, by their marks, without running them."""
    claims: Claims = {}
    for module in sorted(path.stem for path in FOLDER.glob("test_*.py")):
        for test, suite, name in _marks(module):
            claims.setdefault((suite, name), []).append(f"{module}::{test}")
    return claims


def _section(suite: str, claims: Mapping[tuple[str, str], list[str]]) -> str:
    rows = "".join(f"| `{name}` | {_here((suite, name), claims)} |\n" for name in PEER_TESTS[suite])
    return f"\n## {suite}\n\n{_TABLE}{rows}"


def _here(key: tuple[str, str], claims: Mapping[tuple[str, str], list[str]]) -> str:
    tests = claims.get(key, [])
    return ", ".join(f"`{test}`" for test in tests) if tests else NOT_APPLICABLE.get(key, "")


def _marks(module: str) -> Iterator[tuple[str, str, str]]:
    for name, member in vars(importlib.import_module(f"{__package__}.{module}")).items():
        if name.startswith("test_"):
            for mark in getattr(member, "pytestmark", ()):
                if mark.name == "peer":
                    suite, peer_test = mark.args
                    yield name, suite, peer_test
