"""dependency-injector without pydantic and the web frameworks, which it imports if it finds them.

Each of Spark's Python workers would load them, for some hundred milliseconds. dependency-injector
only compares classes with theirs, and a class that is not loaded has no instances.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, final

__all__ = ["containers", "providers"]

OPTIONAL: Final = (
    "fast_depends.dependencies",
    "fast_depends.dependencies.model",
    "fastapi.params",
    "pydantic_settings",
    "starlette.requests",
    "werkzeug.local",
)
"""Modules that dependency-injector tries to import: pydantic only if its settings are missing."""


class _Unloaded(type):
    """A class of a module that may be loaded later."""

    module: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._loaded())

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._loaded())

    def _loaded(cls) -> Any:
        return getattr(sys.modules.get(cls.module), cls.__name__, ())


@final
class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unloaded(name, (), {"module": self.__name__})


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Replace the optional modules that are not loaded, if no other thread can see it."""
    alone = threading.active_count() == 1
    names = [name for name in OPTIONAL if alone and name not in sys.modules]
    sys.modules.update({name: _StandIn(name) for name in names})
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


with _stand_ins():
    from dependency_injector import containers, providers
