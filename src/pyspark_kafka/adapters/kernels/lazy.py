"""Modules of numba that are imported when a kernel is compiled: they take long."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, final


@final
class LazyModule:
    """A module that is imported when an attribute is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


cgutils: Final = LazyModule("numba.core.cgutils")
ir: Final = LazyModule("llvmlite.ir")
types: Final = LazyModule("numba.types")
