"""Calls of C functions, and fields of C structures, by their addresses."""

from __future__ import annotations

from typing import Any

from ..kernels.memory import load_int32, load_int64, load_uint8, load_uint64
from ..kernels.parts import intrinsic

byte_at, int32_at, int64_at, uint64_at = load_uint8, load_int32, load_int64, load_uint64


def c_function(result: str, *parameters: str) -> Any:
    """Return what calls a C function in kernels: ``call(address, (argument, ...))``.

    The types have numba's names.
    """
    return intrinsic("c_function", result, *parameters)
