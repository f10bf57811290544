"""The fields of a block: a span of bytes that holds the records of one batch, uncompressed.

Kernels take blocks as the rows of an array of ``int64``.
"""

from __future__ import annotations

from typing import Final

START: Final = 0
END: Final = 1

COUNT: Final = 2
"""The number of records; 0 for message sets (magic 0 and 1), whose headers have no count."""

BASE_OFFSET: Final = 3
LAST_OFFSET: Final = 4

BASE_TIMESTAMP: Final = 5
"""To which timestamp deltas are added, in ms; every record's timestamp if ``LOG_APPEND_TIME``."""

TIMESTAMP_TYPE: Final = 6

IS_OPEN: Final = 7
"""1 while bytes of the batch after ``END`` are still compressed."""

FIELD_COUNT: Final = 8

NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
"""The values of ``org.apache.kafka.common.record.TimestampType``."""
