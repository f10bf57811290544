"""The table of time zones that the kernel knows by name.

An entry is 32 bytes: the address and the size of the name, the address of the offsets, and their
count, which is -1 for a name that is no time zone. An offset is 16 bytes: the local time, in
seconds since 1970, from which on it applies, and the seconds to subtract for UTC.
"""

from __future__ import annotations

from typing import Final

STRIDE: Final = 32
NAME: Final = 0
NAME_BYTES: Final = 8
OFFSETS: Final = 16
COUNT: Final = 24

MAX_NAME_BYTES: Final = 64
"""Longer names are no time zones."""

MAX_ZONES: Final = 1024
"""Beyond these the table begins again, so that names in bad records do not fill the memory."""

CYCLE_END: Final = 14_737_593_600
"""The seconds of 2437-01-01: from here on, offsets are the same as 400 years before."""

CYCLE: Final = 146_097 * 86_400
"""The seconds of 400 years, after which the calendar repeats, with its days of the week."""
