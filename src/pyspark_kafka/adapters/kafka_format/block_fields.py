"""The fields of a section: a stretch of bytes that holds the records of one batch, uncompressed.

Sections reach a kernel as the rows of an array of ``int64``.
"""

from __future__ import annotations

from typing import Final

START: Final = 0
END: Final = 1

COUNT: Final = 2
"""How many records there are; message sets (magic 0 and 1) do not say, and have 0."""

BASE_OFFSET: Final = 3
LAST_OFFSET: Final = 4

BASE_TIMESTAMP: Final = 5
"""What a record's timestamp counts from, in milliseconds; all of it under ``LOG_APPEND_TIME``."""

TIMESTAMP_TYPE: Final = 6

IS_OPEN: Final = 7
"""1 while there are bytes of the batch behind ``END`` that are not decompressed yet."""

FIELDS: Final = 8

NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
"""Kafka's types of timestamps (``org.apache.kafka.common.record.TimestampType``)."""
