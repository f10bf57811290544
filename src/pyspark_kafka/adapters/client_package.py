"""The package of a client, which is imported when its first adapter is made."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import ModuleType


@final
@dataclass(frozen=True, slots=True)
class ClientPackage:
    """A package, by its name; ``importing`` is entered around each import of a module."""

    name: str
    importing: Callable[[], AbstractContextManager[object]] = nullcontext

    def made(self, module: str, name: str) -> Callable[..., Any]:
        """Return a function that imports a module, and calls its attribute of a name."""

        def make(*options: object) -> Any:
            return getattr(self._module(module), name)(*options)

        return make

    def preload(self) -> None:
        """Import the modules that a first task needs."""
        for module in ("record_reader", "record_writer", "stream_client"):
            self._module(module)

    def _module(self, name: str) -> ModuleType:
        with self.importing():
            return import_module(f".{name}", self.name)
