"""The examples of the docs, run, and the pages that are made from the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
PAGES = ("docs/embedding.md",)
DOCUMENTS = Sybil(parsers=[PythonCodeBlockParser()])


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str) -> None:
    """Every example of a page runs, one after another, and holds what it asserts."""
    document = DOCUMENTS.parse(ROOT / page)
    examples = list(document.examples())
    assert examples
    for example in examples:
        example.evaluate()


def test_generated_pages_are_current() -> None:
    """The reference pages say what the code says."""
    done = subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=False)
    assert done.returncode == 0
