"""The modules that kernels are made of."""

from __future__ import annotations

import ast
import sys
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
_NOT_NEEDED: Final = ("confluent_kafka", "pyarrow")
"""What modules of kernels import, and no kernel uses."""


class _Stub(ModuleType):
    """Stands in for a package that is not installed where the library is built."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Stub(name)

    def __call__(self, *_arguments: object, **_named: object) -> Any:
        return self


def find_kernels(package: Path) -> list[Kernel]:
    """Import the modules of a package that have kernels, and return these by their symbols."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, _Stub(name))
    found = {
        each
        for path in sorted(package.rglob("*.py"))
        if _MARK in path.read_text()
        for each in vars(import_module(_module_name(path, package))).values()
        if isinstance(each, Kernel)
    }
    return sorted(found, key=lambda kernel: kernel.symbol)


def sources_of(kernels: Iterable[Kernel], package: Path) -> list[Path]:
    """Return the modules whose functions and constants kernels are made of."""
    files: set[Path] = set()
    pending: list[Kernel | Part] = list(kernels)
    seen: set[object] = set()
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        function = part.function
        files.add(Path(function.__code__.co_filename))
        origins = _imports(function.__module__)
        for name in _names(function.__code__):
            used = function.__globals__.get(name)
            if isinstance(used, (Kernel, Part)):
                pending.append(used)
            if name in origins:
                files |= set(_file_of(origins[name]))
    return sorted(path for path in files if path.is_relative_to(package))


def _module_name(path: Path, package: Path) -> str:
    return ".".join((PACKAGE, *path.relative_to(package).with_suffix("").parts))


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if hasattr(each, "co_names"):
            yield from _names(each)


def _imports(module: str) -> Mapping[str, str]:
    """Return the names that a module imports from others of the package, and from which."""
    found = sys.modules[module]
    tree = ast.parse(Path(str(found.__file__)).read_text())
    origins = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = module.rsplit(".", node.level)[0]
            origin = f"{base}.{node.module}" if node.module else base
            for each in node.names:
                own = f"{origin}.{each.name}"
                origins[each.asname or each.name] = own if own in sys.modules else origin
    return origins


def _file_of(module: str) -> Iterator[Path]:
    if file := getattr(sys.modules.get(module), "__file__", None):
        yield Path(file)
