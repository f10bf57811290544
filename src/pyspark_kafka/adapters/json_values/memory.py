"""The memory of one decoder's kernel."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, final

import numpy as np

from . import context as at
from .big_number_kernel import big_number_bytes
from .number_writing_kernel import SCRATCH_BYTES as DIGITS_BYTES
from .number_writing_kernel import powers_of_ten
from .powers import fives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..kernels.arrays import Array, Int64Array


@cache
def _tables() -> tuple[Array, Array]:
    return fives(), powers_of_ten()


@final
class KernelMemory:
    """A context, with the memory to which its addresses point."""

    def __init__(self, flags: int, max_depth: int, max_digits: int) -> None:
        self._words: Int64Array = np.zeros(at.WORDS, np.int64)
        self._arrays: list[Array] = [*_tables()]
        self[at.FLAGS], self[at.MAX_DEPTH], self[at.MAX_DIGITS] = flags, max_depth, max_digits
        self[at.FIVES], self[at.TENS] = (table.ctypes.data for table in self._arrays)
        size = big_number_bytes(max_digits)
        for place, count in (
            (at.BIG_NUMBER, size),
            (at.OTHER_BIG_NUMBER, size),
            (at.BRACKETS, max_depth + 2),
            (at.SCRATCH, at.SCRATCH_BYTES),
            (at.NUMBER_SCRATCH, DIGITS_BYTES),
        ):
            self.point(place, np.zeros(count, np.uint8))

    @property
    def address(self) -> int:
        """The address of the context."""
        return self._words.ctypes.data

    def point(self, place: int, array: Array) -> None:
        """Let a word be the address of an array, which is kept alive."""
        self._arrays.append(array)
        self[place] = array.ctypes.data

    def keep(self, arrays: Sequence[Array]) -> None:
        """Keep arrays alive to which others point."""
        self._arrays += arrays

    def __getitem__(self, place: int) -> int:
        return int(self._words[place // 8])

    def __setitem__(self, place: int, number: int) -> None:
        self._words[place // 8] = number
