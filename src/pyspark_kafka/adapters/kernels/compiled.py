"""Compiling kernels, and keeping what was compiled."""

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
    """Compile a function to machine code at its first call, without the GIL.

    What was compiled is kept beside the module, or in the user's cache where that cannot be
    written (a read-only install, a zip). Where neither can, each process compiles for itself:
    numba would refuse the function (``CacheImpl``: "no locator available").
    """
    made: F = numba.njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):
        made._cache = KernelCache(function)  # type: ignore[attr-defined]  # noqa: SLF001  # as enable_caching does
    return made


def intrinsic(function: Callable[..., object]) -> Callable[..., Any]:
    """Take a function that writes machine code itself, for kernels to call."""
    made: Callable[..., Any] = extending.intrinsic(function)
    return made


def inlined(function: F) -> F:
    """Compile a function into those kernels that call it."""
    made: F = numba.njit(error_model="numpy")(function)
    return made


def force_inlined(function: Callable[..., object]) -> Callable[..., Any]:
    """Put a function's lines into the kernels that call it.

    It is for those that take arrays and are too large for LLVM to inline: without it, numba counts
    references at each call. It takes longer to compile.
    """
    made: Callable[..., Any] = numba.njit(inline="always", error_model="numpy")(function)
    return made
