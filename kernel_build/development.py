"""Kernels that are no part of the package, such as those of its tests."""

from __future__ import annotations

import ctypes
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from pyspark_kafka.adapters.kernels.kernel import Kernel
from pyspark_kafka.adapters.kernels.library import KernelLibrary

from .linker import link
from .targets import here

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def compile_now(kernel: F) -> F:
    """Compile a kernel at its first call, for this process."""
    cast("Any", kernel).library = _Compiled(cast("Kernel", kernel))
    return kernel


@final
class _Compiled:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def address(self, symbol: str) -> int:
        """Return the address of the kernel."""
        return self._library.address(symbol)

    @cached_property
    def _library(self) -> KernelLibrary:
        from .compiler import compile_kernel

        with tempfile.TemporaryDirectory() as directory:
            code, library = Path(directory, "kernel.o"), Path(directory, "kernel.so")
            code.write_bytes(compile_kernel(self._kernel, here()))
            link([code], library, here())
            return KernelLibrary(ctypes.CDLL(str(library)))
