"""Decoding a batch by a kernel: the words that both know, and the loop that makes room.

A kernel takes the addresses of the columns' table and of words of 64 bits, the row to begin with,
and the number of rows. It returns that number, or the row at which it stopped. The words of a
format are behind the ones here; places are in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np

from ....domain.values.errors import FailureReason
from ....ports.values.value_format import DecodedValues
from .column_set import ColumnSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....ports.values.value_format import Payloads
    from ...kernels.arrays import Array, Int64Array
    from .column_set import ColumnSizes
    from .layout import Column

HEAD_BYTES: Final = 56
VALUES, STARTS, ENDS, REASONS, FIELDS, FULL_COLUMN, FULL_BYTES = range(0, HEAD_BYTES, 8)
"""The words: the address of the bytes into which ``STARTS`` and ``ENDS`` point; the column that has
no room for a value, or -1 if the kernel stopped for another reason; the bytes that its texts have
no room for, or 0 if it is elements that it has no room for."""

(
    NONE,
    MALFORMED,
    TRUNCATED,
    TRAILING_BYTES,
    BAD_UTF8,
    TYPE_MISMATCH,
    OUT_OF_RANGE,
    TOO_DEEP,
    TOO_LARGE,
    BAD_VARINT,
    BAD_LENGTH,
    BAD_UNION,
    BAD_ENUM,
    NO_FRAMING,
    UNKNOWN_SCHEMA,
    INCOMPATIBLE_SCHEMA,
    UNKNOWN_MESSAGE,
) = map(int, FailureReason)


@final
class DecodeRun:
    """The payloads of one batch, and the columns into which a kernel decodes them."""

    def __init__(
        self, payloads: Payloads, columns: Sequence[Column], sizes: ColumnSizes, words: Int64Array
    ) -> None:
        """Take the sizes of the batches before, and the kernel's words."""
        rows = len(payloads.starts)
        starts = np.ascontiguousarray(payloads.starts, np.int64)
        ends = np.ascontiguousarray(payloads.ends, np.int64)
        size = int((ends - starts)[starts >= 0].sum())
        self.reasons = payloads.reasons.copy()
        self.fields = np.full(rows, -1, np.int32)
        self.words = words
        self._rows = rows
        self._columns = ColumnSet(columns, rows, size, sizes)
        data = payloads.values.buffers()[2]
        self.words[VALUES // 8] = data.address if data else 0
        self._kept: dict[int, object] = {VALUES: data}
        self.point(STARTS, starts)
        self.point(ENDS, ends)
        self.point(REASONS, self.reasons)
        self.point(FIELDS, self.fields)

    def point(self, place: int, array: Array) -> None:
        """Let a word be the address of an array, which is kept."""
        self._kept[place] = array
        self.words[place // 8] = array.ctypes.data

    def decode(
        self, kernel: Callable[[int, int, int, int], int], supply: Callable[[], None]
    ) -> DecodedValues:
        """Return the values; ``supply`` is called where the kernel needs anything but room.

        :raises DecodedTooLargeError: if Arrow cannot address them.
        """
        row = 0
        while True:
            self.words[FULL_COLUMN // 8], self.words[FULL_BYTES // 8] = -1, 0
            row = kernel(self._columns.address, self.words.ctypes.data, row, self._rows)
            if row == self._rows:
                return DecodedValues(self._columns.finish(), self.reasons, self.fields)
            full, size = int(self.words[FULL_COLUMN // 8]), int(self.words[FULL_BYTES // 8])
            if full >= 0:
                self._columns.grow_for(row, self.reasons, full, size)
            else:
                supply()
