"""A plugin for pytest: tests run in the order of their durations, the shortest first.

Most mutants fail in the first milliseconds. mutmut names the tests of a mutant in any order.
"""

import json
from pathlib import Path
from typing import Final

import pytest

DURATIONS: Final = Path("mutmut-stats.json")
"""mutmut's measurements before the first mutant, in the folder where it runs the tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests; an unknown duration counts as none."""
    if DURATIONS.exists():
        seconds: dict[str, float] = json.loads(DURATIONS.read_text())["duration_by_test"]
        items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))
