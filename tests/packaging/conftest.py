"""The built distribution, and an environment without it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from .environments import build, install_wheel, without_the_package
from .installed import VARIABLE

ROOT = Path(__file__).parents[2]

# The projects are run by a test, where they are installed, and the extras by the matrix.
collect_ignore = ["projects", *([] if VARIABLE in os.environ else ["test_extras.py"])]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return made_once(tmp_path_factory, "dist", lambda directory: build(ROOT, directory))


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory):
    return made_once(tmp_path_factory, "bare", without_the_package)


@pytest.fixture(scope="session")
def installed_python(wheel, tmp_path_factory):
    """Return the Python of this cell of the matrix, or one with the wheel and ``[spark]``."""

    def install(directory: Path) -> Path:
        return install_wheel(Path(sys.executable), directory, wheel, "spark")

    given = os.environ.get(VARIABLE)
    return Path(given) if given else made_once(tmp_path_factory, "installed", install)


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
def environment(monkeypatch, tmp_path):
    """Let neither this checkout nor this run's variables reach a child, but for Spark's home."""
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
