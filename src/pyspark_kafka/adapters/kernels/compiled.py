"""The decorators that compile kernels with numba."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numba
from numba import extending

from .kernel_cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def compiled(function: F) -> F:
    """Compile a function to machine code at its first call; it runs without the GIL.

    The machine code is cached beside the module, or in the user's cache directory where that is
    read-only (a system install, a zip). Where neither can be written, each process compiles the
    function: numba would refuse it (``CacheImpl``: "no locator available").
    """
    kernel: F = numba.njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):
        kernel._cache = KernelCache(function)  # type: ignore[attr-defined]  # noqa: SLF001  # as enable_caching does
    return kernel


def intrinsic(function: Callable[..., object]) -> Callable[..., Any]:
    """Turn a function that generates LLVM IR into one that kernels can call."""
    callee: Callable[..., Any] = extending.intrinsic(function)
    return callee


def inlined(function: F) -> F:
    """Compile a function as a part of each kernel that calls it."""
    callee: F = numba.njit(error_model="numpy")(function)
    return callee


def force_inlined(function: Callable[..., object]) -> Callable[..., Any]:
    """Copy a function's code into the kernels that call it, before they are compiled.

    Use it for functions that take arrays and are too large for LLVM to inline: otherwise numba
    counts references at each call. Compiling takes longer.
    """
    callee: Callable[..., Any] = numba.njit(inline="always", error_model="numpy")(function)
    return callee
