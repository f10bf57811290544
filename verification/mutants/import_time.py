"""A plugin for pytest: mutants of functions that are called during an import take effect.

mutmut imports the package and its tests once, and tries each mutant in a fork of that process. What
a table or a parametrized test got from a function by then stays as it is. So this plugin

* lets mutmut know which tests depend on such functions: all of them for a function that the package
  calls, and the tests of a module for a function that the module calls;
* imports the package and the tests again before the tests of such a mutant run.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from mutmut.state import state

if TYPE_CHECKING:
    from collections.abc import Generator

MUTANT: Final = "MUTANT_UNDER_TEST"
"""The environment variable in which mutmut says what runs: ``stats``, or the name of a mutant."""

CALLED: Final = Path("called-at-import.json")
"""The names of these functions, in the folder where mutmut runs the tests."""

calls_of_package: Final[set[str]] = set()
calls_of_tests: Final[dict[str, set[str]]] = {}


def pytest_configure() -> None:
    """Import the layers, and note what they call; or forget them, for a mutant to act."""
    running = os.environ.get(MUTANT, "")
    if running == "stats":
        for package in ("domain", "application", "adapters.memory"):
            import_all(f"pyspark_kafka.{package}")
        calls_of_package.update(take_calls())
    elif CALLED.exists() and running.partition("__mutmut_")[0] in json.loads(CALLED.read_text()):
        for name in set(sys.modules):
            package, _, rest = name.partition(".")
            if package == "pyspark_kafka" or (
                package == "tests" and rest.startswith(("unit", "contract"))
            ):
                del sys.modules[name]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Note what a module of tests calls when it is imported."""
    report = yield
    if isinstance(collector, pytest.Module) and os.environ.get(MUTANT) == "stats":
        calls_of_tests[collector.nodeid] = take_calls()
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let mutmut know which tests depend on these functions."""
    if os.environ.get(MUTANT) != "stats":
        return
    tests = state().tests_by_mangled_function_name
    for item in session.items:
        for function in calls_of_package | calls_of_tests[item.nodeid.partition("::")[0]]:
            tests[function].add(item.nodeid)
    CALLED.write_text(json.dumps(sorted(calls_of_package.union(*calls_of_tests.values()))))


def import_all(package: str) -> None:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)


def take_calls() -> set[str]:
    """Return the functions that were called since the last time."""
    calls = set(state()._stats)
    state()._stats.clear()
    return calls
