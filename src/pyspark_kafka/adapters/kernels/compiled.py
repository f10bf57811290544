"""The decorators that compile kernels with numba."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import numba
from numba import extending, types

from .ir_compiler import IrCompiler
from .kernel_cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")

_NO_WRAPPERS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """Compile a function to machine code at its first call; it runs without the GIL.

    The machine code is cached beside the module, or in the user's cache directory where that is
    read-only (a system install, a zip). Where neither can be written, each process compiles the
    function: numba would refuse it (``CacheImpl``: "no locator available").
    """
    kernel: F = _cached(numba.njit(nogil=True, error_model="numpy")(function))
    return kernel


def compiled_part(function: Callable[..., Any]) -> KernelPart:
    """Compile a function of 64-bit numbers when its address is first asked for.

    Kernels call it with ``call_address``. Its machine code is cached as theirs is.
    """
    return KernelPart(_cached(numba.njit(error_model="numpy", no_cpython_wrapper=True)(function)))


@final
class KernelPart:
    """A function that kernels call by its address, so that it is compiled only if it is needed."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @cached_property
    def address(self) -> int:
        """The address of the machine code, which is compiled or loaded from the cache."""
        count = self._dispatcher.py_func.__code__.co_argcount
        arguments = (types.int64,) * count
        self._dispatcher.compile(arguments)
        result = self._dispatcher.overloads[arguments]
        return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


def _cached(kernel: Any) -> Any:
    with suppress(RuntimeError):
        kernel._cache = KernelCache(kernel.py_func)  # noqa: SLF001  # as enable_caching does
    return kernel


def intrinsic(function: Callable[..., object]) -> Callable[..., Any]:
    """Turn a function that generates LLVM IR into one that kernels can call."""
    callee: Callable[..., Any] = extending.intrinsic(function)
    return callee


def inlined(function: F) -> F:
    """Compile a function as a part of each kernel that calls it; Python cannot call it."""
    callee: F = _for_kernels_only(numba.njit(error_model="numpy", **_NO_WRAPPERS)(function))
    return callee


def kernel_function(function: F) -> F:
    """Compile a function as ``inlined`` does, in a fraction of the time.

    It takes numbers and addresses. With arrays, kernels become slower: numba removes counts of
    references from functions that it optimizes by themselves.
    """
    jit = numba.njit(error_model="numpy", pipeline_class=IrCompiler, **_NO_WRAPPERS)
    callee: Any = _for_kernels_only(jit(function))
    template = callee.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        """Compile no copies for constants."""
        variables = {name: types.unliteral(each) for name, each in named.items()}
        return template(tuple(types.unliteral(each) for each in arguments), variables)

    callee.get_call_template = get_call_template
    typed: F = callee
    return typed


def _for_kernels_only(callee: Any) -> Any:
    """Let calls by Python raise an error: there is no code for them."""
    callee.add_overload = partial(_add_overload, callee.overloads)
    callee._compile_for_args = partial(_refuse, callee.__name__)  # noqa: SLF001
    return callee


def _add_overload(overloads: dict[Any, Any], result: Any) -> None:
    """Keep the result of a compilation, as numba's own method, but not for Python's calls."""
    overloads[tuple(result.signature.args)] = result


def _refuse(name: str, *_arguments: object, **_named: object) -> None:
    raise TypeError(f"{name} is a part of kernels: Python cannot call it")


def force_inlined(function: Callable[..., object]) -> Callable[..., Any]:
    """Copy a function's code into the kernels that call it, before they are compiled.

    Use it for functions that take arrays and are too large for LLVM to inline: otherwise numba
    counts references at each call. Compiling takes longer.
    """
    callee: Callable[..., Any] = numba.njit(inline="always", error_model="numpy")(function)
    return callee
