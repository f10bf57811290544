"""The built distribution, and an environment without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from .environments import build, without_the_package

ROOT = Path(__file__).parents[2]

# They are run by a test, where they are installed.
collect_ignore = ["projects"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from the sdist."""
    # setuptools writes into the checkout, for each of pytest's processes at the same time.
    with FileLock(tmp_path_factory.getbasetemp().parent / "build.lock"):
        return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the dependencies but without the package."""
    return without_the_package(tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let neither this checkout nor this run's variables reach a child."""
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
