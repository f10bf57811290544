"""The table of time zones that the kernel knows by name.

An entry is 32 bytes: the address and the size of the name, the address of the offsets, and their
count: 0 until they are needed. Entries are in the order of their names. An offset is 16 bytes: the
local time, in seconds since 1970, from which on it applies, and the seconds to subtract for UTC.
"""

from __future__ import annotations

from typing import Final

from ..value_encoding.time_zones import CHANGES_END, CYCLE_S

STRIDE: Final = 32
NAME: Final = 0
NAME_BYTES: Final = 8
OFFSETS: Final = 16
COUNT: Final = 24

NO_ZONE: Final = -1
"""The count of a zone whose file cannot be read."""

CYCLE_END: Final = CHANGES_END
"""From here on, offsets are the same as 400 years before."""

CYCLE: Final = CYCLE_S
