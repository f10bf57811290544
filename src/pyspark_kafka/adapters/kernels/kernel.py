"""Functions that the package's build compiles to machine code, and how Python calls them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cached_property, update_wrapper
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Union, cast, final

import numpy as np

from .library import kernel_library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .library import KernelLibrary

F = TypeVar("F", bound="Callable[..., object]")

Kind: TypeAlias = Union[str, "tuple[Kind, ...]"]
"""The type of an argument: ``int64``, an array such as ``const uint8[]`` or ``int64[,]``, or a
tuple of them. Arrays are contiguous, in C's order; ``const`` ones are only read."""

_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
"""Called without the GIL."""

_POINTER: Final = ctypes.c_void_p.from_address
_DATA: Final = object.__basicsize__
"""Where ``PyArrayObject_fields`` has the pointer to the data; extensions of numpy depend on it."""


class KernelError(RuntimeError):
    """A kernel ended with an error, as with checks of bounds."""


def kernel(*kinds: Kind, results: int = 0) -> Callable[[F], F]:
    """Compile a function of arguments of these kinds, when the package is built.

    It returns an integer or nothing; with ``results``, a tuple of so many integers.
    """

    def decorate(function: F) -> F:
        return cast("F", Kernel(function, kinds, results))

    return decorate


@final
class Flat(tuple[Any, ...]):  # noqa: SLOT001  # a tuple with slots cannot keep its words
    """A tuple of arrays whose words are found once; the arrays are not resized."""

    @cached_property
    def words(self) -> list[int]:
        """The addresses and lengths of the arrays."""
        return [word for each in self for word in _words_of(each)]


@final
class Kernel:
    """A function that Python calls as machine code: ``int64 f(int64)``.

    The number is the address of its arguments: 64-bit words, of an array its address and lengths.
    The function writes its results over the first words, and returns whether it failed.
    """

    def __init__(self, function: Callable[..., Any], kinds: tuple[Kind, ...], results: int) -> None:
        update_wrapper(self, function)
        self.function = function
        self.kinds = kinds
        self.results = results
        self.library: KernelLibrary | None = None
        """The library that has it, if it is not the package's."""

    def __call__(self, *arguments: object) -> Any:
        words: list[int] = []
        for argument in arguments:
            words += _words_of(argument)
        block = bytearray(self._bytes)
        self._packed.pack_into(block, 0, *words)
        if self._code(ctypes.addressof(self._block.from_buffer(block))):
            raise KernelError(f"the kernel {self.symbol} failed")
        found = self._results.unpack_from(block)
        return found if self.results else found[0]

    def __reduce__(self) -> str:
        """Pickle it by its name, as functions."""
        return self.function.__qualname__

    @property
    def symbol(self) -> str:
        """Its name in the library: the folder of its module, and its own."""
        return f"{self.function.__module__.split('.')[-2]}__{self.function.__name__.lstrip('_')}"

    @cached_property
    def _code(self) -> Callable[[int], int]:
        library = self.library or kernel_library()
        return cast("Callable[[int], int]", _FUNCTION(library.address(self.symbol)))

    @cached_property
    def _packed(self) -> struct.Struct:
        return struct.Struct(f"{sum(map(_word_count, self.kinds))}q")

    @cached_property
    def _results(self) -> struct.Struct:
        return struct.Struct(f"{self.results or 1}q")

    @cached_property
    def _bytes(self) -> int:
        return max(self._packed.size, self._results.size)

    @cached_property
    def _block(self) -> Any:
        # A `bytearray` is several times faster than an array of ctypes.
        return ctypes.c_char * self._bytes


def _data_field(array: np.ndarray[Any, Any]) -> int:
    """Return the address of an array's data, in a tenth of the time of ``array.ctypes``."""
    return _POINTER(id(array) + _DATA).value or 0


def _is_data_field(probe: np.ndarray[Any, Any]) -> bool:
    return _data_field(probe) == probe.ctypes.data


_address_of_data: Final[Callable[[np.ndarray[Any, Any]], int]] = (
    _data_field if _is_data_field(np.empty(1, np.uint8)) else attrgetter("ctypes.data")
)


def _word_count(kind: Kind) -> int:
    if isinstance(kind, tuple):
        return sum(map(_word_count, kind))
    return 1 + (kind.count(",") + 1 if kind.endswith("]") else 0)


def _words_of(argument: Any) -> Sequence[int]:
    """Return an argument's words, which are valid as long as it is referenced."""
    kind = type(argument)
    if kind is int:
        return [argument]
    if kind is Flat:
        return cast("list[int]", argument.words)
    if kind is np.ndarray:
        if not argument.flags.c_contiguous:
            raise TypeError("kernels take contiguous arrays")
        return [_address_of_data(argument), *argument.shape]
    if isinstance(argument, tuple):
        return [word for each in argument for word in _words_of(each)]
    return [int(argument)]
