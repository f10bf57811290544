"""Names in ``pyproject.toml``: dependencies, and the groups of the tests."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).parents[2]

CHECKERS: Final = frozenset({"import-linter", "mypy", "pyarrow-stubs", "ruff", "types-protobuf"})
"""Packages of the group ``dev`` that no test of the matrix imports; some need a newer PyArrow."""

_NAME: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Project:
    dependencies: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]
    tests: tuple[str, ...]

    @classmethod
    def read(cls, path: Path = ROOT / "pyproject.toml") -> Self:
        return cls.of(tomllib.loads(path.read_text()))

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Self:
        project = settings["project"]
        extras = project["optional-dependencies"].items()
        return cls(
            dependencies=tuple(project["dependencies"]),
            extras={name: tuple(packages) for name, packages in extras if name != "all"},
            tests=tuple(
                requirement
                for requirement in _group(settings["dependency-groups"], "dev")
                if package_name(requirement) not in CHECKERS
            ),
        )

    def packages(self, extras: Iterable[str]) -> frozenset[str]:
        chosen = (requirement for extra in extras for requirement in self.extras[extra])
        return frozenset(map(package_name, (*self.dependencies, *chosen)))

    def lowest(self, package: str) -> str:
        every = (*self.dependencies, *(each for extra in self.extras.values() for each in extra))
        for requirement in every:
            bound = re.search(r">=([\w.]+)", requirement)
            if package_name(requirement) == package and bound:
                return bound[1]
        raise LookupError(f"{package} has no lower bound")


def _group(groups: dict[str, Any], name: str) -> Iterator[str]:
    """Yield the requirements of a group and of those that it includes (PEP 735)."""
    for each in groups[name]:
        if isinstance(each, str):
            yield each
        else:
            yield from _group(groups, each["include-group"])


def package_name(requirement: str) -> str:
    match = _NAME.match(requirement)
    if match is None:
        raise ValueError(f"not a requirement: {requirement}")
    return match[0].lower().replace("_", "-")
