"""Sphinx's settings for ``make site``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sphinx.ext.intersphinx import missing_reference

import pyspark_kafka

if TYPE_CHECKING:
    from docutils.nodes import TextElement, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

INVENTORIES: Final = Path(__file__).parent / "inventories"
MODULES: Final = {"pa": "pyarrow", "SparkSession": "pyspark.sql.SparkSession"}
"""Full names for the first part of names in type hints, which the modules import unqualified."""

project = "pyspark-kafka"
author = "The authors of pyspark-kafka"
project_copyright = author
version = release = pyspark_kafka.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
]
exclude_patterns = ["inventories"]
source_suffix = {".md": "markdown"}
# Of a block without a language: most are the output of a command.
highlight_language = "none"
myst_heading_anchors = 4
# The changelog is included from the first heading on, the decisions have one heading each.
suppress_warnings = ["myst.header"]

autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True

# A build needs no network: the inventories here have the names that the docstrings and pages use.
# With SITE_INVENTORIES=online, Sphinx loads the complete ones.
_online = os.environ.get("SITE_INVENTORIES") == "online"
intersphinx_mapping = {
    name: (url, None if _online else str(INVENTORIES / f"{name}.inv"))
    for name, url in {
        "python": "https://docs.python.org/3/",
        "pyspark": "https://spark.apache.org/docs/latest/api/python/",
        "pyarrow": "https://arrow.apache.org/docs/",
    }.items()
}

html_theme = "furo"
html_title = f"pyspark-kafka {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Resolve the names of type hints that are imported for type checkers only."""
    app.connect("missing-reference", _resolve_short_name)


def _resolve_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: TextElement
) -> reference | None:
    first, dot, rest = node.get("reftarget", "").partition(".")
    if first not in MODULES:
        return None
    qualified = node.deepcopy()
    qualified["reftarget"] = f"{MODULES[first]}{dot}{rest}"
    return missing_reference(app, env, qualified, content)
