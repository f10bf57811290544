"""The documents: their examples, links and generated pages, and the picture of the layers."""

import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from tests.documents import DOCS, DOCUMENTS, README, ROOT, TESTS, WITHOUT_SPARK, sources

LINK = re.compile(r"\]\(([^)#\s]+)[^)\s]*\)")
DOCUMENTS_WITH_LINKS = (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", WITHOUT_SPARK)
def test_examples_run(page):
    for example in DOCUMENTS.parse(WITHOUT_SPARK[page]).examples():
        example.evaluate()


@pytest.mark.parametrize("page", TESTS)
def test_tests_of_examples_pass(page, tmp_path):
    module = tmp_path / f"test_{Path(page).stem.replace('-', '_')}.py"
    module.write_text("\n".join(sources(WITHOUT_SPARK[page])))
    settings = (f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={tmp_path}")
    command = (sys.executable, "-m", "pytest", "-q", *settings, str(module))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_links_lead_to_files():
    dead = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in DOCUMENTS_WITH_LINKS
        for target in LINK.findall(document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert dead == []


def test_the_readme_has_no_relative_links():
    """A package index shows the README alone: a link to another file would lead nowhere."""
    assert [target for target in LINK.findall(README.read_text()) if "://" not in target] == []


def test_the_picture_shows_the_layers():
    heights: dict[str, int] = {}
    picture = (DOCS / "project" / "architecture.svg").read_text()
    for height, name in re.findall(r' y="(\d+)">(\w+)</text>', picture):
        heights.setdefault(name, int(height))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for contract in settings["tool"]["importlinter"]["contracts"]:
        # Those within one adapter are not in the picture.
        is_shown = {*contract.get("containers", ())} <= {"pyspark_kafka", "pyspark_kafka.adapters"}
        layers = contract["layers"] if contract["type"] == "layers" and is_shown else []
        rows = [{heights[name] for name in re.findall(r"\w+", layer)} for layer in layers]
        assert all(max(upper) < min(lower) for upper, lower in pairwise(rows))
