"""The reasons of failures, as plain numbers for kernels."""

from __future__ import annotations

from typing import Final

from ...domain.values.errors import FailureReason

MALFORMED: Final = int(FailureReason.MALFORMED)
TRUNCATED: Final = int(FailureReason.TRUNCATED)
BAD_UTF8: Final = int(FailureReason.BAD_UTF8)
TYPE_MISMATCH: Final = int(FailureReason.TYPE_MISMATCH)
OUT_OF_RANGE: Final = int(FailureReason.OUT_OF_RANGE)
TOO_DEEP: Final = int(FailureReason.TOO_DEEP)
TOO_LARGE: Final = int(FailureReason.TOO_LARGE)
