"""The table by which kernels find columns: 16 numbers of 64 bits for each column.

Columns are in preorder: a struct is before its fields, a list before its element, and a map before
its entries, a struct of key and value. Offsets of numbers are in bytes.
"""

from __future__ import annotations

from typing import Final

STRIDE: Final = 128
"""The bytes of a column's entry. What kernels change is in its first cache line."""

VALUES: Final = 0
"""The address of the values of fixed width, or of the 32-bit offsets. A struct has none."""

VALIDITY: Final = 8
"""The address of a byte for each value: 1, or 0 if it is null."""

LENGTH: Final = 16
CAPACITY: Final = 24
DATA: Final = 32
"""The address of the bytes of strings and binaries."""

DATA_LENGTH: Final = 40
DATA_CAPACITY: Final = 48

KIND: Final = 64
PARENT: Final = 72
END: Final = 80
"""The number of the first column that is not below this one."""

STRUCT: Final = 0
LIST: Final = 1
"""A list or a map."""

BYTES: Final = 2
"""A string or a binary."""

FIXED: Final = 3
"""Numbers and what Arrow stores as numbers; a boolean is a byte until the column is finished."""
