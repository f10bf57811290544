"""Calls of C functions by their addresses."""

from __future__ import annotations

from typing import Any

from ..kernels.parts import intrinsic


def c_function(result: str, *parameters: str) -> Any:
    """Return what calls a C function in kernels: ``call(address, (argument, ...))``.

    The types have numba's names.
    """
    return intrinsic("c_function", result, *parameters)
