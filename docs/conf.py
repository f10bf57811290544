"""Sphinx's settings for ``make site``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pyspark_kafka

INVENTORIES: Final = Path(__file__).parent / "inventories"

project = "pyspark-kafka"
author = "The authors of pyspark-kafka"
project_copyright = author
version = release = pyspark_kafka.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx"]
exclude_patterns = ["inventories"]
source_suffix = {".md": "markdown"}
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
