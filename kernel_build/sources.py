"""The modules that kernels are made of."""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from pyspark_kafka.adapters.kernels.kernel import Kernel
from pyspark_kafka.adapters.kernels.library import PACKAGE
from pyspark_kafka.adapters.kernels.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MARK: Final = "@kernel("


class _Stub(ModuleType):
    """A stand-in for a module that is not installed where the library is built.

    No kernel uses it, or numba would refuse it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Stub(name)

    def __call__(self, *_arguments: object, **_named: object) -> Any:
        return self


def find_kernels(package: Path) -> list[Kernel]:
    """Import the modules of a package that have kernels, and return these by their symbols."""
    found = {
        kernel
        for path in sorted(package.rglob("*.py"))
        if _MARK in path.read_text()
        for each in vars(_imported(_module_name(path, package))).values()
        if isinstance(each, Kernel)
        for kernel in filter(None, (each, each.wide))
    }
    return sorted(found, key=lambda kernel: kernel.symbol)


def sources_of(kernels: Iterable[Kernel], package: Path) -> list[Path]:
    """Return the modules whose functions and constants kernels are made of."""
    modules: set[str] = set()
    pending: list[object] = list(kernels)
    seen: set[object] = set()
    while pending:
        part = pending.pop()
        if not isinstance(part, (Kernel, Part)) or part in seen:
            continue
        seen.add(part)
        modules.add(part.function.__module__)
        for name in _names(part.function.__code__):
            pending.append(part.function.__globals__.get(name))
            modules |= {_imports(part.function.__module__).get(name, PACKAGE)}
    files = {Path(str(sys.modules[name].__file__)) for name in _with_constants(modules)}
    return sorted(path for path in files if path.parent != package)


def _with_constants(modules: set[str]) -> set[str]:
    """Return modules, and the modules from which their constants come."""
    found: set[str] = set()
    while modules:
        found |= modules
        modules = {
            _imports(module)[node.id]
            for module in modules
            for statement in _tree(module).body
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value
            for node in ast.walk(statement.value)
            if isinstance(node, ast.Name) and node.id in _imports(module)
        } - found
    return found


def _module_name(path: Path, package: Path) -> str:
    return ".".join((PACKAGE, *path.relative_to(package).with_suffix("").parts))


def _imported(name: str) -> ModuleType:
    while True:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing = str(error.name)
            if missing.partition(".")[0] == PACKAGE or missing in sys.modules:
                raise
            sys.modules[missing] = _Stub(missing)


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if hasattr(each, "co_names"):
            yield from _names(each)


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(str(sys.modules[module].__file__)).read_text())


@cache
def _imports(module: str) -> Mapping[str, str]:
    """Return the modules of the package from which a module imports names, by the names."""
    origins = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.level:
            # A package's own name is a level less than a module's.
            name = f"{module}." if hasattr(sys.modules[module], "__path__") else module
            base = name.rsplit(".", node.level)[0]
            origin = f"{base}.{node.module}" if node.module else base
            for each in node.names:
                own = f"{origin}.{each.name}"
                chosen = own if own in sys.modules else origin
                if chosen in sys.modules:
                    origins[each.asname or each.name] = chosen
    return origins
