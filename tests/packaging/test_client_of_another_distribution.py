"""A project of its own brings a client, and holds it to the suites that the wheel ships."""

import ast
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import pyspark_kafka
from pyspark_kafka import brokers, continuous

from .environments import build, output_of

PROJECT = Path(__file__).parent / "projects" / "journal"
PROGRAMS = Path(__file__).parent / "programs"
PUBLIC_MODULES = (pyspark_kafka, brokers, continuous)
"""But the suites for adapters, which the project subclasses."""

pytestmark = pytest.mark.usefixtures("environment")


class Installed(NamedTuple):
    """A checkout of the project, and a Python that has it and the wheel installed."""

    project: Path
    python: Path

    def run(self, *arguments: str | Path) -> str:
        return output_of([self.python, *arguments], cwd=self.project)


@pytest.fixture(scope="module")
def installed(bare_python, wheel, tmp_path_factory):
    home = tmp_path_factory.mktemp("journal")
    # Without what a run of its tests in place may have left there.
    project = shutil.copytree(
        PROJECT, home / "project", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    environment = shutil.copytree(bare_python.parents[1], home / "venv", symlinks=True)
    made = Installed(project, environment / "bin" / "python")
    wheels = (wheel, build(project, home / "dist"))
    # Isolated, or a relative PYTHONPATH leads it to the project's egg-info, taken for installed.
    made.run("-I", "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", *wheels)
    return made


def test_its_client_passes_the_shipped_suites(installed):
    """The client does what it declares, and is skipped where it declares nothing."""
    output = installed.run("-m", "pytest", "-p", "no:cacheprovider")
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|skipped)", output)}
    assert counts.keys() == {"passed", "skipped"}
    assert counts["passed"] > 2 * counts["skipped"]


def test_a_strict_type_checker_accepts_what_subclasses_the_suites(installed):
    """Ports, suites and worlds have types for their implementers, and public names for users."""
    assert "no issues found" in installed.run("-m", "mypy", "--cache-dir", installed.project)


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_the_type_checker_sees_every_public_name(module):
    """The example of users' programs names all that users import."""
    tree = ast.parse((PROJECT / "examples" / "public_names.py").read_text())
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert set(module.__all__) - named == set()


def test_a_query_of_spark_reads_by_its_name(installed, tmp_path):
    topic = tmp_path / "orders"
    topic.mkdir()
    for partition, count in enumerate((3, 4)):
        lines = [json.dumps({"value": str(n), "timestamp": n}) + "\n" for n in range(count)]
        (topic / f"{partition}.jsonl").write_text("".join(lines))
    program = PROGRAMS / "read_with_spark.py"
    assert installed.run(program, tmp_path, "orders", "journal").splitlines()[-1] == "7"
