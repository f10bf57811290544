"""Functions that kernels call."""

from __future__ import annotations

from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Callee:
    """A function that kernels call. Numba's object of it is made when a kernel is compiled."""

    def __init__(self, function: Callable[..., object], make: Callable[[], Any]) -> None:
        self._make = make
        update_wrapper(self, function)

    @cached_property
    def for_numba(self) -> Any:
        """What numba compiles calls of."""
        return self._make()

    def __reduce__(self) -> str:
        """Pickle it by its name, as functions."""
        return self.__wrapped__.__qualname__  # type: ignore[attr-defined,no-any-return]

    def __call__(self, *arguments: object) -> Any:  # noqa: ARG002
        name = self.__wrapped__.__name__  # type: ignore[attr-defined]  # from update_wrapper
        raise TypeError(f"{name} is a part of kernels: Python cannot call it")
