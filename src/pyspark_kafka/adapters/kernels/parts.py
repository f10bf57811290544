"""The functions that kernels are made of: the package's build compiles them with each kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, TypeVar, cast, final

F = TypeVar("F", bound="Callable[..., object]")


class _NotForPython:
    def __call__(self, *arguments: object) -> Any:  # noqa: ARG002
        raise TypeError("a part of kernels cannot be called by Python")


@final
class Part(_NotForPython):
    """A function that kernels call."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self.function = function


@final
@dataclass(frozen=True, slots=True)
class Intrinsic(_NotForPython):
    """A function for which the build generates LLVM IR; its types have numba's names."""

    name: str
    types: tuple[str, ...] = ()


def intrinsic(name: str, *types: str) -> Callable[..., Any]:
    """Return what calls one of the build's intrinsics in kernels."""
    return Intrinsic(name, types)


def inlined(function: F) -> F:
    """Compile a function as a part of each kernel that calls it."""
    return cast("F", Part(function))
