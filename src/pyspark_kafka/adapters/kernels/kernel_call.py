"""Kernels with the types of their arguments, to compile or load them before they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .compiled import Kernel, KernelPart
    from .kernel_cache import CachedKernel


@final
@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel, and arguments of the types that it is called with. Their values do not matter."""

    kernel: Kernel | KernelPart | Callable[..., object]
    arguments: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        """The folder of the kernel's module, and the kernel."""
        return self._kernel.name

    @property
    def kinds(self) -> tuple[object, ...]:
        """The kinds of the arguments."""
        return self._kernel.kinds_of(self.arguments)

    @property
    def is_cached(self) -> bool:
        """Whether the code is in a cache."""
        return self._kernel.is_cached(self.arguments)

    def compile(self) -> CachedKernel:
        """Return the cached code; compile it if it is in no cache.

        The code is not loaded: it may be for another processor.
        """
        return self._kernel.compile(self.arguments)

    def load(self) -> None:
        """Load the code, and compile it before if it is in no cache."""
        self._kernel.load(self.arguments)

    def load_cached(self) -> None:
        """Load the code if it is in a cache."""
        if self.is_cached:
            self.load()

    @property
    def _kernel(self) -> Kernel | KernelPart:
        # The decorators' types are the functions' own, for their callers.
        return self.kernel  # type: ignore[return-value]
