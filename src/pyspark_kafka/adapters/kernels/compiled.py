"""The decorators of functions that numba compiles.

Numba is imported when something is compiled: it takes longer to import than machine code takes to
load from the cache.
"""

from __future__ import annotations

from functools import cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from .arguments import words_of
from .callee import Callee
from .kernel_cache import KernelCache
from .machine_code import load_machine_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .kernel_cache import CachedKernel
    from .machine_code import MachineCode

F = TypeVar("F", bound="Callable[..., object]")

PART_WORDS: Final = 6
"""The numbers that a part of a kernel takes."""

_PART: Final = ("part",)


def compiled(function: F) -> F:
    """Compile a function to machine code at its first call; it runs without the GIL.

    It takes integers, arrays and tuples of them, and returns an integer or nothing. The machine
    code is cached beside the module, or in the user's cache directory where that is read-only (a
    system install, a zip). Where neither can be written, each process compiles the function.
    """
    return cast("F", Kernel(function))


def compiled_part(function: Callable[..., Any]) -> KernelPart:
    """Compile a function of six 64-bit numbers when its address is first asked for.

    Kernels call it with ``call_address``. Its machine code is cached as theirs is.
    """
    return KernelPart(function)


def intrinsic(function: Callable[..., object]) -> Callable[..., Any]:
    """Turn a function that generates LLVM IR into one that kernels can call."""

    def make() -> Any:
        from .compiler import new_intrinsic

        return new_intrinsic(function)

    return Callee(function, make)


def inlined(function: F) -> F:
    """Compile a function as a part of each kernel that calls it; Python cannot call it."""
    return cast("F", Callee(function, partial(_inlined, function)))


def kernel_function(function: F) -> F:
    """Compile a function as ``inlined`` does, in a fraction of the time.

    It takes numbers and addresses. With arrays, kernels become slower: numba removes counts of
    references from functions that it optimizes by themselves.
    """

    def make() -> Any:
        from .compiler import new_kernel_function

        return new_kernel_function(function)

    return cast("F", Callee(function, make))


def force_inlined(function: Callable[..., object]) -> Callable[..., Any]:
    """Copy a function's code into the kernels that call it, before they are compiled.

    Use it for functions that take arrays and are too large for LLVM to inline: otherwise numba
    counts references at each call. Compiling takes longer.
    """

    def make() -> Any:
        from .compiler import new_force_inlined

        return new_force_inlined(function)

    return Callee(function, make)


def _inlined(function: Callable[..., object]) -> Any:
    from .compiler import new_inlined

    return new_inlined(function)


@final
class Kernel(Callee):
    """A function that Python calls. Its code is loaded or compiled for each kind of arguments."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function, partial(_inlined, function))
        self.cache = KernelCache(function)
        self.loaded: dict[tuple[object, ...], MachineCode] = {}
        self._function = function
        self._lock = RLock()

    def __call__(self, *arguments: object) -> Any:
        kinds: list[object] = []
        words: list[int] = []
        for argument in arguments:
            words_of(argument, kinds, words)
        code = self.loaded.get(tuple(kinds))
        if code is None:
            code = self._load(tuple(kinds), len(words), arguments)
        return code.call(words)

    @property
    def name(self) -> str:
        """The folder of the kernel's module, and the kernel."""
        return _name_of(self._function)

    def kinds_of(self, arguments: Sequence[object]) -> tuple[object, ...]:
        """Return the kinds of arguments, for each of which there is code."""
        kinds: list[object] = []
        words_of(tuple(arguments), kinds, [])
        return tuple(kinds[1:])

    def is_cached(self, arguments: Sequence[object]) -> bool:
        """Return whether the code for such arguments is in the cache."""
        return self.cache.find(self.kinds_of(arguments)) is not None

    def compile(self, arguments: Sequence[object]) -> CachedKernel:
        """Return the cached code for such arguments, without loading it."""
        return self._cached(self.kinds_of(arguments), arguments)

    def load(self, arguments: Sequence[object]) -> None:
        """Load the code for such arguments."""
        words: list[int] = []
        words_of(tuple(arguments), [], words)
        self._load(self.kinds_of(arguments), len(words), arguments)

    def _load(
        self, kinds: tuple[object, ...], words: int, arguments: Sequence[object]
    ) -> MachineCode:
        with self._lock:
            if kinds not in self.loaded:
                self.loaded[kinds] = load_machine_code(self._cached(kinds, arguments).code, words)
            return self.loaded[kinds]

    def _cached(self, kinds: tuple[object, ...], arguments: Sequence[object]) -> CachedKernel:
        def compile_it() -> bytes:
            from .compiler import compile_kernel

            return compile_kernel(self._function, arguments)

        return self.cache.get(kinds, compile_it)


@final
class KernelPart:
    """A function that kernels call by its address, so that it is compiled only if it is needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._cache = KernelCache(function)

    @property
    def address(self) -> int:
        """The address of the machine code, which is compiled or loaded from the cache."""
        return self._code.address

    @property
    def name(self) -> str:
        """The folder of the part's module, and the part."""
        return _name_of(self._function)

    def kinds_of(self, _arguments: Sequence[object]) -> tuple[object, ...]:
        """Return what distinguishes its code in the cache."""
        return _PART

    def is_cached(self, _arguments: Sequence[object]) -> bool:
        """Return whether the code is in the cache."""
        return self._cache.find(_PART) is not None

    def compile(self, _arguments: Sequence[object]) -> CachedKernel:
        """Return the cached code, without loading it."""

        def compile_it() -> bytes:
            from .compiler import compile_part

            return compile_part(self._function, PART_WORDS)

        return self._cache.get(_PART, compile_it)

    def load(self, _arguments: Sequence[object]) -> None:
        """Load the code."""
        _ = self._code

    @cached_property
    def _code(self) -> MachineCode:
        return load_machine_code(self.compile(()).code, PART_WORDS)


def _name_of(function: Callable[..., object]) -> str:
    folder = function.__module__.split(".")[-2]
    return f"{folder}.{function.__name__.lstrip('_')}"
