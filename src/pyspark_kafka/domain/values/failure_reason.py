"""Why a value cannot be decoded."""

from __future__ import annotations

import enum
from typing import Final


class FailureReason(enum.IntEnum):
    """The reasons, as kernels write them for each row; ``NONE`` is a value that was decoded."""

    NONE = 0
    MALFORMED = 1
    TRUNCATED = 2
    TRAILING_BYTES = 3
    BAD_UTF8 = 4
    TYPE_MISMATCH = 5
    OUT_OF_RANGE = 6
    TOO_DEEP = 7
    TOO_LARGE = 8
    BAD_VARINT = 9
    BAD_LENGTH = 10
    BAD_UNION = 11
    BAD_ENUM = 12
    NO_FRAMING = 13
    UNKNOWN_SCHEMA = 14
    INCOMPATIBLE_SCHEMA = 15
    UNKNOWN_MESSAGE = 16


TEXTS: Final = {
    FailureReason.MALFORMED: "it is malformed",
    FailureReason.TRUNCATED: "it ends too early",
    FailureReason.TRAILING_BYTES: "there are bytes after its end",
    FailureReason.BAD_UTF8: "a text is not valid UTF-8",
    FailureReason.TYPE_MISMATCH: "it has another type than the schema",
    FailureReason.OUT_OF_RANGE: "it does not fit the schema's type",
    FailureReason.TOO_DEEP: "it is nested too deeply",
    FailureReason.TOO_LARGE: "it is too large when decoded",
    FailureReason.BAD_VARINT: "a varint has more bytes than its type",
    FailureReason.BAD_LENGTH: "a length does not fit",
    FailureReason.BAD_UNION: "a union has no such branch",
    FailureReason.BAD_ENUM: "an enum has no such symbol",
    FailureReason.NO_FRAMING: "it does not begin with a schema id",
    FailureReason.UNKNOWN_SCHEMA: "the schema registry has no schema with its id",
    FailureReason.INCOMPATIBLE_SCHEMA: "its schema cannot be read as the schema of the query",
    FailureReason.UNKNOWN_MESSAGE: "its schema has no such message",
}
"""What is wrong with a value, for error messages."""
