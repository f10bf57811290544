"""The notebooks run, and show what they say."""

import os
import sys
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.documents import DOCS
from tests.slowness import bound_s

NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))
SECONDS = round(bound_s(120))
EXPECTED = {
    "tour": ["|key| drink|price|", "|ada|coffee|  3.2|", "\n4", "\n4", "\n8"],
    "lag-and-continuous": [
        "<caption>Continuous query shout</caption>",
        "<td>state</td><td>Processing records</td>",
        "<caption>shout: lag 0 after batch ",
        "<caption>lag 20</caption>",
        "<td>orders</td><td>0</td><td>50</td><td>60</td><td>10</td>",
    ],
}
"""Texts in the outputs of each notebook, in this order."""


@pytest.fixture(autouse=True)
def kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs(notebook, tmp_path):
    book = nbformat.read(notebook, as_version=4)
    client = NotebookClient(book, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    printed = "\n".join(text for cell in book.cells for text in outputs(cell))
    position = 0
    for expected in EXPECTED[notebook.stem]:
        found = printed.find(expected, position)
        assert found >= 0, f"{expected!r} is not in {printed[position:]}"
        position = found + len(expected)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_are_kept_without_outputs(notebook):
    book = nbformat.read(notebook, as_version=4)
    nbformat.validate(book)
    assert all(not cell.outputs for cell in book.cells if cell.cell_type == "code")


def outputs(cell: Any) -> list[str]:
    shown = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        shown.append(data.get("text/html") or data.get("text/plain") or output.get("text", ""))
    return shown
