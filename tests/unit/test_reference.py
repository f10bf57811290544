"""The reference pages: every public name has an entry."""

import ast
import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import pyspark_kafka
from pyspark_kafka import brokers, continuous, ports, testing
from tests.documents import DOCS, README, sources

REFERENCE = DOCS / "reference"
PAGES = ("python-api.md", "parts.md", "ports.md")
ENTRY = re.compile(r"^\.\. auto(\w+):: ([\w.]+)((?:\n   :.*)*)", re.MULTILINE)
PUBLIC_MODULES = (pyspark_kafka, brokers, continuous, testing)
PORTS = [
    module.name
    for module in walk_packages(ports.__path__, f"{ports.__name__}.")
    if not module.ispkg
]


def entries() -> dict[str, str]:
    """Return the kind of each entry of the reference pages, by its name."""
    pages = "".join((REFERENCE / name).read_text() for name in PAGES)
    return {name: kind for kind, name, _ in ENTRY.findall(pages)}


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_every_public_name_has_an_entry(module):
    """A name of ``__all__`` is listed, or its whole module is."""
    listed = entries()
    name, public = module.__name__, module.__all__
    missing = [one for one in public if f"{name}.{one}" not in listed]
    assert missing == [] or listed.get(name) == "module"


@pytest.mark.parametrize("name", PORTS)
def test_every_port_has_an_entry(name):
    listed = entries()
    classes = [one for one in vars(import_module(name)).values() if isinstance(one, type)]
    own = [one.__name__ for one in classes if one.__module__ == name]
    assert name in listed or all(f"{pyspark_kafka.__name__}.{one}" in listed for one in own)


def imported(code: str) -> list[str]:
    """Return the names that an example imports from this package, with their modules."""
    return [
        f"{node.module}.{each.name}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark_kafka")
        for each in node.names
    ]


def test_what_examples_import_has_an_entry():
    """A program that is written as the pages show uses no internal name."""
    listed = entries()
    modules = {module.__name__ for module in PUBLIC_MODULES}
    pages = [README, *DOCS.rglob("*.md")]
    used = {name for page in pages for code in sources(page) for name in imported(code)}
    missing = [
        name
        for name in used - listed.keys() - modules
        if listed.get(name.rpartition(".")[0]) != "module"
    ]
    assert sorted(missing) == []


def test_no_entry_is_of_a_name_that_was_removed_and_what_it_names_has_a_docstring():
    for name, kind in entries().items():
        module, _, attribute = name.rpartition(".")
        owner = import_module(name if kind == "module" else module)
        target = owner if kind == "module" else getattr(owner, attribute)
        assert target.__doc__, name
