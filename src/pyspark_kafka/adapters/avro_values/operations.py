"""The operations of programs that decode Avro values.

An operation is eight numbers of 64 bits: what to do, the column, three arguments, and the number of
the field's name for errors. Places in a program are in bytes from its beginning.
"""

from __future__ import annotations

from typing import Final

SIZE: Final = 64
"""The bytes of an operation."""

COLUMN: Final = 8
"""The column that gets the value."""

A: Final = 16
B: Final = 24
C: Final = 32
NAME: Final = 40
D: Final = 48
E: Final = 56

INT64: Final = 0
"""Put a varint of at most ``A`` bytes as a 64-bit number."""

STRING: Final = 1
BINARY: Final = 2
DOUBLE: Final = 3
NULLABLE: Final = 4
"""Put a null and go to ``B`` if the branch is ``A``; go on if it is the other one of two."""

SKIP_VARINT: Final = 5
SKIP_BYTES: Final = 6
SKIP_FIXED: Final = 7
"""Skip ``A`` bytes."""

SKIP_NULLABLE: Final = 8
"""As ``NULLABLE``, without a column."""

INT32: Final = 9
BOOLEAN: Final = 10
FLOAT: Final = 11
STRUCT: Final = 12
"""Put a struct whose fields have all been put."""

ENUM: Final = 13
"""Put one of ``A`` symbols.

At ``B`` are the place of each, counted from there, and its length, -1 if the reader has none.
"""

NULL: Final = 14
UNION: Final = 15
"""Go to the place of a branch: one of ``A`` numbers at ``B``."""

JUMP: Final = 16
"""Go to ``A``."""

ENTER: Final = 17
"""Begin an array or a map: no elements remain of its block."""

NEXT: Final = 18
"""Begin the next element, which has at least ``C`` bytes, or go to ``B`` after the last one.

``A`` is the column of elements, or -1 if they are skipped.
"""

CLOSE_ARRAY: Final = 19
CLOSE_MAP: Final = 20
MEMBER: Final = 21
"""Put a struct; fields that have not been put become null."""

FIXED: Final = 22
"""Put ``A`` bytes."""

DECIMAL: Final = 23
"""Put a decimal of ``A`` bytes, -1 for a length before it.

Its absolute value is below a limit of 128 bits, ``B`` the lower 64 of them and ``C`` the upper.
It is multiplied by a power of ten, ``D`` and ``E``.
"""

MULTIPLIED: Final = 24
"""As ``INT64``, times ``B``."""

DATE_OF_MILLIS: Final = 25
FLOAT_OF_INTEGER: Final = 26
DOUBLE_OF_INTEGER: Final = 27
DOUBLE_OF_FLOATED: Final = 28
"""Put a varint, rounded to 32 bits, as a 64-bit floating-point number."""

DOUBLE_OF_FLOAT: Final = 29
DEFAULT: Final = 30
"""Read on at ``B``, where there are ``A`` bytes."""

RESTORE: Final = 31
"""Read on where it was before the default."""

CALL: Final = 32
"""Go to ``A``, and on from here at the next ``RETURN``."""

RETURN: Final = 33
FAIL: Final = 34
"""Fail for the reason ``A``."""

END: Final = 35
"""The value ends here."""
