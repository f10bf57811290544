"""The page of versions, from ``pyproject.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PYPROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"

HEAD: Final = """\
<!-- make docs makes this page from pyproject.toml; do not edit it. -->

# Compatibility

| | needed | tested |
|---|---|---|
| Spark | {spark} | 4.2.0 and 4.3.0 |
| Python | {python} | 3.11 |
| Java, for Spark | 17 or newer | 17 |
| Kafka brokers | 2.1 or newer | 4.3.1 |

Checkpoints, offsets and the initial offsets of a stream have the format of Spark's JVM connector,
and [can be exchanged](../get-started/migrate.md) with it.

## Packages

| package | versions | comes with |
|---|---|---|
"""

REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?(.*)")


def compatibility_page() -> str:
    """Return the page."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    rows = [
        *_rows(project["dependencies"], "always"),
        *(
            row
            for extra, requirements in extras.items()
            if extra != "all"
            for row in _rows(requirements, f"the extra `{extra}`")
        ),
    ]
    [spark] = extras["spark"]
    python = f"python{project['requires-python']}"
    return HEAD.format(spark=_versions(spark)[1], python=_versions(python)[1]) + "".join(rows)


def _rows(requirements: list[str], where: str) -> Iterator[str]:
    for requirement in requirements:
        name, versions = _versions(requirement)
        yield f"| `{name}` | {versions} | {where} |\n"


def _versions(requirement: str) -> tuple[str, str]:
    """Return the name of a requirement, and its versions in words."""
    match = REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise ValueError(f"not a requirement: {requirement}")
    words = {">=": "{} or newer", "<": "older than {}"}
    bounds = re.findall(r"(>=|<)([\w.]+)", match[2])
    return match[1], ", ".join(words[sign].format(version) for sign, version in bounds)
