"""The examples of the docs, run, and the pages that are made from the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
PAGES = {
    page.name: page
    for page in sorted((ROOT / "docs").glob("*.md"))
    if "```python" in page.read_text()
}
WITH_TESTS = [
    name
    for name, page in PAGES.items()
    if re.search(r"^(class Test|def test_)", page.read_text(), re.MULTILINE)
]
DOCUMENTS = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()])


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str) -> None:
    """Every example of a page runs, one after another, and holds what it asserts."""
    for example in DOCUMENTS.parse(PAGES[page]).examples():
        example.evaluate()


@pytest.mark.parametrize("page", WITH_TESTS)
def test_tests_of_examples_pass(page: str, tmp_path: Path) -> None:
    """Where the examples of a page are tests of pytest's, they pass."""
    module = tmp_path / f"test_{Path(page).stem.replace('-', '_')}.py"
    module.write_text("\n".join(_sources(PAGES[page])))
    settings = (f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={tmp_path}")
    command = (sys.executable, "-m", "pytest", "-q", *settings, str(module))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_generated_pages_are_current() -> None:
    """The reference pages say what the code says."""
    done = subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=False)
    assert done.returncode == 0


def _sources(page: Path) -> list[str]:
    parsed = [example.parsed for example in DOCUMENTS.parse(page).examples()]
    return [source for source in parsed if isinstance(source, str)]
