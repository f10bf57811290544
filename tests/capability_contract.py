"""The import-linter contract for imports between capabilities."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from importlinter import Contract, ContractCheck, fields, output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grimp import ImportGraph


class CapabilityContract(Contract):
    """A capability's folder imports another's only through what that one's ``__init__`` names.

    The names are those of ``__all__``. A capability has the same name in each of the ``layers``.
    """

    type_name = "capability"

    layers = fields.ListField(subfield=fields.StringField())
    capabilities = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Return the imports of modules that their capability does not name."""
        layers: Iterable[str] = cast("Iterable[str]", self.layers)
        names: Iterable[str] = cast("Iterable[str]", self.capabilities)
        folders = {f"{layer}.{name}": name for layer in layers for name in names}
        hidden = [
            (importer, module)
            for folder, name in folders.items()
            if folder in graph.modules
            for module in graph.find_descendants(folder) - _named(folder)
            for importer in graph.find_modules_that_directly_import(module)
            if _capability(importer, folders) not in {None, name}
        ]
        return ContractCheck(kept=not hidden, metadata={"hidden": sorted(hidden)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each import."""
        for importer, module in check.metadata["hidden"]:
            output.print_error(f"{importer} imports {module}, which its package does not name.")


def _capability(module: str, folders: Mapping[str, str]) -> str | None:
    return next(
        (name for folder, name in folders.items() if f"{module}.".startswith(f"{folder}.")), None
    )


def _named(folder: str) -> set[str]:
    """Return the modules that a package names in ``__all__``."""
    spec: Any = find_spec(folder)
    module = ast.parse(Path(spec.origin).read_text())
    names: list[str] = []
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
    return {f"{folder}.{name}" for name in names}
