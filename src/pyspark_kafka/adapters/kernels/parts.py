"""The functions that kernels are made of: the package's build compiles them with each kernel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


class How(Enum):
    """How the build compiles a part."""

    INLINED = auto()
    FUNCTION = auto()
    COPIED = auto()


class _NotForPython:
    def __call__(self, *arguments: object) -> Any:  # noqa: ARG002
        raise TypeError("a part of kernels cannot be called by Python")


@final
class Part(_NotForPython):
    """A function that kernels call."""

    def __init__(self, function: Callable[..., object], how: How) -> None:
        update_wrapper(self, function)
        self.function = function
        self.how = how


@final
@dataclass(frozen=True, slots=True)
class Intrinsic(_NotForPython):
    """What kernels call and the build generates LLVM IR for; the types have numba's names."""

    name: str
    types: tuple[str, ...] = ()


def intrinsic(name: str, *types: str) -> Callable[..., Any]:
    """Return what calls one of the build's intrinsics in kernels."""
    return Intrinsic(name, types)


def inlined(function: F) -> F:
    """Compile a function as a part of each kernel that calls it."""
    return cast("F", Part(function, How.INLINED))


def kernel_function(function: F) -> F:
    """Compile a function as ``inlined`` does, in a fraction of the time.

    It takes numbers and addresses. With arrays, kernels become slower: numba removes counts of
    references from functions that it optimizes by themselves.
    """
    return cast("F", Part(function, How.FUNCTION))


def force_inlined(function: Callable[..., object]) -> Callable[..., Any]:
    """Copy a function's code into the kernels that call it, before they are compiled.

    Use it for functions that take arrays and are too large for LLVM to inline: otherwise numba
    counts references at each call. Compiling takes longer.
    """
    return Part(function, How.COPIED)
