"""Functions that the package's build compiles to machine code, and how Python calls them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
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

Types: TypeAlias = tuple["np.dtype[Any] | Types | None", ...]
"""The types of the items of arrays, and ``None`` for numbers."""

_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
"""The type of kernels; they are called without the GIL."""

_POINTER: Final = ctypes.c_void_p.from_address
_DATA: Final = object.__basicsize__
"""Where ``PyArrayObject_fields`` has the pointer to the data; extensions of numpy depend on it."""


class KindError(TypeError):
    """An array has another type than a kernel is compiled for."""


class KernelError(RuntimeError):
    """A kernel ended with an error, as with checks of bounds."""


def kernel(
    *kinds: Kind, results: int = 0, wide: tuple[Kind, ...] | None = None
) -> Callable[[F], F]:
    """Compile a function of arguments of these kinds, when the package is built.

    It returns an integer or nothing; with ``results``, a tuple of so many integers. It is compiled
    a second time for the kinds ``wide``, which few calls have.
    """

    def decorate(function: F) -> F:
        second = Kernel(function, wide, results, symbol_end="_wide") if wide else None
        return cast("F", Kernel(function, kinds, results, second))

    return decorate


@final
class Flat(tuple[Any, ...]):  # noqa: SLOT001  # a tuple with slots cannot keep its words
    """A tuple of arrays whose words are found once; the arrays are not resized."""

    _known: tuple[Types, list[int]] | None = None

    def words_as(self, types: Types) -> list[int]:
        """Return the addresses and lengths of the arrays.

        :raises KindError: if they have other types.
        """
        # Kernels have one object for equal types.
        if self._known is None or self._known[0] is not types:
            self._known = types, _words_of_all(self, types)
        return self._known[1]


@final
class Kernel:
    """A function that Python calls as machine code: ``int64 f(int64)``.

    The number is the address of its arguments: 64-bit words, of an array its address and lengths.
    The function writes its results over the first words, and returns whether it failed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        kinds: tuple[Kind, ...],
        results: int,
        wide: Kernel | None = None,
        symbol_end: str = "",
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.kinds = kinds
        self.results = results
        self.wide = wide
        self._symbol_end = symbol_end
        self.library: KernelLibrary | None = None
        """The library that has the kernel, if it is not the package's."""

    def __call__(self, *arguments: object) -> Any:
        try:
            words = _words_of_all(arguments, self._types)
        except KindError:
            if self.wide is None:
                raise
            return self.wide(*arguments)
        block = bytearray(self._bytes)
        self._packed.pack_into(block, 0, *words)
        if self._code(ctypes.addressof(self._block.from_buffer(block))):
            raise KernelError(f"the kernel {self.symbol} failed")
        found = self._results.unpack_from(block)
        return found if self.results else found[0]

    def __reduce__(self) -> str:
        """Pickle the kernel by its name, like a function."""
        return self.function.__qualname__

    @property
    def symbol(self) -> str:
        """The kernel's name in the library: its module's folder, and its own name."""
        folder, name = self.function.__module__.split(".")[-2], self.function.__name__.lstrip("_")
        return f"{folder}__{name}{self._symbol_end}"

    @cached_property
    def _code(self) -> Callable[[int], int]:
        library = self.library or kernel_library()
        return cast("Callable[[int], int]", _FUNCTION(library.address(self.symbol)))

    @cached_property
    def _types(self) -> Types:
        return _types_of(self.kinds)

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


@cache
def _types_of(kinds: tuple[Kind, ...]) -> Types:
    return tuple(_types_of(kind) if isinstance(kind, tuple) else _type_of(kind) for kind in kinds)


def _type_of(kind: str) -> np.dtype[Any] | None:
    return np.dtype(kind.removeprefix("const ").partition("[")[0]) if kind.endswith("]") else None


def _words_of_all(arguments: Sequence[Any], types: Types) -> list[int]:
    """Return the words of arguments, which are valid as long as these are referenced.

    :raises KindError: if an array has another type.
    """
    words: list[int] = []
    for argument, expected in zip(arguments, types, strict=True):
        kind = type(argument)
        if kind is int:
            words.append(argument)
        elif kind is np.ndarray:
            # Numpy has one object for each of these types, but for other byte orders.
            if argument.dtype is not expected or not argument.flags.c_contiguous:
                raise KindError(f"an array of {argument.dtype} is not contiguous, or of {expected}")
            words.append(_address_of_data(argument))
            words += argument.shape
        elif kind is Flat:
            words += argument.words_as(expected)
        elif isinstance(argument, tuple):
            words += _words_of_all(argument, cast("Types", expected))
        else:
            words.append(int(argument))
    return words
