"""The built distribution, and an environment without it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from .environments import build, without_the_package

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]

# They are run by a test, where they are installed.
collect_ignore = ["projects"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from the sdist."""
    return made_once(tmp_path_factory, "dist", lambda directory: build(ROOT, directory))


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the dependencies but without the package."""
    return made_once(tmp_path_factory, "bare", without_the_package)


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """Return what ``make`` makes in a directory: the first process of the run makes it for all."""
    base = temporary.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    made = directory.with_suffix(".made")
    with FileLock(directory.with_suffix(".lock")):
        if not made.exists():
            path = make(directory)
            made.write_text(str(path))
    return Path(made.read_text())


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let neither this checkout nor this run's variables reach a child, but for Spark's home."""
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
