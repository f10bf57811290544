"""Memory that is used again once nobody looks at it any more.

Fresh memory costs a page fault every four kilobytes: more than what is written into it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

T = TypeVar("T")

MAX_IDLE: Final = 4
"""Spark holds the batch it wrote while it asks for the next one: two take turns."""


@final
class Lease:
    """What Arrow's buffers keep alive; when the last of them goes, it ends."""

    __slots__ = ("__weakref__",)

    def buffer(self, array: np.ndarray[Any, Any]) -> pa.Buffer:
        """Give an array's bytes to Arrow, without a copy."""
        return pa.foreign_buffer(array.ctypes.data, array.nbytes, base=self)


@final
class BufferPool(Generic[T]):
    """Lends what it makes, and takes it back when the lease on it is gone.

    So whoever keeps a batch owns it, and whoever lets go of it before the next one, as Spark's
    worker does, has it filled anew.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._idle: list[T] = []

    def take(self) -> T:
        """Give what was used longest ago and is free, or else a new one."""
        return self._idle.pop(0) if self._idle else self._make()

    def lease(self, lent: T) -> Lease:
        """Give the lease that ends with the last buffer that was made of it."""
        lease = Lease()
        weakref.finalize(lease, self.give_back, lent).atexit = False
        return lease

    def give_back(self, lent: T) -> None:
        """Take back what nobody looks at."""
        if len(self._idle) < MAX_IDLE:
            self._idle.append(lent)
