"""The documents: their examples, links and generated pages, and the picture of the layers."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from pyspark_kafka.domain.options import value_table
from pyspark_kafka.domain.options.sink_table import SINK_TABLE
from pyspark_kafka.domain.options.source_table import TABLE
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


def test_each_option_has_an_anchor_of_its_own():
    """A link may lead to ``options.md#option-subscribe``, or to ``#write-topic``."""
    page = (DOCS / "reference" / "options.md").read_text()
    anchors = re.findall(r'^\| <a id="([\w.-]+)"></a>`', page, re.MULTILINE)
    assert len(anchors) == len({*anchors})
    reads = [f"option-{option.name}" for option in (*TABLE, *value_table.TABLE)]
    writes = [f"write-{option.name}" for option in (*SINK_TABLE, *value_table.SINK_TABLE)]
    assert {*reads, *writes, "option-kafka.client.rack"} <= {*anchors}


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


@pytest.fixture
def generate(monkeypatch, tmp_path):
    """Generate what has figures of benchmarks, in copies of the documents."""
    monkeypatch.syspath_prepend(DOCS)
    program = import_module("generate")
    page = "docs/reference/benchmarks.md"
    monkeypatch.setattr(program, "PAGES", {page: program.PAGES[page]})
    for name in (page, *program.PARTS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return lambda *arguments: program.main([*arguments], tmp_path)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("docs/reference/benchmarks.md", "\n\n## Machine"),
        ("docs/index.md", "\n\n<!-- end -->"),
        ("README.md", "\n\n<!-- end -->"),
    ],
)
def test_a_document_with_other_figures_than_the_results(generate, tmp_path, capsys, name, before):
    assert generate("--check") == 0
    path = tmp_path / name
    right = path.read_text()
    path.write_text(right.replace(before, f" 9{before}", 1))
    assert generate("--check") == 1
    assert capsys.readouterr().err == f"{name} is not current: run make docs\n"
    assert generate() == 0
    assert path.read_text() == right


def test_a_document_whose_generated_part_has_no_end(generate, tmp_path):
    path = tmp_path / "README.md"
    path.write_text(path.read_text().replace("<!-- end -->", ""))
    with pytest.raises(ValueError, match=r"README\.md has 0 parts that are made, not 1"):
        generate("--check")
