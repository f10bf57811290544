"""Memory that is reused once nothing refers to it.

Fresh memory costs a page fault per four kilobytes: more than writing into it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..kernels.arrays import Array

T = TypeVar("T")

MAX_IDLE: Final = 4
"""Spark holds the batch that it writes while it asks for the next one: two alternate."""


@final
class Lease:
    """The owner of Arrow's buffers over one item; it ends with the last of them."""

    __slots__ = ("__weakref__", "item")

    def __init__(self, item: object = None) -> None:
        """Take an item that no pool takes back, to keep it alive."""
        self.item = item

    def buffer(self, array: Array) -> pa.Buffer:
        """Return an Arrow buffer over an array's bytes, without a copy."""
        return pa.foreign_buffer(array.ctypes.data, array.nbytes, base=self)


@final
class BufferPool(Generic[T]):
    """Lends items, and takes each back when the lease on it ends.

    A consumer that keeps a batch keeps its memory; one that drops it before the next, as Spark's
    worker does, has the memory refilled.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._idle: list[T] = []

    def acquire(self) -> T:
        """Return the idle item that was released first, or else a new one."""
        return self._idle.pop(0) if self._idle else self._make()

    def lease(self, item: T) -> Lease:
        """Return a lease that releases the item with the last buffer made of it."""
        lease = Lease()
        weakref.finalize(lease, self.release, item).atexit = False
        return lease

    def release(self, item: T) -> None:
        """Take back an item that nothing refers to."""
        if len(self._idle) < MAX_IDLE:
            self._idle.append(item)
